#include "manager/workers/socket_handover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "manager/workers/listening_socket.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/workers/worker_parts.h"

namespace pando::manager {
namespace socket_handover_test {

using testing::Connection;
using testing::free_endpoint;
using testing::run_until;
using State = WorkerSlot::State;

class Handover : public ::testing::Test {
 protected:
  Handover() {
    table_.phase.started = table_.phase.settled = true;
    for (const std::uint32_t number : {0U, 1U}) {
      handover_.open(number);
      WorkerSlot& slot = table_.at(number);
      slot.link = connection(number).link;
      slot.state = State::kServing;
      handover_.send(slot);
    }
    EXPECT_TRUE(handover_.take_failure());
  }
  Connection& connection(std::uint32_t slot) { return slot == 0 ? first_ : second_; }
  void lose_worker(std::uint32_t slot) {
    table_.at(slot).link.reset();
    table_.at(slot).state = State::kDead;
  }
  void send_query() const {
    sockaddr_storage to;
    const socklen_t length = local_.to_sockaddr(to);
    const Fd client(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::sendto(client.get(), "q", 1, 0, reinterpret_cast<sockaddr*>(&to), length), 1);
  }
  /// Sockets that slot 1's worker was given to read to the end.
  std::vector<std::uint32_t> await_orphaned_sockets() {
    std::vector<std::uint32_t> orphaned;
    EXPECT_TRUE(run_until(io_, [&] {
      for (const auto& message : second_.take<ipc::Sockets>())
        for (const auto& socket : message.sockets)
          if (socket.orphaned) orphaned.push_back(socket.id);
      return !orphaned.empty();
    }));
    return orphaned;
  }

  asio::io_context io_;
  Endpoint local_ = free_endpoint();
  Listeners listeners_{Listeners::Addresses{{local_}, {}}};
  WorkerTable table_{io_};
  Connection first_{io_}, second_{io_};
  std::vector<std::uint32_t> closed_;
  SocketHandover handover_{table_, listeners_, [this](std::uint32_t number) {
                             closed_.push_back(number);
                             handover_.forget(number);
                             table_.slots().erase(number);
                           }};
};

TEST_F(Handover, AWorkerGetsEachDescriptorOnce) {
  std::uint32_t with = 0;
  for (const auto& message : first_.take<ipc::Sockets>()) with += message.descriptors;
  EXPECT_EQ(with, 2U) << "UDP and TCP";
  handover_.send(table_.at(0));
  for (const auto& message : first_.take<ipc::Sockets>()) EXPECT_EQ(message.descriptors, 0U);
}

TEST_F(Handover, ADeadWorkersQueueIsReadByAnotherWorkerAfterAWhile) {
  lose_worker(0);
  handover_.await_worker(table_.at(0));
  const auto orphaned = await_orphaned_sockets();
  ASSERT_EQ(orphaned.size(), 2U);
  for (const auto socket : orphaned) handover_.socket_drained(1, socket);
  ASSERT_TRUE(run_until(io_, [&] { return listeners_.of(0).empty(); }));
  EXPECT_TRUE(closed_.empty()) << "the slot stays for its next worker";
}

TEST_F(Handover, ADeadWorkersQueueGoesToALivingWorkerAtOnce) {
  lose_worker(0);
  handover_.await_worker(table_.at(0));
  EXPECT_TRUE(handover_.is_ending(0)) << "no event of the loop was needed";
}

TEST_F(Handover, AQueueWithoutReaderGoesToTheFirstWorkerThatServes) {
  for (const std::uint32_t number : {0U, 1U}) lose_worker(number);
  for (const std::uint32_t number : {0U, 1U}) handover_.await_worker(table_.at(number));
  EXPECT_FALSE(handover_.is_ending(0));
  table_.at(1).link = second_.link;
  table_.at(1).state = State::kServing;
  handover_.worker_came(table_.at(1));
  handover_.hand_over_waiting();
  EXPECT_TRUE(handover_.is_ending(0));
  EXPECT_FALSE(handover_.is_ending(1));
  EXPECT_EQ(await_orphaned_sockets().size(), 2U);
}

TEST_F(Handover, KeptSocketsOfASlotThatIsNotWantedAreReadBeforeTheyAreClosed) {
  for (const std::uint32_t number : {0U, 1U}) lose_worker(number);
  ASSERT_TRUE(listeners_.open(5));
  handover_.await_readers(State::kDraining);
  EXPECT_EQ(listeners_.of(5).size(), 2U) << "nobody has read them yet";
  table_.at(1).link = second_.link;
  table_.at(1).state = State::kServing;
  handover_.worker_came(table_.at(1));
  handover_.hand_over_waiting();
  const auto orphaned = await_orphaned_sockets();
  ASSERT_EQ(orphaned.size(), 2U);
  EXPECT_TRUE(closed_.empty());
  for (const auto socket : orphaned) handover_.socket_drained(1, socket);
  ASSERT_TRUE(run_until(io_, [&] { return listeners_.of(5).empty(); }));
  EXPECT_EQ(closed_, std::vector<std::uint32_t>{5});
}

TEST_F(Handover, KeptSocketsOfASlotWaitForItsWorker) {
  ASSERT_TRUE(listeners_.open(5));
  first_.take<ipc::Sockets>();
  handover_.await_readers(State::kDead);
  ASSERT_TRUE(run_until(io_, [&] { return !first_.take<ipc::Sockets>().empty(); }))
      << "the first worker reads them meanwhile";
  Connection third{io_};
  table_.at(5).link = third.link;
  handover_.worker_came(table_.at(5));
  handover_.send(table_.at(5));
  std::uint32_t with = 0;
  for (const auto& message : third.take<ipc::Sockets>()) with += message.descriptors;
  EXPECT_EQ(with, 2U);
}

TEST_F(Handover, AWorkerThatComesTakesItsSocketsBack) {
  lose_worker(0);
  handover_.await_worker(table_.at(0));
  const auto orphaned = await_orphaned_sockets();
  table_.at(0).link = first_.link;
  handover_.worker_came(table_.at(0));
  const auto closed = second_.take<ipc::CloseSockets>();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(std::set(closed[0].sockets.begin(), closed[0].sockets.end()),
            std::set(orphaned.begin(), orphaned.end()));
  for (const auto socket : orphaned) handover_.socket_drained(1, socket);  // too late: no effect
  EXPECT_EQ(listeners_.of(0).size(), 2U);
}

TEST_F(Handover, SocketsThatWereLentAreReplacedOnceTheirQueueIsEmpty) {
  while (!listeners_.has_queue(0)) send_query();
  lose_worker(0);
  handover_.await_worker(table_.at(0));
  const auto lent = await_orphaned_sockets();
  Fd kept;  // by the worker of slot 1
  for (const auto& socket : listeners_.of(0))
    if (socket.description.transport == ipc::Transport::kUdp)
      kept = Fd(::fcntl(socket.fd.get(), F_DUPFD_CLOEXEC, 0));
  const auto has_lent = [&] {
    return std::ranges::any_of(listeners_.of(0), [&](const Listeners::Socket& socket) {
      return std::ranges::find(lent, socket.description.id) != lent.end();
    });
  };
  WorkerSlot& slot = table_.at(0);
  slot.link = first_.link;
  slot.state = State::kServing;
  handover_.worker_came(slot);
  handover_.send(slot);
  handover_.steer();
  io_.restart();
  io_.run_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(has_lent()) << "a query waits in it";
  char octet = 0;
  while (::recv(kept.get(), &octet, 1, MSG_DONTWAIT) >= 0) {
  }
  ASSERT_TRUE(run_until(io_, [&] { return !has_lent(); }));
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  while (!listeners_.has_queue(0)) send_query();  // the new sockets are in their groups
  EXPECT_FALSE(is_readable(kept.get()));
}

TEST_F(Handover, WorkersThatImpairLentSocketsAreFoundAndTheSocketsReplaced) {
  lose_worker(0);
  handover_.await_worker(table_.at(0));
  const auto lent = await_orphaned_sockets();
  WorkerSlot& slot = table_.at(0);
  slot.link = first_.link;
  slot.state = State::kServing;
  handover_.worker_came(slot);
  EXPECT_TRUE(handover_.find_impairing().empty());
  const auto udp_of_slot = [&] {
    for (const auto& socket : listeners_.of(0))
      if (socket.description.transport == ipc::Transport::kUdp)
        return std::pair(socket.description, socket.fd.get());
    return std::pair(ipc::SocketDescription{}, -1);
  };
  const auto [first, descriptor] = udp_of_slot();
  const std::uint32_t before = first.id;
  ASSERT_NE(std::ranges::find(lent, before), lent.end());
  // The worker of slot 1 kept its descriptor.
  ::shutdown(descriptor, SHUT_WR);
  EXPECT_EQ(handover_.find_impairing(), (std::set<std::uint32_t>{0, 1}));
  handover_.replace_impaired(1);
  EXPECT_TRUE(handover_.find_impairing().empty());
  const auto [after, fresh] = udp_of_slot();
  EXPECT_NE(after.id, before);
  EXPECT_FALSE(is_impaired(fresh, after));
  ASSERT_TRUE(run_until(io_, [&] {
    for (const auto& message : first_.take<ipc::CloseSockets>())
      if (message.sockets == std::vector{before}) return true;
    return false;
  }));
}

TEST_F(Handover, ALostDrainWorkerIsReplaced) {
  lose_worker(0);
  handover_.await_worker(table_.at(0));
  EXPECT_EQ(await_orphaned_sockets().size(), 2U);
  handover_.worker_lost(1);  // its connection broke, and it is back at once
  EXPECT_EQ(await_orphaned_sockets().size(), 2U);
}

TEST_F(Handover, ADrainingSlotWithoutQueueIsClosed) {
  bool removed = false;
  table_.at(0).on_removed.push_back([&] { removed = true; });
  lose_worker(0);
  table_.at(0).state = State::kDraining;
  handover_.retire(table_.at(0));
  EXPECT_FALSE(removed) << "withdrawn first, and looked at once more";
  ASSERT_TRUE(run_until(io_, [&] { return removed; }));
  EXPECT_EQ(closed_, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(listeners_.of(0).empty());
}

TEST_F(Handover, ADrainingSlotsQueueIsReadFirst) {
  lose_worker(0);
  table_.at(0).state = State::kDraining;
  for (int i = 0; i < 64; ++i) send_query();  // the kernel gives some to either slot
  handover_.retire(table_.at(0));
  EXPECT_EQ(await_orphaned_sockets().size(), 2U);
  EXPECT_TRUE(closed_.empty());
}

}  // namespace socket_handover_test
}  // namespace pando::manager

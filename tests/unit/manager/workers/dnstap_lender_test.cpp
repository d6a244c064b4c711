#include "manager/workers/dnstap_lender.h"

#include <gtest/gtest.h>

#include "../frame_collector.h"
#include "../run_until.h"
#include "ipc/frame_stream.h"
#include "worker_parts.h"

namespace pando::manager {
namespace dnstap_lender_test {

using testing::Connection;
using testing::FrameCollector;
using testing::run_until;

class DnstapLenderTest : public ::testing::Test {
 protected:
  DnstapOptions options() {
    DnstapOptions made;
    made.socket = collector_.path;
    made.what.on = true;
    made.what.queries = true;
    return made;
  }
  WorkerSlot& serve(std::uint32_t number, Connection& worker) {
    WorkerSlot& slot = table_.at(number);
    slot.link = worker.link;
    slot.state = WorkerSlot::State::kServing;
    return slot;
  }
  /// Waits for the next connection and accepts its stream.
  void accept() {
    collector_.connection.reset();
    ASSERT_TRUE(run_until(io_, [this] {
      if (!collector_.connection) collector_.accept();
      return collector_.connection && !collector_.received().empty();
    }));
    collector_.send(ipc::control_frame(ipc::FrameControl::kAccept, ipc::kDnstapContentType));
  }
  /// Waits until the worker has got `count` messages.
  std::vector<ipc::Dnstap> messages(Connection& worker, std::size_t count) {
    std::vector<ipc::Dnstap> all;
    EXPECT_TRUE(run_until(io_, [&] {
      for (auto& message : worker.take<ipc::Dnstap>()) all.push_back(std::move(message));
      return all.size() >= count;
    }));
    return all;
  }
  /// Runs the loop for a while in which nothing is to happen.
  void idle() {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(150));
  }

  asio::io_context io_;
  FrameCollector collector_;
  WorkerTable table_{io_};
};

TEST_F(DnstapLenderTest, AWorkerGetsSettingsAtOnceAndTheStreamWhenItIsOpen) {
  DnstapLender lender(table_, options());
  Connection worker(io_);
  lender.worker_came(serve(0, worker));
  EXPECT_EQ(messages(worker, 1), std::vector{options().what});
  accept();
  EXPECT_EQ(messages(worker, 1), std::vector{options().what});
  EXPECT_EQ(collector_.received(),
            ipc::control_frame(ipc::FrameControl::kStart, ipc::kDnstapContentType));
}

TEST_F(DnstapLenderTest, WithoutConfigurationAWorkerIsToldToStop) {
  DnstapLender lender(table_, std::nullopt);
  Connection worker(io_);
  lender.worker_came(serve(0, worker));
  EXPECT_EQ(messages(worker, 1), std::vector{ipc::Dnstap{}});
  idle();
  collector_.accept();
  EXPECT_FALSE(collector_.connection);
}

TEST_F(DnstapLenderTest, ALostStreamIsOpenedAgainOnce) {
  DnstapLender lender(table_, options());
  Connection worker(io_);
  WorkerSlot& slot = serve(0, worker);
  lender.worker_came(slot);
  lender.stream_lost(slot);  // there was none
  accept();
  messages(worker, 2);
  for (int i = 0; i < 1000; ++i) lender.stream_lost(slot);
  accept();
  messages(worker, 1);
  idle();
  collector_.accept();
  EXPECT_FALSE(collector_.connection) << "one stream a worker, whatever it reports";
}

TEST_F(DnstapLenderTest, AnAbsentCollectorIsTriedAgain) {
  const std::string aside = collector_.path + ".aside";
  std::filesystem::rename(collector_.path, aside);
  DnstapLender lender(table_, options());
  Connection worker(io_);
  lender.worker_came(serve(0, worker));
  idle();
  std::filesystem::rename(aside, collector_.path);
  accept();
  EXPECT_EQ(messages(worker, 2).size(), 2U);
}

TEST_F(DnstapLenderTest, NewSettingsLeaveTheStreamAlone) {
  DnstapLender lender(table_, options());
  Connection worker(io_);
  lender.worker_came(serve(0, worker));
  accept();
  messages(worker, 2);
  auto changed = options();
  changed.what.sample = 10;
  lender.set(changed);
  EXPECT_EQ(messages(worker, 1), std::vector{changed.what});
  lender.set(changed);
  idle();
  EXPECT_TRUE(worker.take<ipc::Dnstap>().empty()) << "nothing has changed";
  collector_.accept();
  EXPECT_FALSE(collector_.connection);
}

TEST_F(DnstapLenderTest, SwitchingOffEndsAllAttempts) {
  DnstapLender lender(table_, options());
  Connection worker(io_);
  lender.worker_came(serve(0, worker));
  collector_.accept();
  lender.set(std::nullopt);
  EXPECT_EQ(messages(worker, 2), (std::vector{options().what, ipc::Dnstap{}}));
  collector_.send(ipc::control_frame(ipc::FrameControl::kAccept, ipc::kDnstapContentType));
  idle();
  EXPECT_TRUE(worker.take<ipc::Dnstap>().empty());
  lender.set(options());
  accept();
  EXPECT_EQ(messages(worker, 2).size(), 2U);
}

TEST_F(DnstapLenderTest, AWorkerThatHasGoneGetsNoStream) {
  DnstapLender lender(table_, options());
  Connection worker(io_);
  WorkerSlot& slot = serve(0, worker);
  lender.worker_came(slot);
  collector_.accept();
  slot.link.reset();
  collector_.send(ipc::control_frame(ipc::FrameControl::kAccept, ipc::kDnstapContentType));
  ASSERT_TRUE(run_until(io_, [this] {
    std::uint8_t octet = 0;
    return ::recv(collector_.connection.get(), &octet, 1, MSG_DONTWAIT) == 0;
  })) << "the stream is closed";
  Connection next(io_);
  lender.worker_came(serve(0, next));
  accept();
  EXPECT_EQ(messages(next, 2).size(), 2U);
}

}  // namespace dnstap_lender_test
}  // namespace pando::manager

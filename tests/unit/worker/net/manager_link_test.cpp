#include "worker/net/manager_link.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ipc/packet_socket.h"

namespace pando::worker {
namespace {

using std::chrono::milliseconds;

const Bytes kFailure = {0xFA};
const Bytes kAnswer = {0xA0};
constexpr milliseconds kShort{20};
constexpr milliseconds kForever{3'600'000};

/// A worker's link, and the manager's end of it.
class Link : public ::testing::Test {
 protected:
  Link() {
    char pattern[] = "/tmp/pando-link-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    listening_ = ipc::listen_packets(path(), std::nullopt).value();
  }
  ~Link() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string path() const { return directory_ + "/workers.sock"; }

  void connect(milliseconds reply_timeout) {
    ManagerLink::Handlers handlers;
    handlers.sockets = [] { return std::vector<std::pair<ipc::SocketDescription, int>>(); };
    link_.emplace(io_, ManagerLink::Identity{1, 2, path()}, std::move(handlers), reply_timeout);
    link_->start();
    manager_ = ipc::accept_packets(listening_.get()).value();
    ASSERT_TRUE(received<ipc::Hello>().has_value());
  }
  /// What the manager gets; nothing when that is something else or there is nothing.
  template <class Message>
  std::optional<Message> received() {
    ipc::Packet packet;
    if (!ipc::receive_packet(manager_.get(), packet).value()) return std::nullopt;
    ipc::FromWorker message = ipc::decode_from_worker(packet.data).value();
    if (!std::holds_alternative<Message>(message)) return std::nullopt;
    return std::get<Message>(std::move(message));
  }
  void say(const ipc::ToWorker& message) {
    ASSERT_TRUE(ipc::send_packet(manager_.get(), ipc::encode(message), {}).has_value());
  }
  /// The request's id; nothing when the manager did not get it.
  std::optional<std::uint64_t> ask() {
    ipc::Forward request;
    request.message = {1, 2, 3};
    link_->forward(std::move(request), kFailure,
                   [this](Bytes answer) { answers_.push_back(std::move(answer)); });
    const auto asked = received<ipc::Forward>();
    return asked ? std::optional<std::uint64_t>(asked->id) : std::nullopt;
  }
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(milliseconds(5));
    }
    return true;
  }
  /// As many requests as there are places, and nobody waits for their answers any more.
  std::vector<std::uint64_t> expire_all() {
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < ManagerLink::kMaxPending; ++i)
      if (const auto id = ask()) ids.push_back(*id);
    EXPECT_EQ(ids.size(), ManagerLink::kMaxPending);
    EXPECT_TRUE(run_until([&] { return answers_.size() == ids.size(); }));
    for (const Bytes& answer : answers_) EXPECT_EQ(answer, kFailure);
    return ids;
  }

  std::string directory_;
  asio::io_context io_{1};
  Fd listening_;
  Fd manager_;
  std::vector<Bytes> answers_;
  std::optional<ManagerLink> link_;
};

TEST_F(Link, AnAnswerGoesToItsClientAndFreesThePlace) {
  connect(kForever);
  const auto id = ask();
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(link_->pending(), 1U);
  say(ipc::Reply{*id, kAnswer});
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  EXPECT_EQ(answers_, std::vector<Bytes>{kAnswer});
  EXPECT_EQ(link_->unanswered(), 0U);
}

TEST_F(Link, AnExpiredRequestKeepsItsPlaceWhileTheManagerHasIt) {
  connect(kShort);
  expire_all();
  EXPECT_EQ(link_->pending(), 0U) << "nobody waits, so a worker that stops need not";
  EXPECT_FALSE(ask().has_value()) << "the manager has as many as it takes";
  ASSERT_EQ(answers_.size(), ManagerLink::kMaxPending + 1);
  EXPECT_EQ(answers_.back(), kFailure);
  EXPECT_TRUE(link_->connected());
}

TEST_F(Link, ALateAnswerFreesThePlaceAndIsGivenToNobody) {
  connect(kShort);
  const std::vector<std::uint64_t> ids = expire_all();
  ASSERT_GE(ids.size(), 3U);
  say(ipc::Reply{ids[0], kAnswer});
  say(ipc::Finished{{ids[1], ids[2]}});
  ASSERT_TRUE(run_until([&] { return link_->unanswered() + 3 == ManagerLink::kMaxPending; }));
  EXPECT_EQ(answers_.size(), ManagerLink::kMaxPending);
  const auto id = ask();
  ASSERT_TRUE(id.has_value());
  EXPECT_GT(*id, ids.back()) << "an id that is kept is not used again";
}

TEST_F(Link, WhenTheManagerIsLostEachClientIsToldOnce) {
  connect(kShort);
  expire_all();
  manager_.reset();
  ASSERT_TRUE(run_until([&] { return !link_->connected(); }));
  EXPECT_EQ(answers_.size(), ManagerLink::kMaxPending);
  EXPECT_EQ(link_->unanswered(), 0U);
}

/// It accepts, and sends no Setup. Timers are never early, so only the shortest time is looked at.
TEST_F(Link, AManagerThatRefusesItIsAskedLessOftenSoon) {
  using Clock = std::chrono::steady_clock;
  connect(kForever);
  manager_.reset();
  const auto is_refused = [&] {
    return run_until([&] {
      const auto accepted = ipc::accept_packets(listening_.get());
      return accepted && *accepted;
    });
  };
  for (int connection = 0; connection < 205; ++connection) ASSERT_TRUE(is_refused());
  const auto start = Clock::now();
  for (int connection = 0; connection < 5; ++connection) ASSERT_TRUE(is_refused());
  EXPECT_GE(Clock::now() - start, milliseconds(400));
}

TEST_F(Link, WhenTheManagerIsLostThoseWhoWaitAreTold) {
  connect(kForever);
  ASSERT_TRUE(ask().has_value());
  manager_.reset();
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  EXPECT_EQ(answers_, std::vector<Bytes>{kFailure});
}

}  // namespace
}  // namespace pando::worker

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
namespace manager_link_test {

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

  void connect(milliseconds reply_timeout, milliseconds hold_time = milliseconds(0)) {
    ManagerLink::Handlers handlers;
    handlers.sockets = [] { return std::vector<std::pair<ipc::SocketDescription, int>>(); };
    link_.emplace(io_, ManagerLink::Identity{1, 2, path()}, std::move(handlers), reply_timeout,
                  hold_time);
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
  std::optional<std::uint64_t> ask(ipc::ForwardKind kind = ipc::ForwardKind::kUpdate,
                                   std::uint8_t prerequisites = 1) {
    ipc::Forward request;
    request.kind = kind;
    request.message = {0, 1, 0x28, 0, 0, 1, 0, prerequisites, 0, 1, 0, 0};
    link_->forward(std::move(request), kFailure,
                   [this](Bytes answer) { answers_.push_back(std::move(answer)); });
    const auto asked = manager_ ? received<ipc::Forward>() : std::nullopt;
    return asked ? std::optional<std::uint64_t>(asked->id) : std::nullopt;
  }
  /// The manager ends, and the link knows.
  void lose_manager() {
    manager_.reset();
    ASSERT_TRUE(run_until([&] { return !link_->connected(); }));
  }
  /// As when the process has ended: nobody listens any more.
  void lose_manager_for_good() {
    listening_.reset();
    lose_manager();
  }
  /// The successor takes the link's next connection.
  void succeed() {
    if (!listening_) listening_ = ipc::listen_packets(path(), std::nullopt).value();
    ASSERT_TRUE(run_until([&] {
      auto accepted = ipc::accept_packets(listening_.get());
      if (accepted && *accepted) manager_ = std::move(*accepted);
      return static_cast<bool>(manager_);
    }));
    ASSERT_TRUE(received<ipc::Hello>().has_value());
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

TEST_F(Link, ASuccessorGetsWhatItsPredecessorHadNotAnswered) {
  connect(kForever, kForever);
  const auto query = ask(ipc::ForwardKind::kSignedQuery);
  const auto second = ask(ipc::ForwardKind::kSignedQuery);
  ASSERT_TRUE(query && second);
  lose_manager();
  EXPECT_TRUE(answers_.empty());
  succeed();
  for (const auto id : {query, second}) {
    const auto again = received<ipc::Forward>();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->id, *id);
  }
  say(ipc::Reply{*query, kAnswer});
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  EXPECT_EQ(answers_, std::vector<Bytes>{kAnswer});
  // A request that ends managers ends two.
  lose_manager();
  ASSERT_TRUE(run_until([&] { return answers_.size() == 2; }));
  EXPECT_EQ(answers_.back(), kFailure);
}

/// The first manager may have executed and acknowledged the update, and a later one as well. A
/// second execution would bring old data back.
TEST_F(Link, AnUpdateIsForOneManagerOnly) {
  connect(kForever, kForever);
  ASSERT_TRUE(ask(ipc::ForwardKind::kUpdate, 0));
  ASSERT_TRUE(ask(ipc::ForwardKind::kUpdate, 1));
  lose_manager();
  EXPECT_EQ(answers_, (std::vector<Bytes>{kFailure, kFailure}));
}

TEST_F(Link, RequestsWithoutAManagerWaitForASuccessor) {
  connect(kForever, kForever);
  lose_manager_for_good();
  EXPECT_TRUE(link_->takes_requests());
  ask(ipc::ForwardKind::kUpdate, 1);
  ask(ipc::ForwardKind::kNotify);
  link_->sign({0, 7, false, {1}, {2}}, [this](Bytes answer) { answers_.push_back(answer); });
  EXPECT_EQ(link_->pending(), 3U);
  EXPECT_TRUE(answers_.empty());
  link_->sign({0, 8, false, {}, {2}}, [this](Bytes answer) { answers_.push_back(answer); });
  EXPECT_EQ(answers_, std::vector<Bytes>{Bytes()}) << "the state of its stream was the manager's";
  succeed();
  EXPECT_TRUE(received<ipc::Forward>().has_value());
  EXPECT_TRUE(received<ipc::Forward>().has_value());
  EXPECT_TRUE(received<ipc::SignTransfer>().has_value());
}

TEST_F(Link, WithoutASuccessorTheWaitEnds) {
  connect(kForever, kShort);
  ASSERT_TRUE(ask(ipc::ForwardKind::kSignedQuery));
  lose_manager_for_good();
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  EXPECT_EQ(answers_, std::vector<Bytes>{kFailure});
  EXPECT_FALSE(link_->takes_requests());
  ask();
  EXPECT_EQ(answers_.size(), 2U) << "at once";
}

TEST_F(Link, WhoHasGivenUpMeanwhileIsNotSent) {
  connect(kShort, kForever);
  lose_manager_for_good();
  ask();
  ASSERT_TRUE(run_until([&] { return !answers_.empty(); }));
  succeed();
  EXPECT_FALSE(received<ipc::Forward>().has_value());
  EXPECT_EQ(link_->unanswered(), 0U);
}

}  // namespace manager_link_test
}  // namespace pando::worker

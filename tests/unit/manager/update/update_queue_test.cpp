#include "manager/update/update_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace pando::manager {
namespace update_queue_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Requests are known by their id; `taken` and `refused` are in the order of the calls.
class QueuedUpdates : public ::testing::Test {
 protected:
  void send(std::uint64_t id, std::size_t octets = 12,
            ipc::ForwardKind kind = ipc::ForwardKind::kUpdate) {
    ipc::Forward request;
    request.id = id;
    request.kind = kind;
    request.message.resize(octets);
    queue_.submit(std::move(request), [](const Bytes&) {});
  }
  void run() {
    io_.restart();
    io_.run();
  }

  asio::io_context io_{1};
  std::vector<std::uint64_t> taken_;
  std::vector<std::string> refused_;
  std::function<void()> on_take_;
  UpdateQueue queue_{io_,
                     [this](ipc::Forward&& request, const ForwardReply&) {
                       taken_.push_back(request.id);
                       if (on_take_) on_take_();
                     },
                     [this](ipc::Forward&& request, const ForwardReply&, std::string_view why) {
                       refused_.push_back(std::to_string(request.id) + " " + std::string(why));
                     },
                     {4, 1000, 2}};
};

TEST_F(QueuedUpdates, AreHandledAtOnceFromTheStart) {
  send(1);
  EXPECT_THAT(taken_, ElementsAre(1));
}

TEST_F(QueuedUpdates, AreHandledInTheOrderOfArrivalAfterAPause) {
  queue_.pause();
  for (const std::uint64_t id : {1U, 2U, 3U}) send(id);
  EXPECT_THAT(taken_, IsEmpty());
  queue_.resume();
  EXPECT_THAT(taken_, ElementsAre(1, 2)) << "a slice";
  send(4);
  EXPECT_THAT(taken_, ElementsAre(1, 2));
  run();
  EXPECT_THAT(taken_, ElementsAre(1, 2, 3, 4));
  send(5);
  EXPECT_THAT(taken_, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(QueuedUpdates, DoNotHoldUpSignedQueries) {
  queue_.pause();
  send(1);
  send(2, 12, ipc::ForwardKind::kSignedQuery);
  send(3, 12, ipc::ForwardKind::kNotify);
  EXPECT_THAT(taken_, ElementsAre(2));
}

TEST_F(QueuedUpdates, AreRefusedBeyondTheBounds) {
  queue_.pause();
  for (const std::uint64_t id : {1U, 2U, 3U, 4U, 5U}) send(id);
  EXPECT_THAT(refused_, ElementsAre("5 too many requests wait already"));
  queue_.resume();
  run();
  EXPECT_THAT(taken_, ElementsAre(1, 2, 3, 4));
  queue_.pause();
  send(6, 2000);  // the bound of octets is not reached before this request
  send(7);
  EXPECT_THAT(refused_,
              ElementsAre("5 too many requests wait already", "7 too many requests wait already"));
  queue_.resume();
  send(8);
  EXPECT_THAT(taken_, ElementsAre(1, 2, 3, 4, 6, 8)) << "the octets are free again";
}

TEST_F(QueuedUpdates, AreRejectedUntilTheQueueResumes) {
  queue_.pause();
  send(1);
  queue_.reject("why");
  send(2);
  EXPECT_THAT(refused_, ElementsAre("1 why", "2 why"));
  EXPECT_EQ(queue_.waiting(), 0U);
  queue_.resume();
  send(3);
  EXPECT_THAT(taken_, ElementsAre(3));
}

TEST_F(QueuedUpdates, AreRejectedWhenTheQueueIsToldSoWhileItHandlesOne) {
  queue_.pause();
  for (const std::uint64_t id : {1U, 2U, 3U}) send(id);
  on_take_ = [this] { queue_.reject("ended"); };
  queue_.resume();
  run();
  EXPECT_THAT(taken_, ElementsAre(1));
  EXPECT_THAT(refused_, ElementsAre("2 ended", "3 ended"));
}

TEST_F(QueuedUpdates, AreRefusedWhenTheWorkerHasGivenUpWaiting) {
  UpdateQueue impatient{
      io_,
      [this](ipc::Forward&& request, const ForwardReply&) { taken_.push_back(request.id); },
      [this](ipc::Forward&&, const ForwardReply&, std::string_view why) {
        refused_.emplace_back(why);
      },
      {4, 1000, 2, std::chrono::milliseconds(-1)}};
  impatient.pause();
  for (int i = 0; i < 3; ++i) impatient.submit(ipc::Forward{}, [](const Bytes&) {});
  impatient.resume();
  run();
  EXPECT_THAT(taken_, IsEmpty());
  EXPECT_THAT(refused_, ElementsAre("it waited for too long", "it waited for too long",
                                    "it waited for too long"));
}

}  // namespace update_queue_test
}  // namespace pando::manager

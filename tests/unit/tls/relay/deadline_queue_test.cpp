#include "tls/relay/deadline_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace pando::tls {
namespace deadline_queue_test {

using std::chrono::milliseconds;

struct Thing {
  DeadlineQueue<Thing>::Place place{};
  int number = 0;
};

class Deadline : public ::testing::Test {
 protected:
  void add(Thing& thing, int number) {
    thing.number = number;
    thing.place = queue_.add(thing);
  }

  asio::io_context io_{1};
  std::vector<int> expired_;
  DeadlineQueue<Thing> queue_{io_, [this](Thing& thing) {
                                expired_.push_back(thing.number);
                                queue_.remove(thing.place);
                              }};
};

TEST_F(Deadline, ThingsExpireInTheirOrder) {
  queue_.set_time(milliseconds(5));
  Thing first;
  Thing second;
  add(first, 1);
  add(second, 2);
  io_.run();
  EXPECT_EQ(expired_, (std::vector<int>{1, 2}));
}

TEST_F(Deadline, WhatIsRemovedDoesNotExpireAndKeepsNoTimerForOthers) {
  queue_.set_time(milliseconds(5));
  Thing first;
  Thing second;
  add(first, 1);
  add(second, 2);
  queue_.remove(first.place);
  io_.run();
  EXPECT_EQ(expired_, (std::vector<int>{2}));
}

TEST_F(Deadline, AQueueThatWasEmptyWaitsAgain) {
  queue_.set_time(milliseconds(1));
  Thing thing;
  add(thing, 1);
  io_.run();
  io_.restart();
  add(thing, 2);
  io_.run();
  EXPECT_EQ(expired_, (std::vector<int>{1, 2}));
}

}  // namespace deadline_queue_test
}  // namespace pando::tls

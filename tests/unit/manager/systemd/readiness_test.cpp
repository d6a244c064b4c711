#include "manager/systemd/readiness.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/systemd/notify_socket.h"

namespace pando::manager::systemd::readiness_test {

class TheReadiness : public ::testing::Test {
 protected:
  /// All that was told since the last call, without the times of reloads.
  std::string told() {
    socket_.stored();
    std::istringstream lines(std::exchange(socket_.other_lines, {}));
    std::string result;
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("MONOTONIC_USEC=")) result += line + ";";
    return result;
  }

  testing::NotifySocket socket_;
  std::optional<Readiness::Closed> closed_;
  std::string status_ = "1 zones";
  std::string became_ready_;
  Readiness readiness_{
      Readiness::Hooks{[this] { return closed_; }, [this] { return status_; },
                       [this](const std::string& reason) { became_ready_ += reason; }}};
};

TEST_F(TheReadiness, IsToldOnceWithTheFirstReason) {
  readiness_.check();
  EXPECT_EQ(told(), "") << "there is no reason yet";
  readiness_.announce("first");
  readiness_.check();
  EXPECT_EQ(told(), "READY=1;STATUS=1 zones;");
  status_ = "2 zones";
  readiness_.announce("second");
  EXPECT_EQ(told(), "STATUS=2 zones;");
  EXPECT_EQ(became_ready_, "first");
}

TEST_F(TheReadiness, WaitsForAnOpenAddress) {
  closed_ = Readiness::Closed{1, "in use"};
  readiness_.announce("zones");
  EXPECT_EQ(told(), "STATUS=no address is open: in use;");
  closed_.reset();
  readiness_.check();
  EXPECT_EQ(told(), "READY=1;STATUS=1 zones;");
}

TEST_F(TheReadiness, AReloadWithoutAnOpenAddressIsNoReason) {
  closed_ = Readiness::Closed{1, "in use"};
  readiness_.announce("zones");
  told();
  readiness_.reload_begins();
  readiness_.check();
  EXPECT_EQ(told(), "");
  readiness_.reload_ends();
  EXPECT_EQ(told(), "STATUS=no address is open: in use;");
  closed_.reset();
  readiness_.check();
  EXPECT_EQ(told(), "READY=1;STATUS=1 zones;");
  EXPECT_EQ(became_ready_, "zones");
}

TEST_F(TheReadiness, AReloadThatEndsBeforeZonesAreThereIsNoReason) {
  readiness_.reload_begins();
  readiness_.reload_ends();
  EXPECT_EQ(told(), "");
}

TEST_F(TheReadiness, AReasonDuringAReloadWaitsForItsEnd) {
  readiness_.reload_begins();
  readiness_.announce("zones");
  EXPECT_EQ(told(), "");
  readiness_.reload_ends();
  EXPECT_EQ(told(), "READY=1;STATUS=1 zones;");
}

TEST_F(TheReadiness, AReloadBeginsAndEndsOnceReady) {
  readiness_.announce("zones");
  told();
  closed_ = Readiness::Closed{1, "gone meanwhile"};
  readiness_.reload_begins();
  readiness_.announce("more");
  EXPECT_EQ(told(), "RELOADING=1;");
  status_ = "2 zones";
  readiness_.reload_ends();
  EXPECT_EQ(told(), "READY=1;STATUS=2 zones;") << "systemd would wait for this for ever";
}

TEST_F(TheReadiness, NothingFollowsTheEnd) {
  readiness_.announce("zones");
  readiness_.reload_begins();
  told();
  readiness_.stops();
  readiness_.reload_ends();
  readiness_.announce("more");
  readiness_.check();
  EXPECT_EQ(told(), "STOPPING=1;");
}

}  // namespace pando::manager::systemd::readiness_test

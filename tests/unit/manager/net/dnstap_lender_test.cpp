#include "manager/net/dnstap_lender.h"

#include <gtest/gtest.h>

#include "../frame_collector.h"
#include "../run_until.h"
#include "ipc/frame_stream.h"

namespace pando::manager {
namespace dnstap_lender_test {

using testing::FrameCollector;
using testing::run_until;

/// One message to a worker.
struct Told {
  ipc::Dnstap what;
  bool with_stream = false;
  bool operator==(const Told&) const = default;
};

class DnstapLenderTest : public ::testing::Test {
 protected:
  DnstapOptions options() {
    DnstapOptions made;
    made.socket = collector_.path;
    made.what.on = true;
    made.what.queries = true;
    return made;
  }
  std::unique_ptr<DnstapLender> lender(std::optional<DnstapOptions> chosen) {
    DnstapLender::Calls calls;
    calls.tell = [this](std::uint32_t, const ipc::Dnstap& what, Fd stream) {
      if (has_worker_) told_.push_back({what, static_cast<bool>(stream)});
      if (has_worker_ && stream) stream_ = std::move(stream);
      return has_worker_;
    };
    calls.serving = [this] { return std::vector<std::uint32_t>(has_worker_ ? 1 : 0); };
    return std::make_unique<DnstapLender>(io_, std::move(chosen), std::move(calls));
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
  /// Waits until the worker was told `count` times, and gives what.
  std::vector<Told> told(std::size_t count) {
    EXPECT_TRUE(run_until(io_, [&] { return told_.size() >= count; }));
    return std::exchange(told_, {});
  }
  /// Waits until the lender has closed the collector's connection.
  bool is_closed() {
    return run_until(io_, [this] {
      std::uint8_t octet = 0;
      return ::recv(collector_.connection.get(), &octet, 1, MSG_DONTWAIT) == 0;
    });
  }
  /// Runs the loop for a while in which nothing is to happen.
  void idle() {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(150));
  }

  asio::io_context io_;
  FrameCollector collector_;
  bool has_worker_ = true;
  std::vector<Told> told_;
  Fd stream_;
};

TEST_F(DnstapLenderTest, AWorkerGetsSettingsAtOnceAndTheStreamWhenItIsOpen) {
  const auto lends = lender(options());
  lends->worker_came(0);
  EXPECT_EQ(told(1), (std::vector<Told>{{options().what, false}}));
  accept();
  EXPECT_EQ(told(1), (std::vector<Told>{{options().what, true}}));
  EXPECT_EQ(collector_.received(),
            ipc::control_frame(ipc::FrameControl::kStart, ipc::kDnstapContentType));
}

TEST_F(DnstapLenderTest, WithoutConfigurationAWorkerIsToldToStop) {
  const auto lends = lender(std::nullopt);
  lends->worker_came(0);
  EXPECT_EQ(told(1), (std::vector<Told>{{ipc::Dnstap{}, false}}));
  idle();
  collector_.accept();
  EXPECT_FALSE(collector_.connection);
}

TEST_F(DnstapLenderTest, ALostStreamIsOpenedAgainOnce) {
  const auto lends = lender(options());
  lends->worker_came(0);
  lends->stream_lost(0);  // there was none
  lends->stream_lost(7);
  accept();
  EXPECT_EQ(told(2).size(), 2U);
  for (int i = 0; i < 1000; ++i) lends->stream_lost(0);
  accept();
  EXPECT_EQ(told(1), (std::vector<Told>{{options().what, true}}));
  idle();
  collector_.accept();
  EXPECT_FALSE(collector_.connection) << "one stream a worker, whatever it reports";
}

TEST_F(DnstapLenderTest, AnAbsentCollectorIsTriedAgain) {
  const std::string aside = collector_.path + ".aside";
  std::filesystem::rename(collector_.path, aside);
  const auto lends = lender(options());
  lends->worker_came(0);
  idle();
  std::filesystem::rename(aside, collector_.path);
  accept();
  EXPECT_TRUE(told(2).back().with_stream);
}

TEST_F(DnstapLenderTest, NewSettingsLeaveTheStreamAlone) {
  const auto lends = lender(options());
  lends->worker_came(0);
  accept();
  told(2);
  auto changed = options();
  changed.what.sample = 10;
  lends->set(changed);
  EXPECT_EQ(told(1), (std::vector<Told>{{changed.what, false}}));
  lends->set(changed);
  idle();
  EXPECT_TRUE(told(0).empty()) << "nothing has changed";
  collector_.accept();
  EXPECT_FALSE(collector_.connection);
}

TEST_F(DnstapLenderTest, SwitchingOffEndsAllAttempts) {
  const auto lends = lender(options());
  lends->worker_came(0);
  collector_.accept();
  lends->set(std::nullopt);
  EXPECT_EQ(told(2), (std::vector<Told>{{options().what, false}, {ipc::Dnstap{}, false}}));
  EXPECT_TRUE(is_closed()) << "the handshake has ended";
  idle();
  EXPECT_TRUE(told(0).empty());
  lends->set(options());
  accept();
  EXPECT_TRUE(told(2).back().with_stream);
}

TEST_F(DnstapLenderTest, AWorkerThatHasGoneGetsNoStream) {
  const auto lends = lender(options());
  lends->worker_came(0);
  collector_.accept();
  has_worker_ = false;
  collector_.send(ipc::control_frame(ipc::FrameControl::kAccept, ipc::kDnstapContentType));
  EXPECT_TRUE(is_closed()) << "the stream was given to nobody";
  told(1);
  has_worker_ = true;
  lends->worker_came(0);
  accept();
  EXPECT_TRUE(told(2).back().with_stream);
}

}  // namespace dnstap_lender_test
}  // namespace pando::manager

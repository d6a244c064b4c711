#include "manager/net/frame_stream_handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../frame_collector.h"
#include "../run_until.h"
#include "ipc/frame_stream.h"

namespace pando::manager {
namespace frame_stream_handshake_test {

using testing::FrameCollector;

constexpr std::string_view kType = "protobuf:test";
constexpr std::chrono::milliseconds kLongTime{120'000};

class FrameStreamHandshakeTest : public ::testing::Test {
 protected:
  std::shared_ptr<FrameStreamHandshake> start(const std::string& path,
                                              std::chrono::milliseconds limit = kLongTime) {
    return FrameStreamHandshake::start(io_, path, kType, limit, [this](Result<Fd> result) {
      ++calls_;
      result_ = std::move(result);
    });
  }
  bool wait() {
    return testing::run_until(io_, [this] { return calls_ > 0; });
  }
  /// The result of a handshake whose collector sends `octets`, then closes if `closes`.
  Status result_of(ByteView octets, bool closes = false) {
    const auto handshake = start(collector_.path);
    collector_.accept();
    if (!octets.empty()) collector_.send(octets);
    if (closes) collector_.connection.reset();
    EXPECT_TRUE(wait());
    EXPECT_EQ(calls_, 1);
    if (!*result_) return pass(*result_);
    return {};
  }

  asio::io_context io_;
  FrameCollector collector_;
  int calls_ = 0;
  std::optional<Result<Fd>> result_;
};

TEST_F(FrameStreamHandshakeTest, AnAcceptedStreamIsGivenAway) {
  const auto handshake = start(collector_.path);
  collector_.accept();
  EXPECT_EQ(collector_.received(), ipc::control_frame(ipc::FrameControl::kReady, kType));
  const Bytes accept = ipc::control_frame(ipc::FrameControl::kAccept, kType);
  collector_.send(ByteView(accept).first(5));  // in two parts
  io_.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(calls_, 0);
  collector_.send(ByteView(accept).subspan(5));
  ASSERT_TRUE(wait());
  ASSERT_TRUE(*result_) << result_->error().text;
  EXPECT_EQ(collector_.received(), ipc::control_frame(ipc::FrameControl::kStart, kType));
  EXPECT_EQ(::send((*result_)->get(), "data", 4, MSG_NOSIGNAL), 4);
  EXPECT_EQ(collector_.received(), (Bytes{'d', 'a', 't', 'a'}));
  EXPECT_EQ(calls_, 1);
}

TEST_F(FrameStreamHandshakeTest, ACollectorThatIsNotThereIsAnErrorLater) {
  const auto handshake = start(collector_.path + "-not");
  EXPECT_EQ(calls_, 0) << "never from within start()";
  ASSERT_TRUE(wait());
  EXPECT_FALSE(*result_);
}

TEST_F(FrameStreamHandshakeTest, AQueueThatIsFullIsAnError) {
  std::vector<std::shared_ptr<FrameStreamHandshake>> handshakes;
  for (int i = 0; i < 16 && calls_ == 0; ++i) {  // nobody accepts
    handshakes.push_back(start(collector_.path));
    io_.poll();
    io_.restart();
  }
  ASSERT_EQ(calls_, 1);
  EXPECT_FALSE(*result_);
  for (const auto& handshake : handshakes) handshake->cancel();
}

TEST_F(FrameStreamHandshakeTest, GarbageIsAnError) {
  const std::string_view text = "220 mail.example ESMTP";
  EXPECT_FALSE(result_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

TEST_F(FrameStreamHandshakeTest, AnotherControlFrameIsAnError) {
  EXPECT_FALSE(result_of(ipc::control_frame(ipc::FrameControl::kFinish, {})));
}

TEST_F(FrameStreamHandshakeTest, AnotherContentTypeIsRefused) {
  const Status result = result_of(ipc::control_frame(ipc::FrameControl::kAccept, "protobuf:x"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kDenied);
}

TEST_F(FrameStreamHandshakeTest, OctetsBehindTheAcceptAreAnError) {
  Bytes octets = ipc::control_frame(ipc::FrameControl::kAccept, kType);
  octets.push_back(0);
  EXPECT_FALSE(result_of(octets));
}

TEST_F(FrameStreamHandshakeTest, AnEndBeforeTheAcceptIsAnError) {
  const Bytes accept = ipc::control_frame(ipc::FrameControl::kAccept, kType);
  EXPECT_FALSE(result_of(ByteView(accept).first(9), true));
}

TEST_F(FrameStreamHandshakeTest, ASilentCollectorHasLimitedTime) {
  const auto handshake = start(collector_.path, std::chrono::milliseconds(20));
  collector_.accept();
  ASSERT_TRUE(wait());
  ASSERT_FALSE(*result_);
  EXPECT_EQ(result_->error().code, Errc::kTruncated);
}

TEST_F(FrameStreamHandshakeTest, ACancelledHandshakeTellsNobody) {
  const auto one = start(collector_.path);
  const auto other = start(collector_.path + "-not");
  one->cancel();
  other->cancel();
  io_.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(calls_, 0);
}

}  // namespace frame_stream_handshake_test
}  // namespace pando::manager

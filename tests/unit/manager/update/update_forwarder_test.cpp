#include "manager/update/update_forwarder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "manager/request/parsed_request.h"
#include "tests/unit/manager/loopback.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/update_builder.h"

namespace pando::manager {
namespace update_forwarder_test {

using ::testing::HasSubstr;
using testing::LoopbackSocket;
using testing::name;
using testing::UpdateBuilder;

/// A TCP socket on 127.0.0.1 that plays a primary.
class Primary {
 public:
  Primary() { EXPECT_EQ(::listen(listening_.fd.get(), 10), 0); }
  [[nodiscard]] const Endpoint& endpoint() const { return listening_.endpoint; }
  void close() { listening_.fd = {}; }

  /// Whether an update has come; it is in `message` then.
  bool receive(Bytes& message) {
    if (connection_.get() < 0)
      connection_ = Fd(::accept4(listening_.fd.get(), nullptr, nullptr, 0));
    if (connection_.get() < 0) return false;
    std::uint8_t prefix[2];
    EXPECT_EQ(::recv(connection_.get(), prefix, 2, MSG_WAITALL), 2);
    message.resize(load_be16(prefix));
    const auto want = static_cast<ssize_t>(message.size());
    EXPECT_EQ(::recv(connection_.get(), message.data(), message.size(), MSG_WAITALL), want);
    return true;
  }
  void send(const Bytes& message) {
    Bytes framed;
    append_be16(framed, static_cast<std::uint16_t>(message.size()));
    append(framed, message);
    EXPECT_GT(::send(connection_.get(), framed.data(), framed.size(), MSG_NOSIGNAL), 0);
  }

 private:
  LoopbackSocket listening_{SOCK_STREAM | SOCK_NONBLOCK};
  Fd connection_;
};

class Forwarder : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Result<Bytes>>>;

  static Bytes update() {
    UpdateBuilder builder;
    builder.add("new 60 A 192.0.2.9");
    return builder.message();
  }
  Answer forward(UpdateForwarder& forwarder, const std::vector<Endpoint>& primaries) {
    auto answer = std::make_shared<std::optional<Result<Bytes>>>();
    forwarder.forward({update(), primaries, std::nullopt, true},
                      [answer](Result<Bytes> result) { *answer = std::move(result); });
    return answer;
  }
  bool run_until(const std::function<bool()>& done) { return testing::run_until(io_, done); }
  static UpdateForwarder::Options patient() {
    UpdateForwarder::Options options;
    options.timeout = options.connect_timeout = std::chrono::seconds(60);
    return options;
  }

  asio::io_context io_{1};
  Network network_;
};

TEST_F(Forwarder, UpdatesThatNobodyHasVerifiedAreSpread) {
  Primary primary;
  UpdateForwarder::Options options = patient();
  options.unproven_per_second = 1;
  options.max_per_primary = 1000;
  UpdateForwarder forwarder(io_, network_, options);
  unsigned refused = 0;
  const auto send = [&](bool proven) {
    refused = 0;
    for (int i = 0; i < 60; ++i)  // at the pace it would take a minute
      forwarder.forward({update(), {primary.endpoint()}, std::nullopt, proven},
                        [&](const Result<Bytes>& result) { refused += result ? 0 : 1; });
  };
  send(false);
  EXPECT_GT(refused, 0U);
  send(true);
  EXPECT_EQ(refused, 0U);
  forwarder.stop();
}

TEST_F(Forwarder, ChangesNothingButTheId) {
  Primary primary;
  UpdateForwarder forwarder(io_, network_, patient());
  const Answer answer = forward(forwarder, {primary.endpoint()});
  Bytes message;
  ASSERT_TRUE(run_until([&] { return primary.receive(message); }));
  Bytes reply = make_reply(ParsedRequest(message), dns::Rcode::kNXRRSet, false);
  const Bytes original = update();
  ASSERT_EQ(message.size(), original.size());
  EXPECT_TRUE(std::equal(message.begin() + 2, message.end(), original.begin() + 2));
  primary.send(reply);
  ASSERT_TRUE(run_until([&] { return answer->has_value(); }));
  ASSERT_TRUE((*answer)->has_value());
  std::copy(original.begin(), original.begin() + 2, reply.begin());  // the client's ID
  EXPECT_EQ(***answer, reply);
  EXPECT_EQ(forwarder.counters().forwarded, 1U);
}

TEST_F(Forwarder, RefusesAnAnswerToSomethingElse) {
  Primary primary;
  UpdateForwarder forwarder(io_, network_, patient());
  const Answer answer = forward(forwarder, {primary.endpoint()});
  Bytes message;
  ASSERT_TRUE(run_until([&] { return primary.receive(message); }));
  Bytes reply = make_reply(ParsedRequest(message), dns::Rcode::kNoError, false);
  reply[1] = static_cast<std::uint8_t>(reply[1] + 1);
  primary.send(reply);
  ASSERT_TRUE(run_until([&] { return answer->has_value(); }));
  ASSERT_FALSE((*answer)->has_value());
  EXPECT_THAT((*answer)->error().text, HasSubstr("no answer to the update"));
  EXPECT_EQ(forwarder.counters().failed, 1U);
}

TEST_F(Forwarder, TriesTheNextPrimaryWhenOneCannotBeReached) {
  Primary closed, primary;
  closed.close();
  UpdateForwarder forwarder(io_, network_, patient());
  const Answer answer = forward(forwarder, {closed.endpoint(), primary.endpoint()});
  Bytes message;
  ASSERT_TRUE(run_until([&] { return primary.receive(message); }));
  primary.send(make_reply(ParsedRequest(message), dns::Rcode::kNoError, false));
  ASSERT_TRUE(run_until([&] { return answer->has_value(); }));
  EXPECT_TRUE((*answer)->has_value());
}

TEST_F(Forwarder, SilenceAfterTheRequestEndsIt) {
  Primary silent, next;
  UpdateForwarder::Options options;
  options.timeout = std::chrono::milliseconds(100);
  UpdateForwarder forwarder(io_, network_, options);
  const Answer answer = forward(forwarder, {silent.endpoint(), next.endpoint()});
  ASSERT_TRUE(run_until([&] { return answer->has_value(); }));
  EXPECT_FALSE((*answer)->has_value());
  Bytes message;
  EXPECT_FALSE(next.receive(message)) << "the first may have done it";
}

TEST_F(Forwarder, OnePrimaryMayHaveSoManyUnderWay) {
  Primary silent, other;
  UpdateForwarder::Options options = patient();
  options.max_per_primary = 2;
  options.max_running = 3;
  UpdateForwarder forwarder(io_, network_, options);
  const Answer first = forward(forwarder, {silent.endpoint()});
  const Answer second = forward(forwarder, {silent.endpoint()});
  const Answer third = forward(forwarder, {silent.endpoint()});
  ASSERT_TRUE(third->has_value()) << "at once";
  EXPECT_EQ((*third)->error().code, Errc::kFull);
  EXPECT_FALSE(forward(forwarder, {other.endpoint()})->has_value()) << "has room";
  EXPECT_TRUE(forward(forwarder, {other.endpoint()})->has_value()) << "too many together";
  Bytes message;
  ASSERT_TRUE(run_until([&] { return silent.receive(message); }));
  silent.send(make_reply(ParsedRequest(message), dns::Rcode::kNoError, false));
  ASSERT_TRUE(run_until([&] { return first->has_value() || second->has_value(); }));
  EXPECT_FALSE(forward(forwarder, {silent.endpoint()})->has_value()) << "room again";
  network_.stop();
}

TEST_F(Forwarder, APrimaryThatIsSilentLeavesRoomForOthers) {
  Primary silent, other;
  UpdateForwarder::Options options;
  options.timeout = std::chrono::milliseconds(100);
  options.max_running = options.max_per_primary = 8;
  UpdateForwarder forwarder(io_, network_, options);
  const Answer first = forward(forwarder, {silent.endpoint()});
  ASSERT_TRUE(run_until([&] { return first->has_value(); }));
  std::uint32_t under_way = 0;
  for (int i = 0; i < 20; ++i)
    if (!forward(forwarder, {silent.endpoint()})->has_value()) ++under_way;
  EXPECT_EQ(under_way, options.max_per_silent_primary);
  const Answer last = forward(forwarder, {silent.endpoint()});
  ASSERT_TRUE(last->has_value());
  EXPECT_THAT((*last)->error().text, HasSubstr("does not answer"));
  EXPECT_FALSE(forward(forwarder, {other.endpoint()})->has_value()) << "has room";
  network_.stop();
}

TEST_F(Forwarder, ManySilentPrimariesTogetherLeaveRoomForOthers) {
  std::array<Primary, 4> silent;
  Primary other;
  UpdateForwarder::Options options;
  options.timeout = std::chrono::milliseconds(100);
  options.max_running = 8;
  options.max_silent = 5;
  UpdateForwarder forwarder(io_, network_, options);
  for (const Primary& primary : silent) {
    const Answer first = forward(forwarder, {primary.endpoint()});
    ASSERT_TRUE(run_until([&] { return first->has_value(); }));
  }
  std::uint32_t under_way = 0;
  for (const Primary& primary : silent)
    for (int i = 0; i < 4; ++i)
      if (!forward(forwarder, {primary.endpoint()})->has_value()) ++under_way;
  EXPECT_EQ(under_way, options.max_silent);
  EXPECT_FALSE(forward(forwarder, {other.endpoint()})->has_value()) << "has room";
  network_.stop();
}

}  // namespace update_forwarder_test
}  // namespace pando::manager

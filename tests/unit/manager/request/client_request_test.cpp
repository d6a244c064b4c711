#include "manager/request/client_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/commit/runtime_from.h"
#include "tests/unit/manager/update_builder.h"

namespace pando::manager {
namespace client_request_test {

using dns::Rcode;
using testing::name;
using testing::UpdateBuilder;

constexpr std::uint64_t kNow = 1'800'000'000;

class Arrived : public ::testing::Test {
 protected:
  [[nodiscard]] Bytes signed_update() const {
    Bytes message = UpdateBuilder().add("new 60 A 192.0.2.9").message(7);
    auto client = dns::TsigSession::for_request(*runtime_->keys.find(name("ours.")));
    EXPECT_TRUE(client.sign(message, kNow).has_value());
    return message;
  }
  ClientRequest arrive(Bytes message, ipc::ForwardKind kind = ipc::ForwardKind::kUpdate) const {
    ipc::Forward forward;
    forward.kind = kind;
    forward.message = std::move(message);
    forward.response = {1, 2, 3};
    return {std::move(forward), runtime_, nullptr};
  }

  RuntimePtr runtime_ = testing::runtime_from(R"(
server: {listen: [127.0.0.1@5300]}
keys:
  - {name: ours, algorithm: hmac-sha256, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}
zones: []
)");
};

TEST_F(Arrived, AVerifiedRequestHasTheNameOfItsKey) {
  ClientRequest request = arrive(signed_update());
  EXPECT_EQ(request.key(), nullptr) << "not verified yet";
  ASSERT_TRUE(request.verify(kNow));
  ASSERT_NE(request.key(), nullptr);
  EXPECT_EQ(*request.key(), name("ours."));
  EXPECT_EQ(request.rcode(), Rcode::kNoError);
}

TEST_F(Arrived, AnUnsignedRequestIsVerifiedAndHasNoKey) {
  ClientRequest request = arrive(UpdateBuilder().message(7));
  ASSERT_TRUE(request.verify(kNow));
  EXPECT_EQ(request.key(), nullptr);
  const Bytes reply = make_reply(request.parsed(), Rcode::kRefused, false);
  EXPECT_EQ(request.sign(reply, kNow), reply);
}

TEST_F(Arrived, AForgedRequestHasTheVerdictAndNoKey) {
  Bytes message = signed_update();
  message[message.size() - 20] ^= 1;
  ClientRequest request = arrive(std::move(message));
  EXPECT_FALSE(request.verify(kNow));
  EXPECT_EQ(request.rcode(), Rcode::kNotAuth);
  EXPECT_EQ(request.tsig_error(), Rcode::kBadSig);
  EXPECT_EQ(request.key(), nullptr);
}

TEST_F(Arrived, OfAnotherOpcodeDoesNotFitItsKind) {
  EXPECT_TRUE(arrive(signed_update()).fits_kind());
  EXPECT_FALSE(arrive(signed_update(), ipc::ForwardKind::kNotify).fits_kind());
  EXPECT_TRUE(arrive(signed_update(), ipc::ForwardKind::kSignedQuery).fits_kind())
      << "the refusal by a worker is signed here";
  Bytes response = signed_update();
  response[2] |= 0x80;
  EXPECT_FALSE(arrive(std::move(response)).fits_kind());
}

TEST_F(Arrived, AWorkersResponseIsTakenOnce) {
  ClientRequest request = arrive(signed_update(), ipc::ForwardKind::kSignedQuery);
  EXPECT_EQ(request.take_response(), (Bytes{1, 2, 3}));
}

}  // namespace client_request_test
}  // namespace pando::manager

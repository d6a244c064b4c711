#include "manager/workers/transfer_signer.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/query_builder.h"

namespace pando::manager {
namespace transfer_signer_test {

using pando::testing::name;
using pando::testing::Query;
using pando::testing::read_response;

constexpr std::uint64_t kNow = 1'700'000'000;

std::shared_ptr<dns::TsigKeyring> ring(std::uint8_t byte = 1) {
  auto keys = std::make_shared<dns::TsigKeyring>();
  EXPECT_TRUE(keys->add({name("k."), dns::TsigAlgorithm::kSha256, Bytes(32, byte)}));
  return keys;
}

class TransferSignerTest : public ::testing::Test {
 protected:
  TransferSignerTest() {
    EXPECT_TRUE(client_.sign(request_, kNow));
    message_ = request_;  // any unsigned message with a question will do
    message_.resize(12 + 17 + 4);
    message_[2] |= 0x80;
    message_[11] = 0;
  }
  Bytes sign(std::uint64_t stream, bool first, bool last) {
    ipc::SignTransfer message{1, stream, last, first ? request_ : Bytes(), message_};
    return signer_.sign(std::move(message), kNow);
  }

  std::shared_ptr<dns::TsigKeyring> keys_ = ring();
  TransferSigner signer_{[this] { return keys_; }};
  const std::shared_ptr<dns::TsigKeyring> client_keys_ = keys_;
  dns::TsigSession client_ = dns::TsigSession::for_request(*client_keys_->find(name("k.")));
  Bytes request_ = Query{.qname = "www.example.com."}.octets();
  Bytes message_;
};

TEST_F(TransferSignerTest, SignsAStreamThatTheClientCanVerify) {
  for (int i = 0; i < 5; ++i) {
    const Bytes message = sign(9, i == 0, i == 4);
    EXPECT_TRUE(client_.verify_response(message, kNow)) << i;
  }
  EXPECT_TRUE(client_.finish());
  EXPECT_EQ(signer_.streams(), 0U);
}

TEST_F(TransferSignerTest, AStreamOutlivesTheRemovalOfItsKey) {
  EXPECT_TRUE(client_.verify_response(sign(9, true, false), kNow));
  keys_ = std::make_shared<dns::TsigKeyring>();
  EXPECT_TRUE(client_.verify_response(sign(9, false, true), kNow));
}

TEST_F(TransferSignerTest, AForgedRequestGetsAnErrorInPlaceOfTheFirstMessage) {
  keys_ = ring(2);
  const Bytes response = sign(9, true, false);
  EXPECT_EQ(read_response(response).rcode, static_cast<std::uint16_t>(dns::Rcode::kNotAuth));
  EXPECT_EQ(signer_.streams(), 0U);
  EXPECT_TRUE(sign(9, false, false).empty());
}

TEST_F(TransferSignerTest, NothingIsSignedWithoutAVerifiedRequest) {
  EXPECT_TRUE(sign(9, false, false).empty());
  request_ = Query{}.octets();  // no TSIG at all
  EXPECT_TRUE(sign(9, true, false).empty());
}

TEST_F(TransferSignerTest, StreamsAreBounded) {
  for (std::uint64_t i = 0; i < TransferSigner::kMaxStreams; ++i)
    EXPECT_FALSE(sign(i, true, false).empty());
  EXPECT_TRUE(sign(9999, true, false).empty());
}

TEST_F(TransferSignerTest, AnAbortGivesTheStreamsPlaceBack) {
  for (std::uint64_t i = 0; i < TransferSigner::kMaxStreams; ++i)
    EXPECT_FALSE(sign(i, true, false).empty());
  signer_.abort(5);
  EXPECT_FALSE(sign(9999, true, false).empty());
  EXPECT_TRUE(sign(5, false, false).empty());
  signer_.abort(5);  // of a stream that is gone
  EXPECT_EQ(signer_.streams(), TransferSigner::kMaxStreams);
}

}  // namespace transfer_signer_test
}  // namespace pando::manager

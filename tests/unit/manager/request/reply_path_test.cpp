#include "manager/request/reply_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/commit/runtime_from.h"
#include "tests/unit/manager/update_builder.h"

namespace pando::manager {
namespace reply_path_test {

using dns::Rcode;
using Execution = ReplyPath::Execution;
using ::testing::IsEmpty;
using testing::name;
using ::testing::SizeIs;
using testing::UpdateBuilder;

constexpr const char* kConfiguration = R"(
server: {listen: [127.0.0.1@5300]}
keys:
  - {name: ours, algorithm: hmac-sha256, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}
zones: []
)";
constexpr const char* kOtherKeys = R"(
server: {listen: [127.0.0.1@5300]}
keys:
  - {name: primarys, algorithm: hmac-sha256, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}
zones: []
)";

class Path : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kNow = 1'800'000'000;
  using Request = std::shared_ptr<ClientRequest>;

  static Bytes update() { return UpdateBuilder().add("new 60 A 192.0.2.9").message(7); }
  /// Signs as a client does; the session checks the answer.
  Bytes sign(Bytes message, const Runtime& keys, std::string_view key, std::uint64_t now = kNow) {
    client_.emplace(dns::TsigSession::for_request(*keys.keys.find(name(key))));
    EXPECT_TRUE(client_->sign(message, now).has_value());
    return message;
  }
  Bytes signed_update(std::uint64_t now = kNow) { return sign(update(), *runtime_, "ours.", now); }
  Bytes forged_update() {
    Bytes message = signed_update();
    message[message.size() - 20] ^= 1;  // the MAC
    return message;
  }
  Request arrive(Bytes message, ipc::Transport transport = ipc::Transport::kUdp) {
    ipc::Forward forward;
    forward.transport = transport;
    forward.client = Endpoint::from_text("192.0.2.9@1000").value();
    forward.message = std::move(message);
    return std::make_shared<ClientRequest>(std::move(forward), runtime_, [this](Bytes response) {
      answers_.push_back(std::move(response));
    });
  }
  static Rcode rcode(const Bytes& answer) { return static_cast<Rcode>(answer.at(3) & 0x0F); }
  /// NOTAUTH with TSIG error BADSIG and no MAC (RFC 8945 §5.3.2).
  static void expect_bad_signature(const Bytes& answer) {
    EXPECT_EQ(rcode(answer), Rcode::kNotAuth);
    const auto tsig = dns::find_tsig(answer);
    ASSERT_TRUE(tsig && *tsig);
    EXPECT_EQ((*tsig)->error, 16U);
    EXPECT_THAT((*tsig)->mac, IsEmpty());
  }
  [[nodiscard]] bool verifies(const Bytes& answer) {
    return client_->verify_response(answer, kNow).has_value();
  }

  RuntimePtr runtime_ = testing::runtime_from(kConfiguration);
  RuntimePtr primarys_ = testing::runtime_from(kOtherKeys);
  ReplyPath path_{[] { return kNow * 1000; }};
  std::vector<Bytes> answers_;
  std::optional<dns::TsigSession> client_;
};

TEST_F(Path, AnErrorAfterAVerifiedMacIsSigned) {
  const Request request = arrive(signed_update());
  ASSERT_TRUE(request->verify(kNow));
  path_.refused(*request, name("@"), {Rcode::kRefused, "no", std::nullopt});
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(rcode(answers_[0]), Rcode::kRefused);
  EXPECT_TRUE(verifies(answers_[0]));
}

TEST_F(Path, AFailureAfterAVerifiedMacIsSignedAndCounted) {
  const Request request = arrive(signed_update());
  ASSERT_TRUE(request->verify(kNow));
  path_.failed(*request, {Errc::kIo, "ENOSPC"}, "cannot be stored");
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(rcode(answers_[0]), Rcode::kServFail);
  EXPECT_TRUE(verifies(answers_[0]));
  EXPECT_EQ(path_.counters().failed, 1U);
}

TEST_F(Path, AWrongMacIsBadSigUnsigned) {
  const Request request = arrive(forged_update());
  ASSERT_FALSE(request->verify(kNow));
  EXPECT_EQ(request->key(), nullptr);
  path_.not_verified(*request);
  ASSERT_THAT(answers_, SizeIs(1));
  expect_bad_signature(answers_[0]);
  EXPECT_EQ(path_.counters().bad_signatures, 1U);
}

/// RFC 8945 §5.2.3: the MAC was right, so the client can trust the answer and the time in it.
TEST_F(Path, AWrongTimeIsBadTimeSigned) {
  const Request request = arrive(signed_update(kNow - 301));
  ASSERT_FALSE(request->verify(kNow));
  path_.not_verified(*request);
  ASSERT_THAT(answers_, SizeIs(1));
  const auto tsig = dns::find_tsig(answers_[0]);
  ASSERT_TRUE(tsig && *tsig);
  EXPECT_EQ((*tsig)->error, 18U);
  EXPECT_THAT((*tsig)->mac, SizeIs(32));
  EXPECT_THAT((*tsig)->other, SizeIs(6));
}

TEST_F(Path, BeforeItIsReadyAWrongMacOfAKnownKeyIsStillBadSig) {
  path_.not_ready(*arrive(forged_update()), "too early");
  ASSERT_THAT(answers_, SizeIs(1));
  expect_bad_signature(answers_[0]);
  EXPECT_EQ(path_.counters().failed, 0U) << "it is not an update of a client";
}

TEST_F(Path, BeforeItIsReadyAnUnknownKeyMayBeThePrimarys) {
  const Bytes message = sign(update(), *primarys_, "primarys.");
  path_.not_ready(*arrive(message), "too early");
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(rcode(answers_[0]), Rcode::kServFail);
  EXPECT_FALSE(dns::find_tsig(answers_[0]).value().has_value());
  EXPECT_EQ(path_.counters().failed, 1U);
}

TEST_F(Path, BeforeItIsReadyAMalformedTsigIsFormErr) {
  Bytes message = update();
  append(message, Bytes{0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0});
  message[11] = 1;
  path_.not_ready(*arrive(std::move(message)), "too early");
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(rcode(answers_[0]), Rcode::kFormErr);
}

/// The time was right when the request came, and passed while the primary was asked.
TEST_F(Path, ARequestThatGrewOldWhileItWaitedGetsServFail) {
  path_.not_forwarded(*arrive(signed_update(kNow - 301)), {Errc::kIo, "timeout"});
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(rcode(answers_[0]), Rcode::kServFail);
  EXPECT_EQ(path_.counters().bad_signatures, 0U);
}

TEST_F(Path, WithoutAPrimaryTheAnswerIsSignedIfTheKeyIsKnown) {
  path_.not_forwarded(*arrive(signed_update()), {Errc::kIo, "timeout"});
  path_.not_forwarded(*arrive(forged_update()), {Errc::kIo, "timeout"});
  path_.not_forwarded(*arrive(sign(update(), *primarys_, "primarys.")), {Errc::kIo, "timeout"});
  ASSERT_THAT(answers_, SizeIs(3));
  EXPECT_EQ(rcode(answers_[0]), Rcode::kServFail);
  EXPECT_TRUE(dns::find_tsig(answers_[0]).value().has_value());
  expect_bad_signature(answers_[1]);
  EXPECT_EQ(rcode(answers_[2]), Rcode::kServFail);
  EXPECT_FALSE(dns::find_tsig(answers_[2]).value().has_value());
}

TEST_F(Path, ARepetitionGetsTheFirstAnswerWhichIsSignedOnce) {
  const Bytes message = signed_update();
  const Request first = arrive(message);
  ASSERT_TRUE(first->verify(kNow));
  ASSERT_FALSE(path_.repeats(*first, Execution::kHere));
  path_.remember(*first, Execution::kHere);
  EXPECT_TRUE(path_.repeats(*arrive(message), Execution::kHere)) << "waits for the answer";
  path_.answer(*first, Rcode::kYXDomain, false);
  EXPECT_TRUE(path_.repeats(*arrive(message), Execution::kHere)) << "gets it at once";
  ASSERT_THAT(answers_, SizeIs(3));
  EXPECT_TRUE(verifies(answers_[0]));
  EXPECT_EQ(answers_[1], answers_[0]);
  EXPECT_EQ(answers_[2], answers_[0]);
  EXPECT_EQ(path_.counters().repeated, 2U);
}

TEST_F(Path, AFailureHereMayBeTriedAgainAndOneOfAPrimaryMayNot) {
  for (const Execution execution : {Execution::kHere, Execution::kAtPrimary}) {
    const Request request = arrive(update());
    ASSERT_FALSE(path_.repeats(*request, execution));
    path_.remember(*request, execution);
    path_.answer(*request, Rcode::kServFail, false);
    EXPECT_EQ(path_.repeats(*arrive(update()), execution), execution == Execution::kAtPrimary);
  }
}

TEST_F(Path, OverTcpNothingIsARepetition) {
  const Request first = arrive(update(), ipc::Transport::kTcp);
  ASSERT_FALSE(path_.repeats(*first, Execution::kHere));
  path_.remember(*first, Execution::kHere);
  path_.answer(*first, Rcode::kNoError, false);
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_FALSE(path_.repeats(*arrive(update(), ipc::Transport::kTcp), Execution::kHere));
}

TEST_F(Path, ThePrimarysAnswerIsPassedUnchanged) {
  const Bytes answer = make_reply(ParsedRequest(update()), Rcode::kNXRRSet, false);
  path_.forwarded(*arrive(signed_update()), answer);
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(answers_[0], answer);
}

TEST_F(Path, ADroppedRequestReleasesTheWorkerWithoutAnAnswer) {
  path_.drop(*arrive(update()));
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_THAT(answers_[0], IsEmpty());
}

}  // namespace reply_path_test
}  // namespace pando::manager

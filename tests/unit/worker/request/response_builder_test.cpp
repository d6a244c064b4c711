#include "worker/request/response_builder.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace response_builder_test {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using dns::Section;
using ipc::Counter;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::Response;
using testing::key;
using testing::kNow;
using testing::notify;
using testing::number;
using testing::signed_query;
using testing::update;

constexpr std::size_t kQuestionOctets = 17 + 4;  // www.example.com.
constexpr std::size_t kOptOctets = 11;

class ResponseBuilderTest : public testing::RequestTest {
 protected:
  /// Puts records until no more fit; returns their number.
  static int fill(dns::MessageWriter& writer) {
    int records = 0;
    while (writer.put_record(Section::kAnswer, writer.question_name(), RRType::kTXT, RRClass::kIN,
                             0, Bytes(16, 15)))
      ++records;
    return records;
  }
  Response error(const Query& query, Rcode rcode) {
    return read(respond_error(request(query), rcode));
  }
};

TEST_F(ResponseBuilderTest, TheHeaderRepeatsIdOpcodeRdAndCd) {
  ResponseBuilder response(request(Query{.id = 0xBEEF, .opcode = 4, .rd = true, .cd = true}), true,
                           Rcode::kNoError);
  const Response made = read(response.finish());
  EXPECT_EQ(made.header.id, 0xBEEF);
  EXPECT_EQ(made.header.opcode, dns::Opcode::kNotify);
  EXPECT_TRUE(made.header.qr && made.header.aa && made.header.rd && made.header.cd);
  EXPECT_FALSE(made.header.tc || made.header.ra || made.header.ad);
  EXPECT_EQ(dns::to_text(made.question->name), "www.example.com.");
}

TEST_F(ResponseBuilderTest, AnOptWithTheConfiguredPayloadAnswersAnOpt) {
  settings_.udp_payload = 1400;
  EXPECT_FALSE(error({}, Rcode::kServFail).edns);
  const Response made = error({.edns = true, .dnssec_ok = true}, Rcode::kBadVers);
  ASSERT_TRUE(made.edns);
  EXPECT_EQ(made.edns->udp_payload, 1400);
  EXPECT_TRUE(made.edns->dnssec_ok);
  EXPECT_EQ(made.rcode, number(Rcode::kBadVers)) << "with its upper bits";
}

TEST_F(ResponseBuilderTest, OverUdpTheSmallerPayloadOfClientAndServerLimitsTheSize) {
  settings_.udp_payload = 1400;
  const auto room = [&](const Query& query) {
    return ResponseBuilder(request(query), true, Rcode::kNoError).writer().room();
  };
  constexpr std::size_t kFixed = dns::kHeaderOctets + kQuestionOctets;
  EXPECT_EQ(room({}), 512 - kFixed);
  EXPECT_EQ(room({.edns = true, .payload = 100}), 512 - kFixed - kOptOctets);
  EXPECT_EQ(room({.edns = true, .payload = 900}), 900 - kFixed - kOptOctets);
  EXPECT_EQ(room({.edns = true, .payload = 4096}), 1400 - kFixed - kOptOctets);
  settings_.udp_payload = 65535;
  EXPECT_EQ(room({.edns = true, .payload = 65535}), kUdpSpace - kFixed - kOptOctets);
  use_tcp();
  EXPECT_EQ(room({.edns = true, .payload = 100}), 65535 - kFixed - kOptOctets);
}

TEST_F(ResponseBuilderTest, RecordsNeverDisplaceOptAndSignature) {
  Query query{.edns = true, .payload = 512};
  append(query.options, option(dns::kOptionNsid, {}));
  RequestContext& context = request(signed_query(query, key("query.")));
  const auto verdict = dns::TsigSession::verify_request(
      context.request.message, *context.request.tsig, batch_.keys->shared, kNow);
  context.session = dns::TsigSession::for_response(verdict);
  ResponseBuilder response(context, true, Rcode::kNoError);
  EXPECT_GT(fill(response.writer()), 5);
  const Outcome outcome = response.finish();
  EXPECT_LE(outcome.size, 512U);
  const Response made = read(outcome);
  ASSERT_TRUE(made.edns);
  EXPECT_TRUE(dns::find_option(made.edns->options, dns::kOptionNsid));
  ASSERT_FALSE(made.additional.empty());
  EXPECT_EQ(made.additional.back().type, RRType::kTSIG);
}

TEST_F(ResponseBuilderTest, OptionsComeFromTheContext) {
  RequestContext& context = request(Query{.edns = true});
  context.expire = 77;
  context.version_of = batch_.view.zone_at(testing::name("example.com."));
  context.cookie.emplace();
  ResponseBuilder response(context, true, Rcode::kNoError, Ede::kInvalidData);
  context.expire = 78;  // too late
  const Response made = read(response.finish());
  ASSERT_TRUE(made.edns);
  const auto expire = dns::find_option(made.edns->options, dns::kOptionExpire);
  ASSERT_TRUE(expire && expire->size() == 4);
  EXPECT_EQ(load_be32(expire->data()), 77U);
  EXPECT_TRUE(dns::find_option(made.edns->options, dns::kOptionZoneVersion));
  EXPECT_TRUE(dns::find_option(made.edns->options, dns::kOptionCookie));
  EXPECT_FALSE(dns::find_option(made.edns->options, dns::kOptionNsid)) << "not asked for";
  EXPECT_EQ(detail_of(made), 24);
}

TEST_F(ResponseBuilderTest, TheLastRcodeCounts) {
  ResponseBuilder response(request(Query{}), true, Rcode::kNoError);
  response.set_rcode(Rcode::kServFail);
  EXPECT_EQ(rcode_of(response.finish()), number(Rcode::kServFail));
  EXPECT_EQ((*counters_)[ipc::rcode_index(number(Rcode::kServFail))].load(), 1U);
  EXPECT_EQ((*counters_)[ipc::rcode_index(number(Rcode::kNoError))].load(), 0U);
}

TEST_F(ResponseBuilderTest, AResponseThatTheManagerSignsIsForwardedWithRoomForTheSignature) {
  RequestContext& context = request(signed_query({}, key("update.")));
  context.has_managers_key = true;
  ResponseBuilder response(context, true, Rcode::kNoError);
  fill(response.writer());
  const Outcome outcome = response.finish();
  EXPECT_EQ(outcome.action, Action::kForward);
  EXPECT_EQ(outcome.forward, ipc::ForwardKind::kSignedQuery);
  EXPECT_GT(outcome.size, 300U);
  EXPECT_LE(outcome.size, 512U - 100) << "name, algorithm and MAC need as much";
  EXPECT_EQ(count(Counter::kForwardedQueries), 1U);
}

TEST_F(ResponseBuilderTest, WithoutAManagerAResponseThatItSignsIsAnUnsignedServfail) {
  batch_.manager_connected = false;
  Query query{.edns = true};
  RequestContext& context = request(signed_query(query, key("update.")));
  context.has_managers_key = true;
  const Response made = read(ResponseBuilder(context, true, Rcode::kNoError).finish());
  EXPECT_EQ(made.rcode, number(Rcode::kServFail));
  EXPECT_EQ(detail_of(made), 14);
  EXPECT_TRUE(made.additional.empty());
  EXPECT_EQ(count(Counter::kForwardsFailed), 1U);
}

TEST_F(ResponseBuilderTest, ForwardingCountsEachKind) {
  for (const auto kind :
       {ipc::ForwardKind::kUpdate, ipc::ForwardKind::kNotify, ipc::ForwardKind::kSignedQuery}) {
    const Outcome outcome = forward_to_manager(request(update("example.com.")), kind);
    EXPECT_EQ(outcome.action, Action::kForward);
    EXPECT_EQ(outcome.forward, kind);
  }
  EXPECT_EQ(count(Counter::kForwardedUpdates), 1U);
  EXPECT_EQ(count(Counter::kForwardedNotifies), 1U);
  EXPECT_EQ(count(Counter::kForwardedQueries), 1U);
}

TEST_F(ResponseBuilderTest, WithoutAManagerOnlyANotifyOverUdpIsDropped) {
  batch_.manager_connected = false;
  EXPECT_EQ(respond_not_ready(request(notify("example.com."))).action, Action::kDrop);
  EXPECT_EQ(rcode_of(respond_not_ready(request(update("example.com.")))), number(Rcode::kServFail));
  use_tcp();
  EXPECT_EQ(rcode_of(respond_not_ready(request(notify("example.com.")))), number(Rcode::kServFail));
}

TEST_F(ResponseBuilderTest, TheErrorLimitSparesServfailTcpAndValidCookies) {
  RequestContext& context = request(Query{});
  while (respond_error(context, Rcode::kRefused).action == Action::kRespond) {
  }
  EXPECT_EQ(count(Counter::kErrorsLimited), 1U);
  EXPECT_EQ(rcode_of(respond_error(context, Rcode::kServFail)), number(Rcode::kServFail));
  context.cookie.emplace().state = dns::CookieState::kValid;
  EXPECT_EQ(rcode_of(respond_error(context, Rcode::kRefused)), number(Rcode::kRefused));
  use_tcp();
  EXPECT_EQ(rcode_of(respond_error(request(Query{}), Rcode::kRefused)), number(Rcode::kRefused));
}

}  // namespace response_builder_test
}  // namespace pando::worker

#include "worker/respond/query_handler.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace query_handler_test {

using dns::Rcode;
using dns::RRType;
using ipc::Counter;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::Response;
using testing::kNow;
using testing::number;

class QueryHandlerTest : public testing::RequestTest {
 protected:
  Response ask(const Query& query) { return read(handler_.answer(request(query))); }

  QueryHandler handler_{cache_, expiry_};
};

TEST_F(QueryHandlerTest, AnswersFromTheZone) {
  const Response response = ask({});
  EXPECT_EQ(response.answer_text(), std::vector<std::string>{"www.example.com. A 192.0.2.80"});
  EXPECT_TRUE(response.header.aa);
}

TEST_F(QueryHandlerTest, ZonesThatAreAskedForAreNoted) {
  constexpr unsigned kQuestions = 320;
  for (unsigned i = 0; i < kQuestions; ++i) ask({});
  const std::uint32_t zone = store_->view().zone_at(testing::name("example.com.")).side_index();
  const auto noted = ipc::BusyZone::of((*counters_)[ipc::find_busy(*counters_, zone)].load());
  EXPECT_GT(noted.notes, kQuestions / ipc::kQuestionsPerNote / 2);
  EXPECT_LT(noted.notes, kQuestions / ipc::kQuestionsPerNote * 2);
}

TEST_F(QueryHandlerTest, AnAnswerToClassAnyIsNotAuthoritative) {
  EXPECT_FALSE(ask({.qclass = 255}).header.aa);
}

TEST_F(QueryHandlerTest, TypesThatNobodyCanAskForAreRefusedBeforeAnyZone) {
  EXPECT_EQ(ask({.qname = "elsewhere.test.", .qtype = RRType::kTSIG}).rcode,
            number(Rcode::kFormErr));
  const Response response =
      ask({.qname = "elsewhere.test.", .qtype = RRType::kMAILB, .edns = true});
  EXPECT_EQ(response.rcode, number(Rcode::kNotImp));
  EXPECT_EQ(detail_of(response), 21);
}

TEST_F(QueryHandlerTest, AllowQueryDecides) {
  const Query query{.qname = "www.closed.test.", .edns = true};
  EXPECT_EQ(detail_of(ask(query)), 18);
  client_.remote = Endpoint::from_text("198.51.100.9@99").value();
  EXPECT_EQ(ask(query).rcode, number(Rcode::kNoError));
}

TEST_F(QueryHandlerTest, AnExpiredZoneIsServfail) {
  store_->store().side(3)->expires_at.store(kNow);
  EXPECT_EQ(ask({.qname = "www.secondary.test."}).rcode, number(Rcode::kServFail));
}

TEST_F(QueryHandlerTest, RefusalsOverUdpAreLimited) {
  RequestContext& context = request({.qname = "elsewhere.test."});
  while (limits_.errors.allow(kNow)) {
  }
  EXPECT_EQ(handler_.answer(context).action, Action::kDrop);
  EXPECT_EQ(count(Counter::kErrorsLimited), 1U);
}

TEST_F(QueryHandlerTest, QuestionsThatAreReadTogetherAreSoughtAmongWholeAnswersButForReferrals) {
  store_->add({"parent.test.",
               "$TTL 60\n@ SOA ns admin 1 1 1 1 1\n@ NS ns\nns A 192.0.2.1\n"
               "cut NS ns\ncut DS 1 8 2 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nmoved DNAME ns\n"});
  batch_.view = store_->view();
  const auto is_sought = [&](const char* qname, RRType type) {
    RequestContext& context = request({.qname = qname, .qtype = type});
    const zone::NameKey key(context.request.question.name);
    context.key = &key;
    context.nearest_zone = store_->view().find_zone(key);
    const zone::Match match = context.nearest_zone.lookup(key);
    Foreseen foreseen;
    handler_.cache().foresee(context, match, foreseen);
    return foreseen.whole.tag != 0;
  };
  EXPECT_TRUE(is_sought("parent.test.", RRType::kNS));
  EXPECT_TRUE(is_sought("parent.test.", RRType::kSOA));
  EXPECT_TRUE(is_sought("ns.parent.test.", RRType::kA));
  EXPECT_TRUE(is_sought("nowhere.parent.test.", RRType::kA));
  EXPECT_TRUE(is_sought("x.moved.parent.test.", RRType::kA));
  EXPECT_TRUE(is_sought("cut.parent.test.", RRType::kDS));
  EXPECT_FALSE(is_sought("cut.parent.test.", RRType::kA));
  EXPECT_FALSE(is_sought("x.cut.parent.test.", RRType::kDS));
}

TEST_F(QueryHandlerTest, AnAnswerThatDoesNotFitIsTruncatedAndCounted) {
  EXPECT_TRUE(ask({.qname = "big.example.com.", .qtype = RRType::kTXT}).header.tc);
  EXPECT_EQ(count(Counter::kTruncated), 1U);
  use_tcp();
  EXPECT_FALSE(ask({.qname = "big.example.com.", .qtype = RRType::kTXT}).header.tc);
}

TEST_F(QueryHandlerTest, ExpireAndZoneVersionAreSentWhenAskedForAndKnown) {
  Query query{.qname = "example.com.", .qtype = RRType::kSOA, .edns = true};
  append(query.options, option(dns::kOptionExpire, {}));
  append(query.options, option(dns::kOptionZoneVersion, {}));
  const Response soa = ask(query);
  EXPECT_TRUE(dns::find_option(soa.edns->options, dns::kOptionExpire));
  EXPECT_TRUE(dns::find_option(soa.edns->options, dns::kOptionZoneVersion));
  query.qtype = RRType::kNS;
  const Response ns = ask(query);
  EXPECT_FALSE(dns::find_option(ns.edns->options, dns::kOptionExpire));
  EXPECT_TRUE(dns::find_option(ns.edns->options, dns::kOptionZoneVersion));
  query.qname = "unloaded.test.";
  const Response unloaded = ask(query);
  EXPECT_FALSE(dns::find_option(unloaded.edns->options, dns::kOptionZoneVersion));
}

TEST_F(QueryHandlerTest, AboveTheRateLimitUnprovenUdpClientsGetTruncationOrNothing) {
  settings_.rate_limit.responses = 1;
  int dropped = 0;
  int truncated = 0;
  for (int i = 0; i < 20; ++i) {
    const Outcome outcome = handler_.answer(request(Query{}));
    if (outcome.action == Action::kDrop) ++dropped;
    if (outcome.action == Action::kRespond && read(outcome).header.tc) ++truncated;
  }
  EXPECT_EQ(dropped + truncated, 19);
  EXPECT_EQ(count(Counter::kRateLimited), 19U);
  EXPECT_EQ(count(Counter::kRateSlipped), static_cast<std::uint64_t>(truncated));
  context_.cookie.emplace().state = dns::CookieState::kValid;
  EXPECT_EQ(read(handler_.answer(context_)).answer.size(), 1U);
}

}  // namespace query_handler_test
}  // namespace pando::worker

#include "worker/respond/answer_cache.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace answer_cache_test {

using dns::RRType;
using pando::testing::Query;

/// A registry whose delegations share a set of servers (zone/record/shared_sets.h), and one more.
std::string registry() {
  std::string text =
      "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n"
      "own NS ns.own\nns.own A 192.0.2.2\n";
  for (int i = 0; i < 9000; ++i)
    for (const char* const server : {"a", "b"})
      text += "c" + std::to_string(i) + " NS " + server + ".a-rather-long-name.elsewhere.test.\n";
  return text;
}

/// Asks a cache as the responder does for requests that are read together.
class AnswerCacheTest : public testing::RequestTest {
 protected:
  AnswerCacheTest() {
    store_->add({"registry.test.", registry()});
    batch_.view = store_->view();
  }

  void answer(const char* qname, bool depends_on_client) {
    static_cast<void>(answers_.begin_recall(1));
    RequestContext& context = request({.qname = qname});
    const dns::Question& question = context.request.question;
    const zone::NameKey key(question.name);
    context.key = &key;
    context.nearest_zone = batch_.view.find_zone(key);
    const zone::Match match = context.nearest_zone.lookup(key);
    Foreseen foreseen;
    answers_.foresee(context, match, foreseen);
    context.foreseen = &foreseen;

    answers_.find(context, inquiry_);
    answers_.set_zone(inquiry_, context.nearest_zone);
    inquiry_.options.postpone = true;
    resolve(inquiry_.zone, question, inquiry_.options, hasher_, answer_);
    answer_.depends_on_client = depends_on_client;
    answers_.complete(inquiry_);
    EXPECT_EQ(answer_.depends_on_client, depends_on_client) << "also when it is completed";
    context.begin_response(space_);
    dns::MessageWriter writer(space_, space_.size());
    writer.put_header({});
    writer.set_rcode(answer_.rcode);
    ASSERT_TRUE(writer.put_question(question.name, question.type, question.rr_class));
    EXPECT_FALSE(answers_.write(inquiry_, writer));
    response_ = pando::testing::read_response(writer.finish());
  }
  /// Questions whose answers have entries in each of the tables, asked often enough for that.
  void answer_all(bool depends_on_client) {
    for (int i = 0; i < 3; ++i) {
      answer("ns.registry.test.", depends_on_client);
      EXPECT_EQ(response_.answer.size(), 1U);
      answer("x.absent.registry.test.", depends_on_client);
      EXPECT_EQ(response_.rcode, 3);
      EXPECT_EQ(response_.authority.size(), 1U) << "the SOA";
      answer("x.own.registry.test.", depends_on_client);
      EXPECT_EQ(response_.authority.size(), 1U);
      EXPECT_EQ(response_.additional.size(), 1U);
      answer(("c" + std::to_string(8990 + i) + ".registry.test.").c_str(), depends_on_client);
      EXPECT_EQ(response_.authority.size(), 2U);
    }
  }

  dns::Nsec3Hasher hasher_;
  AnswerCache answers_{hasher_};
  AnswerCache::Inquiry inquiry_;
  Answer& answer_ = inquiry_.answer;
  pando::testing::Response response_;
};

TEST_F(AnswerCacheTest, AnswersThatAreAskedForAgainEnterEachTable) {
  EXPECT_EQ(answers_.use(), AnswerCache::Use{});
  answer_all(false);
  const AnswerCache::Use use = answers_.use();
  EXPECT_GT(use.whole_answers, 0U);
  EXPECT_GT(use.lookups, 0U);
  EXPECT_GT(use.templates, 0U);
  EXPECT_GT(use.server_sets, 0U);
}

TEST_F(AnswerCacheTest, AnswersThatDependOnTheClientEnterNoTable) {
  answer_all(true);
  EXPECT_EQ(answers_.use(), AnswerCache::Use{});
}

TEST_F(AnswerCacheTest, AnswersThatDependOnTheClientAreMadeWithoutCachedParts) {
  answer_all(false);
  const AnswerCache::Use use = answers_.use();
  // For these names templates are there now.
  for (const char* const qname :
       {"y.own.registry.test.", "y.absent.registry.test.", "c8997.registry.test."}) {
    answer(qname, false);
    const Bytes cached = response_.octets;
    answer(qname, true);
    EXPECT_EQ(response_.text(response_.authority),
              pando::testing::read_response(cached).text(
                  pando::testing::read_response(cached).authority));
    EXPECT_EQ(answer_.postponed.kind, AnswerPart::Kind::kNone) << "made for this question";
    EXPECT_FALSE(answer_.authority.empty());
  }
  EXPECT_EQ(answers_.use().server_sets, use.server_sets);
}

TEST_F(AnswerCacheTest, TheAnswerInHandIsNotTouchedWhileAPartOfOthersIsMade) {
  for (int i = 0; i < 2; ++i) answer("c8999.registry.test.", false);
  EXPECT_GT(answers_.use().server_sets, 0U) << "made for the second one";
  EXPECT_EQ(answer_.postponed.kind, AnswerPart::Kind::kReferral);
  EXPECT_EQ(answer_.postponed.name, testing::name("c8999.registry.test."));
}

}  // namespace answer_cache_test
}  // namespace pando::worker

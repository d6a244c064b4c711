#include "manager/control/report/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace explain_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::name;
using testing::ZoneStore;

const std::vector<std::string> kZone = {
    "@ 3600 SOA ns1 admin 10 3600 600 86400 300",
    "@ 3600 NS ns1",
    "ns1 3600 A 192.0.2.1",
    "www 300 A 192.0.2.10",
    "alias 300 CNAME www",
    "away 300 CNAME www.elsewhere.",
    "one 300 CNAME two",
    "two 300 CNAME one",
    "a.b.deep 300 TXT \"below an empty non-terminal\"",
    "*.wild 300 A 192.0.2.20",
    "b.*.hollow 300 A 192.0.2.30",
    "sub 300 NS ns.sub",
    "ns.sub 300 A 192.0.2.40",
    "old 300 DNAME new",
    "x.new 300 A 192.0.2.50",
};

class Explain : public ::testing::Test {
 protected:
  ipc::ExplainResult ask(const std::string& qname, dns::RRType type = dns::RRType::kA) {
    ExplainedQuery query{{name(qname), type, dns::RRClass::kIN}, client_, key_, false};
    return shm::test::must(
        explain(store_.view(), query, [this](const zone::ZoneView&) { return expired_; }));
  }
  /// Sentences behind the zone's and the rules'.
  std::vector<std::string> steps(const std::string& qname, dns::RRType type = dns::RRType::kA) {
    auto result = ask(qname, type);
    EXPECT_GE(result.steps.size(), 2U);
    return {result.steps.begin() + 2, result.steps.end()};
  }
  void allow_query(const zone::Acl& rules) {
    store_.commit([&](zone::Draft& draft) {
      zone::ZoneSettings settings;
      settings.allow_query = rules;
      return draft.put_zone_settings(name("@"), settings, 0);
    });
  }
  void SetUp() override {
    store_.commit([](zone::Draft& draft) {
      return draft.put_server_settings(zone::ServerSettings{});
    });
    allow_query({{}});
  }

  ZoneStore store_{kZone};
  std::optional<IpAddress> client_;
  std::optional<dns::Name> key_;
  bool expired_ = false;
};

TEST_F(Explain, ANameThatExistsAnswers) {
  const auto result = ask("www");
  EXPECT_EQ(result.question, "www.example. A");
  EXPECT_EQ(result.zone, "example.");
  EXPECT_EQ(result.serial, 10U);
  EXPECT_EQ(result.rcode, "NOERROR");
  EXPECT_TRUE(result.authoritative);
  ASSERT_EQ(result.answer.size(), 1U);
  EXPECT_EQ(result.answer[0], (ipc::RecordRow{"www.example.", 300, "A", "192.0.2.10"}));
  EXPECT_THAT(result.steps, Contains("www.example. exists in the zone."));
}

TEST_F(Explain, EachStepOfAChainIsTold) {
  EXPECT_THAT(steps("alias"),
              ElementsAre("alias.example. exists in the zone.",
                          "alias.example. is an alias; www.example. is looked up next.",
                          "www.example. exists in the zone."));
  EXPECT_THAT(steps("away"), Contains(HasSubstr("www.elsewhere., which is not in this zone")));
  EXPECT_THAT(steps("one"), Contains(HasSubstr("two.example. is an alias of one.example., which "
                                               "was looked up before")));
  EXPECT_THAT(steps("x.old"),
              ElementsAre("A DNAME at old.example. redirects x.old.example. (RFC 6672).",
                          "x.old.example. is an alias; x.new.example. is looked up next.",
                          "x.new.example. exists in the zone."));
}

TEST_F(Explain, NamesThatDoNotExistNameTheirEncloserOrWildcard) {
  EXPECT_THAT(steps("no.www"),
              ElementsAre(HasSubstr("its closest encloser is www.example., which has no wildcard"),
                          "The last name does not exist: NXDOMAIN."));
  EXPECT_EQ(ask("no.www").rcode, "NXDOMAIN");
  EXPECT_THAT(steps("x.wild"), ElementsAre(HasSubstr("the wildcard *.wild.example. answers")));
  EXPECT_THAT(steps("x.hollow"),
              ElementsAre(HasSubstr("*.hollow.example. exists without records"),
                          "The name has no A record: an answer without data."));
  EXPECT_THAT(steps("b.deep"), ElementsAre(HasSubstr("it exists (RFC 8020)"),
                                           "The name has no A record: an answer without data."));
  EXPECT_THAT(steps("www", dns::RRType::kTXT),
              Contains("The name has no TXT record: an answer without data."));
}

TEST_F(Explain, AReferralNamesItsCut) {
  const auto result = ask("host.sub");
  EXPECT_THAT(result.steps,
              Contains("host.sub.example. is delegated at sub.example.: a referral to its name "
                       "servers."));
  EXPECT_FALSE(result.authoritative);
  ASSERT_EQ(result.authority.size(), 1U);
  EXPECT_EQ(result.authority[0].type, "NS");
  ASSERT_EQ(result.additional.size(), 1U);
  EXPECT_EQ(result.additional[0].owner, "ns.sub.example.");
}

TEST_F(Explain, TheRuleThatDecidesIsNamed) {
  zone::AclRule local;
  local.address = IpPrefix::from_text("192.0.2.0/24").value();
  zone::AclRule denied;
  denied.deny = true;
  denied.address = IpPrefix::from_text("192.0.2.7/32").value();
  zone::AclRule signer;
  signer.key = name("reader");
  allow_query({denied, local, signer});
  EXPECT_THAT(ask("www").steps, Contains(HasSubstr("were not judged")));
  client_ = IpAddress::from_text("192.0.2.7").value();
  EXPECT_EQ(ask("www").rcode, "REFUSED");
  EXPECT_THAT(ask("www").steps,
              Contains("Rule 1 of allow-query (deny 192.0.2.7/32) is the first that matches "
                       "192.0.2.7 without a key: refused."));
  client_ = IpAddress::from_text("192.0.2.8").value();
  EXPECT_EQ(ask("www").rcode, "NOERROR");
  client_ = IpAddress::from_text("198.51.100.1").value();
  EXPECT_EQ(ask("www").rcode, "REFUSED");
  EXPECT_TRUE(ask("www").answer.empty());
  key_ = name("reader");
  EXPECT_THAT(ask("www").steps, Contains(HasSubstr("Rule 3 of allow-query")));
}

TEST_F(Explain, ZonesThatCannotAnswerSayWhy) {
  expired_ = true;
  EXPECT_EQ(ask("www").rcode, "SERVFAIL");
  EXPECT_THAT(ask("www").steps, Contains(HasSubstr("has expired")));
  expired_ = false;
  EXPECT_EQ(ask("www.elsewhere.").rcode, "REFUSED");
  EXPECT_THAT(ask("www.elsewhere.").steps, ElementsAre(HasSubstr("No zone of this server")));
}

TEST_F(Explain, TypesOfOtherServicesAreNoQueries) {
  for (const auto type : {dns::RRType::kAXFR, dns::RRType::kTSIG, dns::RRType::kOPT})
    EXPECT_EQ(explain(store_.view(), {{name("www"), type, dns::RRClass::kIN}, {}, {}, false},
                      [](const zone::ZoneView&) { return false; })
                  .error()
                  .code,
              Errc::kInvalid);
}

}  // namespace explain_test
}  // namespace pando::manager

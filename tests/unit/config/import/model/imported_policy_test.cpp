#include "config/import/model/imported_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::config {
namespace imported_policy_test {

using ::testing::HasSubstr;

/// Seconds; -1 for no time.
long long time(std::string_view text) {
  const auto read = foreign_time(text);
  return read ? read->count() : -1;
}

TEST(ImportedPolicy, TimesAreReadAsOtherServersWriteThem) {
  EXPECT_EQ(time("3600"), 3600);
  EXPECT_EQ(time("0"), 0);
  EXPECT_EQ(time("14d"), 14 * 86400);
  EXPECT_EQ(time("1W2d3H4m5s"), 9 * 86400 + 3 * 3600 + 4 * 60 + 5);
  EXPECT_EQ(time("P14D"), 14 * 86400);
  EXPECT_EQ(time("PT5M"), 300);
  EXPECT_EQ(time("P1MT1M"), 31 * 86400 + 60);
  EXPECT_EQ(time("p1y2w"), 379 * 86400);
  for (const char* text : {"", "P", "PT", "d", "1x", "1d5", "P5", "-1", "unlimited", "11y",
                           "99999999999999999999w", "18446744073709551615", "9y9y"})
    EXPECT_EQ(time(text), -1) << text;
}

TEST(ImportedPolicy, WordsOfAShellAreWhatTheyWere) {
  EXPECT_EQ(shell_word("/var/lib/Kexample.org.+013+"), "/var/lib/Kexample.org.+013+");
  EXPECT_EQ(shell_word("/a b"), "'/a b'");
  EXPECT_EQ(shell_word("$(id)'s;"), "'$(id)'\\''s;'");
  EXPECT_EQ(shell_word("-x"), "'-x'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\nb"), "") << "no terminal gets a stranger's control characters";
}

TEST(ImportedPolicy, AlgorithmsHaveManyNames) {
  for (const auto& [name, number] : {std::pair{"ECDSAP256SHA256", 13}, {"ecdsa256", 13},
                                     {"ecdsap384sha384", 14}, {"15", 15}, {"RSA-SHA256", 8}})
    EXPECT_EQ(signing_algorithm(name), number) << name;
  for (const char* name : {"rsasha1", "5", "nsec3rsasha1", "", "dsa", "013"})
    EXPECT_EQ(signing_algorithm(name), 0) << name;
}

TEST(ImportedPolicy, TimesBeyondOurLimitsAreReported) {
  ImportedConfiguration out;
  ImportReport report;
  ImportedZone zone;
  ForeignSigning signing{.server = "BIND", .how = "x", .policy_name = "wide one"};
  signing.validity = std::chrono::seconds(10);
  signing.refresh = std::chrono::hours(24);
  signing.propagation = std::chrono::hours(24 * 365);
  ASSERT_TRUE(take_signing(signing, {}, "zone a", out, report, zone));
  ASSERT_EQ(out.policies().size(), 1U);
  EXPECT_EQ(zone.options.dnssec, "wide_one");
  EXPECT_EQ(out.policies()[0].validity, std::chrono::minutes(1));
  EXPECT_EQ(out.policies()[0].refresh.count(), 0);
  EXPECT_EQ(out.policies()[0].propagation, std::chrono::days(30));
  std::string text;
  for (const Omission& omission : report.omissions()) text += to_text(omission) + "\n";
  for (const char* part : {"validity: is 60 seconds here, not 10", "refresh: is the default",
                           "propagation: is 2592000 seconds here"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(ImportedPolicy, ZonesOfOnePolicyShareOursAndOthersDoNot) {
  ImportedConfiguration out;
  DnssecPolicy policy;
  policy.name = "bind";
  EXPECT_EQ(out.add_policy(policy), "bind");
  EXPECT_EQ(out.add_policy(policy), "bind");
  policy.validity = std::chrono::days(7);
  EXPECT_EQ(out.add_policy(policy), "bind-2");
  EXPECT_EQ(out.add_policy(policy), "bind-2");
  policy.name = "knot-default";
  EXPECT_EQ(out.add_policy(policy), "knot-default");
}

}  // namespace imported_policy_test
}  // namespace pando::config

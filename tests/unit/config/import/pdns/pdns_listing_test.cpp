#include "config/import/pdns/pdns_listing.h"

#include "dns/zonefile/zone_scanner.h"
#include "tests/unit/config/import/import_fixture.h"

namespace pando::config {
namespace pdns_listing_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kOrigin = "$ORIGIN .\n";
constexpr std::string_view kSoa =
    "a.test\t3600\tIN\tSOA\tns1.a.test hostmaster.a.test 7 10800 3600 604800 3600\n";

Imported listed(std::string_view text) { return imported(ImportKind::kPdnsListing, text); }
std::string with_zone(std::string_view more) {
  return std::string(kOrigin) + std::string(kSoa) + std::string(more);
}
std::vector<std::string> names_of(const Imported& result) {
  std::vector<std::string> names;
  for (const ZoneFileText& file : result.outcome.zone_files) names.push_back(file.name);
  return names;
}
std::size_t records_of(const ZoneFileText& file, std::string_view zone) {
  dns::ScanOptions options;
  options.origin = *dns::Name::from_text(zone);
  const auto report = dns::scan_zone_text(file.text, "x", options,
                                          [](const dns::ScannedRecord&) -> Status { return {}; });
  EXPECT_TRUE(report.ok()) << file.text;
  return report.records;
}

TEST(PdnsListing, OfAZoneBecomesItsFile) {
  const Imported result = listed(
      "$ORIGIN .\n"
      "*.a.test\t60\tIN\tA\t192.0.2.2\n"
      "a.test\t3600\tIN\tMX\t10 mail.a.test.\n"
      "A.test\t3600\tIN\tNS\tns1.a.test.\n"
      "a.test\t3600\tIN\tSOA\tns1.a.test hostmaster.a.test 7 10800 3600 604800 3600\n"
      "a.test\t3600\tIN\tTXT\t\"v=spf1; a \\\"b\\\"\" \"two\"\n"
      "_x._tcp.a.test\t60\tIN\tSRV\t0 1 80 www.a.test.\n"
      "www.a.test\t60\tIN\tTYPE65534\t\\# 2 abcd\n");
  EXPECT_THAT(names_of(result), ElementsAre("zones/a.test.zone"));
  EXPECT_EQ(result.file("a.test"), "/etc/pando/zones/a.test.zone");
  EXPECT_EQ(result.outcome.omissions.size(), 1U) << result.report();
  EXPECT_THAT(result.changes(), HasSubstr("a listing does not tell which of them PowerDNS signs"));
  const ZoneFileText& file = result.outcome.zone_files.front();
  EXPECT_EQ(records_of(file, "a.test"), 7U);
  EXPECT_EQ(file.text.find("a.test\t3600\tIN\tSOA"), kOrigin.size()) << "the SOA comes first";
}

TEST(PdnsListing, OfSeveralZonesBecomesAFileForEach) {
  const Imported result =
      listed("a.test\nb.a.test\nempty.test\nAll zonecount: 3\n" +
             with_zone("x.a.test\t1\tIN\tA\t::1\r\n") + std::string(kOrigin) +
             "b.a.test\t1\tIN\tSOA\t. . 1 2 3 4 5\n\n" + "b.a.test\t1\tIN\tNS\tns.b.a.test.\n");
  EXPECT_THAT(names_of(result), ElementsAre("zones/b.a.test.zone"));
  EXPECT_THAT(result.report(), HasSubstr("/etc/x/x.conf:7: x.a.test?1?IN?A?::1: "));
  EXPECT_THAT(result.report(),
              HasSubstr("x.conf:6: zone a.test.: is not taken over: 1 of its lines are bad"));
  EXPECT_THAT(result.report(), HasSubstr("x.conf:3: empty.test: is named and has no records"));
  EXPECT_THAT(result.report(), Not(HasSubstr("zonecount")));
  EXPECT_EQ(result.outcome.zones, 1U);
}

TEST(PdnsListing, TypesOfPowerDnsAloneAreLeftOutAndReported) {
  const Imported result =
      listed(with_zone("a.test\t60\tIN\tALIAS\twww.b.test.\n"
                       "l.a.test\t60\tIN\tLUA\tA \"return 1\"\n"
                       "w.a.test\t60\tIN\tA\t192.0.2.9\n"));
  ASSERT_EQ(result.outcome.zone_files.size(), 1U);
  EXPECT_EQ(records_of(result.outcome.zone_files.front(), "a.test"), 2U);
  EXPECT_THAT(result.report(), HasSubstr(":3: a.test?60?IN?ALIAS?www.b.test.: no other server has "
                                         "the type ALIAS"));
  EXPECT_THAT(result.report(), HasSubstr("no other server has the type LUA"));
}

TEST(PdnsListing, RecordsOutsideOfTheZoneAreLeftOutAndReported) {
  const Imported result = listed(with_zone("b.test\t60\tIN\tA\t192.0.2.9\n"));
  ASSERT_EQ(result.outcome.zone_files.size(), 1U);
  EXPECT_EQ(records_of(result.outcome.zone_files.front(), "a.test"), 1U);
  EXPECT_THAT(result.report(), HasSubstr("is outside of zone a.test."));
}

TEST(PdnsListing, AZoneWithABadLineIsNotTakenAndEachBadLineIsReported) {
  for (const char* bad :
       {"w.a.test\t60\tIN\tA\t192.0.2.999", "w.a.test 60 IN A 192.0.2.9",
        "w.a.test\t60\tCH\tA\t192.0.2.9", "w.a.test\tx\tIN\tA\t192.0.2.9", "\t60\tIN\tA\t192.0.2.9",
        "w..a.test\t60\tIN\tA\t192.0.2.9", "w.a.test\t60\tIN\tA", "w.a.test\t60\tIN\tTXT\t\"open",
        "w.a.test\t60\tIN\tTXT\t( a", "$INCLUDE /etc/passwd", "$INCLUDE\t60\tIN\tA\t/etc/passwd",
        "$GENERATE 1-9 x A 192.0.2.1", "hello world", "a.test\t60\tIN\tSOA\tns. h. 1 2 3 4 5"}) {
    const Imported result = listed(with_zone(std::string(bad) + "\n"));
    EXPECT_TRUE(result.outcome.zone_files.empty()) << bad;
    EXPECT_EQ(result.outcome.zones, 0U) << bad;
    EXPECT_THAT(result.report(), HasSubstr("/etc/x/x.conf:3: ")) << bad;
    EXPECT_THAT(result.report(), HasSubstr("zone a.test.: is not taken over: 1 of its")) << bad;
  }
}

TEST(PdnsListing, AZoneWithoutSoaIsReported) {
  const Imported result = listed("$ORIGIN .\nw.a.test\t60\tIN\tA\t192.0.2.9\n");
  EXPECT_EQ(result.outcome.zones, 0U);
  EXPECT_THAT(result.report(), HasSubstr(":2: w.a.test?60?IN?A?192.0.2.9: no SOA record follows"));
}

TEST(PdnsListing, ARepeatedZoneIsTakenOnce) {
  const Imported result = listed(with_zone(with_zone("w.a.test\t60\tIN\tA\t192.0.2.9\n")));
  EXPECT_EQ(result.outcome.zone_files.size(), 1U);
  EXPECT_THAT(result.report(), HasSubstr("a zone of this name is there already"));
}

TEST(PdnsListing, NoNameOfAZoneLeavesTheFolder) {
  const Imported result = listed(
      "$ORIGIN .\n..\t1\tIN\tSOA\t. . 1 2 3 4 5\n"
      "$ORIGIN .\n../etc/x\t1\tIN\tSOA\t. . 1 2 3 4 5\n"
      "$ORIGIN .\n0/25.2.0.192.in-addr.arpa\t1\tIN\tSOA\t. . 1 2 3 4 5\n"
      "$ORIGIN .\nUpper.\\032\\000.test\t1\tIN\tSOA\t. . 1 2 3 4 5\n"
      "$ORIGIN .\n.\t1\tIN\tSOA\t. . 1 2 3 4 5\n");
  EXPECT_THAT(names_of(result), ElementsAre("zones/0\\04725.2.0.192.in-addr.arpa.zone",
                                            "zones/upper.\\032\\000.test.zone", "zones/root-zone"));
  const std::string label = std::string(60, 'x') + ".";
  const Imported too_long =
      listed(fmt::format("$ORIGIN .\n{0}{0}{0}{0}\t1\tIN\tSOA\t. . 1 2 3 4 5\n", label));
  EXPECT_THAT(too_long.report(), HasSubstr("no file can have its name"));
}

TEST(PdnsListing, IsKnownByItsLook) {
  EXPECT_EQ(guess_import_kind("pdns.txt", "$ORIGIN .\n"), ImportKind::kPdnsListing);
  EXPECT_EQ(guess_import_kind("pdns.txt", "a.test\n$ORIGIN .\n"), ImportKind::kPdnsListing);
  EXPECT_EQ(guess_import_kind("pdnsutil.out", ""), ImportKind::kPdnsListing);
  EXPECT_EQ(guess_import_kind("pdns.conf", "launch=bind\n"), ImportKind::kPdns);
}

TEST(PdnsListing, OfNothingIsNothing) {
  EXPECT_EQ(listed("").outcome.zones, 0U);
  EXPECT_EQ(listed("$ORIGIN .\n$ORIGIN .\n").outcome.zones, 0U);
}

}  // namespace pdns_listing_test
}  // namespace pando::config

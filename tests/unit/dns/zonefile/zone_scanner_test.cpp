#include "dns/zonefile/zone_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/progress.h"
#include "dns/rdata/rdata.h"

namespace pando::dns {
namespace zone_scanner_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Scan {
  std::vector<std::string> records;  // "owner ttl type rdata"
  ScanReport report;
};

ScanOptions options_for(std::string_view origin) {
  ScanOptions options;
  options.origin = Name::from_text(origin).value();
  return options;
}

RecordSink collect_into(std::vector<std::string>& records) {
  return [&records](const ScannedRecord& record) -> Status {
    records.push_back(fmt::format("{} {} {} {}", to_text(record.owner), record.ttl.seconds,
                                  to_text(record.type), rdata_to_text(record.type, record.rdata)));
    return {};
  };
}

Scan scan(std::string_view text, const ScanOptions& options = options_for("example.")) {
  Scan scan;
  scan.report = scan_zone_text(text, "zone", options, collect_into(scan.records));
  EXPECT_EQ(scan.report.records, scan.records.size());
  // Whatever the window, the outcome is the same: no border is seen.
  for (const std::size_t window : {1U, 7U, 33U}) {
    ScanOptions small = options;
    small.window_octets = window;
    std::vector<std::string> records;
    const ScanReport report = scan_zone_text(text, "zone", small, collect_into(records));
    EXPECT_EQ(records, scan.records) << "window " << window;
    EXPECT_EQ(report.errors, scan.report.errors) << "window " << window;
    EXPECT_EQ(report.warnings, scan.report.warnings) << "window " << window;
  }
  return scan;
}

std::vector<std::string> records_of(std::string_view text) {
  const Scan result = scan(text);
  EXPECT_THAT(result.report.errors, IsEmpty()) << text;
  return result.records;
}

/// Records of `text` behind a $TTL, so that they need none.
std::vector<std::string> records_at_9(std::string_view text) {
  return records_of("$TTL 9\n" + std::string(text));
}

std::vector<std::string> errors_of(std::string_view text) { return scan(text).report.errors; }

// ---- words, lines, comments, parentheses ----

TEST(ZoneScanner, EmptyTextHasNoRecords) {
  for (const char* text : {"", "\n", "\r\n", "  \n\t\n", "; comment", "; comment\n", "\n\n()\n"}) {
    const Scan result = scan(text);
    EXPECT_THAT(result.records, IsEmpty()) << text;
    EXPECT_TRUE(result.report.ok()) << text;
    EXPECT_THAT(result.report.warnings, IsEmpty()) << text;
  }
}

TEST(ZoneScanner, OneRecordPerLine) {
  EXPECT_THAT(records_of("a 1 IN A 192.0.2.1\nb 2 IN AAAA 2001:db8::1\n"),
              ElementsAre("a.example. 1 A 192.0.2.1", "b.example. 2 AAAA 2001:db8::1"));
}

TEST(ZoneScanner, CarriageReturnsEndLinesToo) {
  EXPECT_THAT(
      records_of("a 1 A 192.0.2.1\r\n 1 A 192.0.2.2\r\n\r\nb 1 A 192.0.2.3\rc 1 A 192.0.2.4"),
      ElementsAre("a.example. 1 A 192.0.2.1", "a.example. 1 A 192.0.2.2",
                  "b.example. 1 A 192.0.2.3", "c.example. 1 A 192.0.2.4"));
}

TEST(ZoneScanner, MissingLastLineEndIsAWarning) {
  const Scan result = scan("a 1 A 192.0.2.1\nb 1 A 192.0.2.2");
  EXPECT_EQ(result.records.size(), 2U);
  EXPECT_THAT(result.report.warnings, ElementsAre("zone:2: file does not end with a line end"));
}

TEST(ZoneScanner, TabsAndManyBlanksSeparateWords) {
  EXPECT_THAT(records_of("a\t1\t\tIN  \t A \t192.0.2.1 \t \n"),
              ElementsAre("a.example. 1 A 192.0.2.1"));
}

TEST(ZoneScanner, CommentEndsAWord) {
  EXPECT_THAT(records_of("a 1 A 192.0.2.1;x ( \" \n;b 1 A 192.0.2.1\n ;\n 1 TXT x;y\n"),
              ElementsAre("a.example. 1 A 192.0.2.1", "a.example. 1 TXT \"x\""));
}

TEST(ZoneScanner, SemicolonInQuotesOrEscapedIsNoComment) {
  EXPECT_THAT(records_at_9("a TXT \"x;y\" x\\;y\n"),
              ElementsAre("a.example. 9 TXT \"x;y\" \"x;y\""));
}

TEST(ZoneScanner, ParenthesesJoinLines) {
  EXPECT_THAT(records_at_9("@ SOA ns.example. ( ; the primary\n"
                           "  hostmaster 1 ; serial\n"
                           "\n"
                           "2 3 4\r\n"
                           "5)\n"
                           "a (A\n192.0.2.1)\n"
                           "(b)A(192.0.2.2)\n"
                           "(\n"
                           "c A 192.0.2.3 )\n"
                           "d TXT ( a ( b ) c )\n"),
              ElementsAre("example. 9 SOA ns.example. hostmaster.example. 1 2 3 4 5",
                          "a.example. 9 A 192.0.2.1", "b.example. 9 A 192.0.2.2",
                          "c.example. 9 A 192.0.2.3", "d.example. 9 TXT \"a\" \"b\" \"c\""));
}

TEST(ZoneScanner, ParenthesisAtTheStartOfALineIsNoBlankOwner) {
  EXPECT_THAT(records_at_9("x A 192.0.2.1\n(\n A A 192.0.2.2\n)\n"),
              ElementsAre("x.example. 9 A 192.0.2.1", "A.example. 9 A 192.0.2.2"));
}

TEST(ZoneScanner, QuotesEndAWordAndBeginOne) {
  EXPECT_THAT(records_at_9("a TXT x\"y z\"w\"\" \"\"v\n"),
              ElementsAre("a.example. 9 TXT \"x\" \"y z\" \"w\" \"\" \"\" \"v\""));
}

TEST(ZoneScanner, EscapesInStrings) {
  EXPECT_THAT(records_at_9(R"(a TXT "\000\255\\\"" \;\(\)\" a\ b "\(" )"
                           "\n"),
              ElementsAre(R"(a.example. 9 TXT "\000\255\\\"" ";()\"" "a b" "(")"));
}

TEST(ZoneScanner, OctetsAbove127AreTakenAsTheyAre) {
  EXPECT_THAT(records_at_9("\xC3\xA4 TXT \xC3\xA4 \"\xE2\x82\xAC\"\n"),
              ElementsAre("\\195\\164.example. 9 TXT \"\\195\\164\" \"\\226\\130\\172\""));
}

TEST(ZoneScanner, EscapedLineFeedInQuotesBelongsToTheString) {
  EXPECT_THAT(records_at_9("a TXT \"x\\\ny\"\nb A 192.0.2.1\n"),
              ElementsAre("a.example. 9 TXT \"x\\010y\"", "b.example. 9 A 192.0.2.1"));
}

TEST(ZoneScanner, SvcbValueInQuotesBelongsToItsKey) {
  EXPECT_THAT(records_at_9("a SVCB 1 . alpn=\"h2,h3\" port=53\n"),
              ElementsAre(HasSubstr("alpn=\"h2,h3\" port=53")));
}

TEST(ZoneScanner, VeryLongLinesAndWords) {
  std::string text = "a 9 TXT";
  for (int i = 0; i < 250; ++i) text += " " + std::string(250, 'x');
  text += "\nb 9 A " + std::string(100'000, ' ') + "192.0.2.1 ;" + std::string(100'000, ';') + "\n";
  ScanOptions options = options_for("example.");
  options.window_octets = 1000;
  Scan result;
  result.report = scan_zone_text(text, "zone", options, collect_into(result.records));
  EXPECT_THAT(result.report.errors, IsEmpty());
  ASSERT_EQ(result.records.size(), 2U);
  EXPECT_EQ(result.records[1], "b.example. 9 A 192.0.2.1");
}

TEST(ZoneScanner, NulOctetIsAnErrorOnItsLine) {
  using std::string_view_literals::operator""sv;
  EXPECT_THAT(errors_of("a 1 A 192.0.2.1\nb 1 TXT x\0y\nc 1 A 192.0.2.1\n"sv),
              ElementsAre("zone:2: NUL octet"));
  EXPECT_THAT(errors_of("b 1 TXT (\n\"x\0\")\n"sv), ElementsAre("zone:2: NUL octet"));
  EXPECT_THAT(errors_of("\0\0\0\0\n"sv), ElementsAre("zone:1: NUL octet"));
}

TEST(ZoneScanner, OpenQuotesAreAnErrorOnTheirLine) {
  const Scan result = scan("$TTL 9\na TXT \"x\nb A 192.0.2.1\nc TXT (\n\"y\n)\nd A 192.0.2.2\n");
  EXPECT_THAT(result.report.errors, ElementsAre("zone:2: quotes are not closed on this line",
                                                "zone:5: quotes are not closed on this line"));
  EXPECT_THAT(result.records, ElementsAre("b.example. 9 A 192.0.2.1", "d.example. 9 A 192.0.2.2"));
  EXPECT_THAT(errors_of("a 9 TXT \"x"), ElementsAre("zone:1: quotes are not closed"));
  EXPECT_THAT(errors_of("a 9 TXT \"x\\"), ElementsAre("zone:1: quotes are not closed"));
}

TEST(ZoneScanner, ParenthesisWithoutPartnerIsAnError) {
  EXPECT_THAT(errors_of("a 9 A 192.0.2.1 )\nb 9 A 192.0.2.1\n"),
              ElementsAre("zone:1: ')' without '('"));
  EXPECT_THAT(errors_of("a 9 A 192.0.2.1\n\nb 9 ( A\n192.0.2.1\n"),
              ElementsAre("zone:3: '(' is never closed"));
}

TEST(ZoneScanner, EscapeAtTheEndOfALineIsAnError) {
  EXPECT_THAT(errors_of("a 9 TXT x\\\nb 9 A 192.0.2.1\n"), ElementsAre(HasSubstr("zone:1: TXT: ")));
  EXPECT_THAT(errors_of("a 9 TXT x\\"), ElementsAre(HasSubstr("zone:1: TXT: ")));
}

// ---- owner names ----

TEST(ZoneScanner, RelativeAbsoluteAndOriginNames) {
  EXPECT_THAT(records_at_9("@ A 192.0.2.1\na.b A 192.0.2.2\na.b. A 192.0.2.3\n. A 192.0.2.4\n"
                           "* A 192.0.2.5\n_x._tcp SRV 1 2 3 @\n"),
              ElementsAre("example. 9 A 192.0.2.1", "a.b.example. 9 A 192.0.2.2",
                          "a.b. 9 A 192.0.2.3", ". 9 A 192.0.2.4", "*.example. 9 A 192.0.2.5",
                          "_x._tcp.example. 9 SRV 1 2 3 example."));
}

TEST(ZoneScanner, EscapesInNames) {
  EXPECT_THAT(
      records_at_9(R"(a\.b A 192.0.2.1
\@ A 192.0.2.1
\000\255x.y A 192.0.2.1
\$ORIGIN A 192.0.2.1
a\ b A 192.0.2.1
\097 A 192.0.2.1
)"),
      ElementsAre(R"(a\.b.example. 9 A 192.0.2.1)", R"(\@.example. 9 A 192.0.2.1)",
                  R"(\000\255x.y.example. 9 A 192.0.2.1)", R"(\$ORIGIN.example. 9 A 192.0.2.1)",
                  R"(a\032b.example. 9 A 192.0.2.1)", "a.example. 9 A 192.0.2.1"));
}

TEST(ZoneScanner, CaseOfNamesIsKept) {
  EXPECT_THAT(records_at_9("ExAmPlE a 192.0.2.1\n"), ElementsAre("ExAmPlE.example. 9 A 192.0.2.1"));
}

TEST(ZoneScanner, WordsThatLookLikeTtlClassOrTypeMayBeOwners) {
  EXPECT_THAT(records_at_9("1h A 192.0.2.1\nIN IN A 192.0.2.1\nA A 192.0.2.1\n300 300 A 192.0.2.1\n"
                           "\"quoted\" A 192.0.2.1\n"),
              ElementsAre("1h.example. 9 A 192.0.2.1", "IN.example. 9 A 192.0.2.1",
                          "A.example. 9 A 192.0.2.1", "300.example. 300 A 192.0.2.1",
                          "quoted.example. 9 A 192.0.2.1"));
}

TEST(ZoneScanner, BlankOwnerIsTheLastStated) {
  EXPECT_THAT(
      records_at_9(
          "a A 192.0.2.1\n A 192.0.2.2\n\n; c\n\tA 192.0.2.3\nb A 192.0.2.4\n 7 A 192.0.2.5\n"),
      ElementsAre("a.example. 9 A 192.0.2.1", "a.example. 9 A 192.0.2.2",
                  "a.example. 9 A 192.0.2.3", "b.example. 9 A 192.0.2.4",
                  "b.example. 7 A 192.0.2.5"));
}

TEST(ZoneScanner, BlankOwnerWithoutOneBeforeIsAnError) {
  EXPECT_THAT(errors_of("\n 9 A 192.0.2.1\n"),
              ElementsAre("zone:2: no owner name, and none before it"));
}

TEST(ZoneScanner, BadOwnerLeavesTheLastOneAsItWas) {
  const Scan result = scan("$TTL 9\na A 192.0.2.1\nbb..c A 192.0.2.2\n A 192.0.2.3\n");
  EXPECT_EQ(result.report.errors.size(), 1U);
  EXPECT_THAT(result.records, ElementsAre("a.example. 9 A 192.0.2.1", "a.example. 9 A 192.0.2.3"));
  EXPECT_EQ(errors_of("bb..c 9 A 192.0.2.2\n 9 A 192.0.2.3\n").size(), 2U);
}

TEST(ZoneScanner, LabelAndNameLimits) {
  const std::string label63(63, 'a');
  const std::string name249 = label63 + "." + label63 + "." + label63 + "." + std::string(52, 'b');
  // 244 octets + 1 length each + "example" + root = 254.
  EXPECT_EQ(records_at_9(label63 + " A 192.0.2.1\n").size(), 1U);
  EXPECT_EQ(records_at_9(name249 + " A 192.0.2.1\n").size(), 1U);
  EXPECT_EQ(records_at_9(name249 + "b A 192.0.2.1\n").size(), 1U);
  EXPECT_THAT(errors_of(name249 + "bb 9 A 192.0.2.1\n"), ElementsAre(HasSubstr("255")));
  EXPECT_THAT(errors_of(label63 + "a 9 A 192.0.2.1\n"), ElementsAre(HasSubstr("63")));
  EXPECT_THAT(errors_of("x." + label63 + "a. 9 A 192.0.2.1\n"), ElementsAre(HasSubstr("63")));
  std::string most_labels;
  for (int i = 0; i < 127; ++i) most_labels += "a.";
  EXPECT_EQ(records_at_9(most_labels + " A 192.0.2.1\n").size(), 1U);
  EXPECT_THAT(errors_of(most_labels + "a. 9 A 192.0.2.1\n"), ElementsAre(HasSubstr("255")));
}

TEST(ZoneScanner, BadNamesAreErrors) {
  for (const char* name : {"..", "a..b", ".a", "a..", "x\\1", "x\\256", "x\\12a", "\"\""})
    EXPECT_EQ(errors_of(std::string(name) + " 9 A 192.0.2.1\n").size(), 1U) << name;
}

// ---- TTL, class and type ----

TEST(ZoneScanner, TtlAndClassComeInEitherOrder) {
  EXPECT_THAT(records_at_9("a 1 IN A 192.0.2.1\na IN 2 A 192.0.2.1\na in A 192.0.2.1\n"
                           "a 3 A 192.0.2.1\na A 192.0.2.1\n IN A 192.0.2.1\n"
                           "a CLASS1 4 A 192.0.2.1\na class1 TYPE1 192.0.2.1\n"),
              ElementsAre("a.example. 1 A 192.0.2.1", "a.example. 2 A 192.0.2.1",
                          "a.example. 9 A 192.0.2.1", "a.example. 3 A 192.0.2.1",
                          "a.example. 9 A 192.0.2.1", "a.example. 9 A 192.0.2.1",
                          "a.example. 4 A 192.0.2.1", "a.example. 9 A 192.0.2.1"));
}

TEST(ZoneScanner, TtlHasUnits) {
  EXPECT_THAT(records_of("$TTL 1d\na A 192.0.2.1\na 1w2d3h4m5s A 192.0.2.1\na 2H A 192.0.2.1\n"),
              ElementsAre("a.example. 86400 A 192.0.2.1", "a.example. 788645 A 192.0.2.1",
                          "a.example. 7200 A 192.0.2.1"));
}

TEST(ZoneScanner, TtlDefaultsFollowRfc2308AndRfc1035) {
  const Scan result = scan(
      "a 5 A 192.0.2.1\nb A 192.0.2.1\n$TTL 7\nc A 192.0.2.1\nd 8 A 192.0.2.1\ne A 192.0.2.1\n");
  EXPECT_THAT(result.records, ElementsAre("a.example. 5 A 192.0.2.1", "b.example. 5 A 192.0.2.1",
                                          "c.example. 7 A 192.0.2.1", "d.example. 8 A 192.0.2.1",
                                          "e.example. 7 A 192.0.2.1"));
  EXPECT_THAT(result.report.warnings, ElementsAre(HasSubstr("zone:2: no TTL here and no $TTL")));
}

TEST(ZoneScanner, SoaMinimumIsTheTtlWhenNoneIsGiven) {
  const Scan result = scan("@ SOA ns hm 1 2 3 4 500\n@ NS ns\nns 8 A 192.0.2.1\nx A 192.0.2.1\n");
  EXPECT_THAT(result.records,
              ElementsAre("example. 500 SOA ns.example. hm.example. 1 2 3 4 500",
                          "example. 500 NS ns.example.", "ns.example. 8 A 192.0.2.1",
                          "x.example. 500 A 192.0.2.1"));
  EXPECT_THAT(result.report.warnings, ElementsAre(HasSubstr("zone:1: no TTL here")));
}

TEST(ZoneScanner, RecordWithoutAnyTtlIsAnError) {
  EXPECT_THAT(errors_of("a A 192.0.2.1\n"),
              ElementsAre("zone:1: no TTL here, no $TTL and none before"));
}

TEST(ZoneScanner, TtlAbove31BitsIsZeroWithAWarning) {
  const Scan result =
      scan("a 2147483648 A 192.0.2.1\n$TTL 4294967295\nb A 192.0.2.1\nc 2147483647 A 192.0.2.1\n");
  EXPECT_THAT(result.records, ElementsAre("a.example. 0 A 192.0.2.1", "b.example. 0 A 192.0.2.1",
                                          "c.example. 2147483647 A 192.0.2.1"));
  EXPECT_THAT(result.report.warnings,
              ElementsAre("zone:1: TTL 2147483648 is above 2147483647, using 0",
                          "zone:2: TTL 4294967295 is above 2147483647, using 0"));
}

TEST(ZoneScanner, BadHeadsAreErrors) {
  EXPECT_THAT(errors_of("a 9 CH A 192.0.2.1\n"), ElementsAre("zone:1: class CH is not IN"));
  EXPECT_THAT(errors_of("a 9 CLASS3 A 192.0.2.1\n"), ElementsAre("zone:1: class CH is not IN"));
  EXPECT_THAT(errors_of("a 9 ANY A 192.0.2.1\n"), ElementsAre("zone:1: class ANY is not IN"));
  EXPECT_THAT(errors_of("a 9 IN IN A 192.0.2.1\n"),
              ElementsAre("zone:1: unknown record type 'IN'"));
  EXPECT_THAT(errors_of("a 9 8 A 192.0.2.1\n"), ElementsAre("zone:1: unknown record type '8'"));
  EXPECT_THAT(errors_of("a 9 FOO x\n"), ElementsAre("zone:1: unknown record type 'FOO'"));
  EXPECT_THAT(errors_of("a 9x A 192.0.2.1\n"), ElementsAre("zone:1: bad TTL '9x'"));
  EXPECT_THAT(errors_of("a 99999999999 A 192.0.2.1\n"),
              ElementsAre("zone:1: bad TTL '99999999999'"));
  EXPECT_THAT(errors_of("a 9 \"A\" 192.0.2.1\n"),
              ElementsAre("zone:1: quotes where TTL, class or type should be"));
  EXPECT_THAT(errors_of("a 9\n"), ElementsAre("zone:1: record has no type"));
  EXPECT_THAT(errors_of("a\n"), ElementsAre("zone:1: record has no type"));
  EXPECT_THAT(errors_of("a 9 NSEC\x13 192.0.2.1\n"),
              ElementsAre("zone:1: unknown record type 'NSEC?'"));
}

TEST(ZoneScanner, MetaTypesAreErrors) {
  for (const char* type : {"AXFR", "OPT", "TSIG", "TYPE0", "TYPE128", "TYPE255"})
    EXPECT_THAT(errors_of(fmt::format("a 9 {} \\# 0\n", type)),
                ElementsAre(HasSubstr("cannot be in a zone")))
        << type;
}

TEST(ZoneScanner, UnknownTypesInRfc3597Form) {
  EXPECT_THAT(
      records_at_9(
          "a TYPE65000 \\# 4 0102 0304\na CLASS1 TYPE1 \\# 4 C0000201\na TYPE65000 \\# 0\n"),
      ElementsAre("a.example. 9 TYPE65000 \\# 4 01020304", "a.example. 9 A 192.0.2.1",
                  "a.example. 9 TYPE65000 \\# 0"));
}

TEST(ZoneScanner, BadRdataIsAnErrorWithTheTypeOnTheRecordsFirstLine) {
  EXPECT_THAT(errors_of("\n\na 9 A (\n192.0.2\n)\n"), ElementsAre(HasSubstr("zone:3: A: ")));
  EXPECT_THAT(errors_of("a 9 A 192.0.2.1 192.0.2.2\n"), ElementsAre(HasSubstr("zone:1: A: ")));
  EXPECT_THAT(errors_of("a 9 A\n"), ElementsAre(HasSubstr("zone:1: A: ")));
}

// ---- errors in general ----

TEST(ZoneScanner, GoesOnBehindErrorsUpToTheLimit) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "a 9 A x\nb 9 A 192.0.2.1\n";
  ScanOptions options = options_for("example.");
  options.max_errors = 3;
  const Scan result = scan(text, options);
  EXPECT_THAT(result.report.errors,
              ElementsAre(HasSubstr("zone:1: "), HasSubstr("zone:3: "), HasSubstr("zone:5: ")));
  EXPECT_EQ(result.records.size(), 2U);
}

TEST(ZoneScanner, WarningsAreBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a 4294967295 A 192.0.2.1\n";
  const Scan result = scan(text);
  EXPECT_EQ(result.records.size(), 1000U);
  EXPECT_EQ(result.report.warnings.size(), 100U);
}

TEST(ZoneScanner, ErrorOfTheSinkGetsTheRecordsLine) {
  const ScanReport report =
      scan_zone_text("a 9 A 192.0.2.1\n\nb.net. 9 A 192.0.2.1\n", "zone", options_for("example."),
                     [](const ScannedRecord& record) -> Status {
                       if (record.owner.is_at_or_below(Name::from_text("example.").value()))
                         return {};
                       return fail(Errc::kInvalid, "out of zone");
                     });
  EXPECT_THAT(report.errors, ElementsAre("zone:3: out of zone"));
}

// ---- $ORIGIN, $TTL ----

TEST(ZoneScanner, OriginChangesRelativeNames) {
  EXPECT_THAT(records_at_9("$ORIGIN sub\na MX 5 @\n$origin sub2\na A 192.0.2.1\n$ORIGIN .\n"
                           "a.example A 192.0.2.1\n$ORIGIN net.\n@ NS a\n"),
              ElementsAre("a.sub.example. 9 MX 5 sub.example.", "a.sub2.sub.example. 9 A 192.0.2.1",
                          "a.example. 9 A 192.0.2.1", "net. 9 NS a.net."));
}

TEST(ZoneScanner, OwnerInheritedOverAnOriginIsAWarning) {
  const Scan result = scan("$TTL 9\na A 192.0.2.1\n$ORIGIN b\n A 192.0.2.2\n A 192.0.2.3\n");
  EXPECT_THAT(result.records, ElementsAre("a.example. 9 A 192.0.2.1", "a.example. 9 A 192.0.2.2",
                                          "a.example. 9 A 192.0.2.3"));
  EXPECT_THAT(result.report.warnings,
              ElementsAre("zone:4: owner name inherited from before $ORIGIN: a.example."));
}

TEST(ZoneScanner, BadDirectivesAreErrors) {
  EXPECT_THAT(
      errors_of("$ORIGIN\n$ORIGIN a b\n$ORIGIN a..\n$TTL\n$TTL x\n$TTL 5 6\n$FOO 1\n$\n$INCLUDE\n"),
      ElementsAre("zone:1: $ORIGIN needs 1 argument", "zone:2: extra text 'b' behind $ORIGIN",
                  HasSubstr("zone:3: "), "zone:4: $TTL needs 1 argument", "zone:5: bad TTL 'x'",
                  "zone:6: extra text '6' behind $TTL", "zone:7: unknown directive '$FOO'",
                  "zone:8: unknown directive '$'", "zone:9: $INCLUDE needs 1 argument"));
}

TEST(ZoneScanner, DirectiveBehindABlankIsNone) {
  EXPECT_THAT(errors_of("a 9 A 192.0.2.1\n $TTL 5\n"),
              ElementsAre("zone:2: unknown record type '$TTL'"));
}

// ---- parts of a file ----

TEST(ZoneScanner, RangesHandOnTheirState) {
  const std::string text =
      "a 5 A 192.0.2.1\n$ORIGIN sub\n$TTL 7\n b 1 A x\n 8 A 192.0.2.2\n\nc A 192.0.2.3\n A "
      "192.0.2.4\n";
  std::vector<std::string> whole;
  const ScanReport expected =
      scan_zone_text(text, "zone", options_for("example."), collect_into(whole));
  std::vector<std::string> parts;
  std::vector<std::string> errors;
  ScanState state;
  state.origin = Name::from_text("example.").value();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    const ScanReport report = scan_zone_range(std::string_view(text).substr(at, end - at), "zone",
                                              options_for("."), state, collect_into(parts));
    errors.insert(errors.end(), report.errors.begin(), report.errors.end());
    at = end;
  }
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(errors, expected.errors);
  EXPECT_EQ(state.line, 9U);
}

// ---- $INCLUDE and files ----

class ZoneScannerFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "zone_scanner." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_ + "/sub");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  Scan scan_file(const std::string& path, const ScanOptions& options = options_for("example.")) {
    Scan result;
    result.report = scan_zone_file(path, options, collect_into(result.records));
    return result;
  }

  std::string folder_;
};

TEST_F(ZoneScannerFiles, ReadsAFile) {
  const Scan result = scan_file(write("a.zone", "a 9 A 192.0.2.1\nb 9 A x\n"));
  EXPECT_THAT(result.records, ElementsAre("a.example. 9 A 192.0.2.1"));
  EXPECT_THAT(result.report.errors, ElementsAre(HasSubstr(folder_ + "/a.zone:2: A: ")));
}

TEST_F(ZoneScannerFiles, FileLargerThanTheWindow) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("host{} 300 IN A 192.0.2.{}\n", i, i % 256);
  text += "last 9 A x\n";
  const Scan result = scan_file(write("big.zone", text));
  EXPECT_EQ(result.records.size(), 50'000U);
  EXPECT_EQ(result.records[49'999], "host49999.example. 300 A 192.0.2.79");
  EXPECT_THAT(result.report.errors, ElementsAre(HasSubstr("big.zone:50001: A: ")));
}

TEST_F(ZoneScannerFiles, MissingFileIsAnError) {
  EXPECT_THAT(scan_file(folder_ + "/none").report.errors,
              ElementsAre(HasSubstr("No such file or directory")));
}

TEST_F(ZoneScannerFiles, DirectoryFifoAndDeviceAreErrorsNotHangs) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {folder_, fifo, std::string("/dev/null")}) {
    EXPECT_THAT(scan_file(path).report.errors, ElementsAre(path + ": not a regular file"));
    const Scan included = scan_file(write("main", "a 9 A 192.0.2.1\n$INCLUDE " + path + "\n"));
    EXPECT_THAT(included.report.errors,
                ElementsAre(folder_ + "/main:2: $INCLUDE " + path + ": not a regular file"));
  }
}

TEST_F(ZoneScannerFiles, IncludedPathIsRelativeToTheIncludingFile) {
  write("sub/b.zone", "b A 192.0.2.2\n$INCLUDE c.zone\n");
  write("sub/c.zone", "c A 192.0.2.3\n");
  const Scan result =
      scan_file(write("a.zone", "$TTL 9\na A 192.0.2.1\n$INCLUDE sub/b.zone\n$include \"" +
                                    folder_ + "/sub/c.zone\" ; absolute\nd A 192.0.2.4\n"));
  EXPECT_THAT(result.report.errors, IsEmpty());
  EXPECT_THAT(result.records, ElementsAre("a.example. 9 A 192.0.2.1", "b.example. 9 A 192.0.2.2",
                                          "c.example. 9 A 192.0.2.3", "c.example. 9 A 192.0.2.3",
                                          "d.example. 9 A 192.0.2.4"));
}

TEST_F(ZoneScannerFiles, IncludeRestoresOriginAndOwnerButNotTtl) {
  write("b.zone", " A 192.0.2.9\nb A 192.0.2.2\n$ORIGIN deep\n$TTL 7\nc A 192.0.2.3\n");
  const Scan result = scan_file(
      write("a.zone", "$TTL 9\na A 192.0.2.1\n$INCLUDE b.zone sub\n TXT x\nd A 192.0.2.4\n"));
  EXPECT_THAT(result.report.errors, IsEmpty());
  EXPECT_THAT(result.records,
              ElementsAre("a.example. 9 A 192.0.2.1", "a.example. 9 A 192.0.2.9",
                          "b.sub.example. 9 A 192.0.2.2", "c.deep.sub.example. 7 A 192.0.2.3",
                          "a.example. 7 TXT \"x\"", "d.example. 7 A 192.0.2.4"));
  EXPECT_THAT(result.report.warnings,
              ElementsAre(HasSubstr("a.zone:4: owner name inherited from before $INCLUDE")));
}

TEST_F(ZoneScannerFiles, ErrorsInAnIncludedFileNameThatFile) {
  write("b.zone", "\nb 9 A x");
  const Scan result = scan_file(write("a.zone", "$INCLUDE b.zone\nc 9 A y\n"));
  EXPECT_THAT(result.report.errors,
              ElementsAre(HasSubstr("/b.zone:2: A: "), HasSubstr("/a.zone:2: A: ")));
  EXPECT_THAT(result.report.warnings, ElementsAre(HasSubstr("/b.zone:2: file does not end")));
}

TEST_F(ZoneScannerFiles, IncludingItselfIsAnError) {
  write("b.zone", "$INCLUDE ../a.zone\n");
  write("sub/b.zone", "$INCLUDE ../a.zone\n");
  EXPECT_THAT(scan_file(write("self.zone", "$INCLUDE ./self.zone\n")).report.errors,
              ElementsAre(HasSubstr("self.zone:1: $INCLUDE")));
  EXPECT_THAT(scan_file(write("a.zone", "$INCLUDE sub/b.zone\n")).report.errors,
              ElementsAre(HasSubstr("is being read already")));
}

TEST_F(ZoneScannerFiles, IncludeDepthIsBounded) {
  for (int i = 0; i < 20; ++i)
    write(std::to_string(i), fmt::format("n{} 9 A 192.0.2.1\n$INCLUDE {}\n", i, i + 1));
  const Scan result = scan_file(folder_ + "/0");
  EXPECT_EQ(result.records.size(), 17U);
  EXPECT_THAT(result.report.errors,
              ElementsAre(HasSubstr("/16:2: $INCLUDE is nested more than 16 deep")));
}

TEST_F(ZoneScannerFiles, NumberOfIncludedFilesIsBounded) {
  // 12^6 inclusions, were they all made.
  for (int i = 0; i < 6; ++i) {
    std::string text;
    for (int k = 0; k < 12; ++k) text += fmt::format("$INCLUDE {}\n", i + 1);
    write(std::to_string(i), text);
  }
  write("6", "");
  ScanOptions options = options_for("example.");
  options.max_included = 500;
  options.max_errors = 1;
  EXPECT_THAT(scan_file(folder_ + "/0", options).report.errors,
              ElementsAre(HasSubstr("more than 500 files are included")));
}

TEST_F(ZoneScannerFiles, IncludeCanBeForbidden) {
  write("b.zone", "b 9 A 192.0.2.2\n");
  ScanOptions options = options_for("example.");
  options.allow_include = false;
  const Scan result = scan_file(write("a.zone", "$INCLUDE b.zone\n"), options);
  EXPECT_THAT(result.report.errors, ElementsAre(HasSubstr("a.zone:1: $INCLUDE is not allowed")));
  EXPECT_THAT(result.records, IsEmpty());
}

TEST_F(ZoneScannerFiles, FileThatShrinksWhileItIsReadIsAnError) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "a 9 A 192.0.2.1\n";
  const std::string path = write("a.zone", text);
  std::uint64_t seen = 0;
  const ScanReport report =
      scan_zone_file(path, options_for("example."), [&](const ScannedRecord&) -> Status {
        if (seen++ == 0) std::filesystem::resize_file(path, 100);
        return {};
      });
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("file was changed while it was read")));
}

TEST_F(ZoneScannerFiles, EndlessParenthesisDoesNotFillMemory) {
  std::string text = "a 9 TXT (\n";
  for (int i = 0; i < 20; ++i) text += std::string(1 << 20, ' ') + "\n";
  const Scan result = scan_file(write("a.zone", text));
  EXPECT_THAT(result.report.errors, ElementsAre(HasSubstr("octets of text")));
}

TEST(ZoneScanner, TooManyWordsInARecordIsAnError) {
  std::string text = "a 9 TXT (";
  for (int i = 0; i < 200'000; ++i) text += "x ";
  text += ")\nb 9 A 192.0.2.1\n";
  Scan result;
  result.report =
      scan_zone_text(text, "zone", options_for("example."), collect_into(result.records));
  EXPECT_THAT(result.report.errors, ElementsAre("zone:1: too many words in one record"));
  EXPECT_THAT(result.records, ElementsAre("b.example. 9 A 192.0.2.1"));
}

// ---- $GENERATE ----

std::vector<std::string> generated(std::string_view arguments) {
  return records_at_9("$GENERATE " + std::string(arguments) + "\n");
}

TEST(Generate, ReplacesDollarOnBothSides) {
  EXPECT_THAT(generated("1-3 h$ A 192.0.2.$"),
              ElementsAre("h1.example. 9 A 192.0.2.1", "h2.example. 9 A 192.0.2.2",
                          "h3.example. 9 A 192.0.2.3"));
  EXPECT_THAT(generated("7-7 $ PTR h$.net."), ElementsAre("7.example. 9 PTR h7.net."));
}

TEST(Generate, RangeHasAStep) {
  EXPECT_THAT(generated("1-7/3 h$ A 192.0.2.1"),
              ElementsAre("h1.example. 9 A 192.0.2.1", "h4.example. 9 A 192.0.2.1",
                          "h7.example. 9 A 192.0.2.1"));
  EXPECT_EQ(generated("0-1/2147483647 h$ A 192.0.2.1").size(), 1U);
  EXPECT_EQ(generated("2147483646-2147483647 h$ A 192.0.2.1").size(), 2U);
}

TEST(Generate, ModifierHasOffsetWidthAndBase) {
  EXPECT_THAT(generated("10-10 h${5,4,x} TXT a${0,4,X}b${0,0,o}c${-3}d${1,3,d}e${+1,2}"),
              ElementsAre("h000f.example. 9 TXT \"a000Ab12c7d011e11\""));
  EXPECT_THAT(generated("1-1 a TXT ${4094,0,x}.${4094,0,o}.${4094,9,o}.${0,20}"),
              ElementsAre("a.example. 9 TXT \"fff.7777.000007777.00000000000000000001\""));
}

TEST(Generate, NibblesAreLabelsFromTheLeastSignificantOn) {
  EXPECT_THAT(generated("10-10 ${0,4,n} TXT ${0,3,N} "), ElementsAre("a.0. 9 TXT \"A.0\""));
  EXPECT_THAT(generated("10-10 a TXT ${0,1,n}"), ElementsAre("a.example. 9 TXT \"a\""));
  EXPECT_THAT(generated("10-10 a TXT ${0,2,n}"), ElementsAre("a.example. 9 TXT \"a.\""));
  EXPECT_THAT(generated("10-10 a TXT ${0,0,n}"), ElementsAre("a.example. 9 TXT \"a\""));
  EXPECT_THAT(generated("10-10 a TXT ${255,7,n}"), ElementsAre("a.example. 9 TXT \"9.0.1.0\""));
  EXPECT_THAT(generated("11-11 a TXT ${255,8,N}"), ElementsAre("a.example. 9 TXT \"A.0.1.0.\""));
}

TEST(Generate, NegativeValuesAreTwosComplementInBasesOtherThanTen) {
  EXPECT_THAT(generated("1-1 h${-5} TXT \"${-5,4,d} ${-5,4,x} ${-5,0,n} ${-1,4}\""),
              ElementsAre("h-4.example. 9 TXT \"-004\" \"fffffffc\" \"c.f.f.f.f.f.f.f\" \"0000\""));
}

TEST(Generate, DollarsCanBeEscaped) {
  EXPECT_THAT(generated("1-1 h$$ TXT a$$"), ElementsAre("h\\$.example. 9 TXT \"a$\""));
  EXPECT_THAT(generated("1-1 h\\$$ TXT \\$$"), ElementsAre("h\\$1.example. 9 TXT \"$1\""));
  EXPECT_THAT(generated("1-1 h$$$ TXT \\\\$"), ElementsAre("h\\$1.example. 9 TXT \"\\\\1\""));
  EXPECT_THAT(generated("1-1 h\\065$ TXT {$}"), ElementsAre("hA1.example. 9 TXT \"{1}\""));
}

TEST(Generate, TtlAndClassAreTaken) {
  EXPECT_THAT(generated("1-1 h$ 77 IN A 192.0.2.1"), ElementsAre("h1.example. 77 A 192.0.2.1"));
  EXPECT_THAT(generated("1-1 h$ IN 1h A 192.0.2.1"), ElementsAre("h1.example. 3600 A 192.0.2.1"));
}

TEST(Generate, QuotedRdataIsReadAsARestOfALine) {
  EXPECT_THAT(generated("1-1 h$ MX \"10 mx$\""), ElementsAre("h1.example. 9 MX 10 mx1.example."));
  EXPECT_THAT(generated("1-1 h$ TXT \"a $ b\""),
              ElementsAre("h1.example. 9 TXT \"a\" \"1\" \"b\""));
  EXPECT_THAT(generated("1-1 h$ TXT \"\\\"a $ b\\\"\""),
              ElementsAre("h1.example. 9 TXT \"a 1 b\""));
  EXPECT_THAT(generated("1-1 h$ TYPE1 \"\\# 4 0101010$\""), ElementsAre("h1.example. 9 A 1.1.1.1"));
  EXPECT_THAT(generated("1-1 h$ TXT \"(a) ; $\""), ElementsAre("h1.example. 9 TXT \"a\""));
}

TEST(Generate, LastOwnerStaysWhatItWas) {
  EXPECT_THAT(records_at_9("x A 192.0.2.1\n$GENERATE 1-1 h$ A 192.0.2.2\n A 192.0.2.3\n"),
              ElementsAre("x.example. 9 A 192.0.2.1", "h1.example. 9 A 192.0.2.2",
                          "x.example. 9 A 192.0.2.3"));
}

TEST(Generate, BadRangesAreErrors) {
  for (const char* range : {"3-1", "1", "1-", "-1-3", "-3", "1-3/0", "1-3/-1", "1-3/", "1-2x",
                            "1-2/1x", "1-2147483648", "1-2/2147483648", "a-b", "1--3", "/", ""})
    EXPECT_EQ(errors_of(fmt::format("$TTL 9\n$GENERATE \"{}\" h$ A 192.0.2.1\n", range)),
              std::vector<std::string>{fmt::format("zone:2: bad range '{}' in $GENERATE", range)});
}

TEST(Generate, BadModifiersAreErrors) {
  for (const char* modifier :
       {"{a}", "{}", "{1,2,q}", "{1,,d}", "{1,2,}", "{1,}", "{1,2,d,e}", "{1,2,de}", "{1,-2,d}",
        "{1,128}", "{1,99999999999}", "{2147483648}", "{-2147483649}", "{1", "{+}", "{++1}"})
    EXPECT_EQ(errors_of(fmt::format("$TTL 9\n$GENERATE 1-9 h${} A 192.0.2.1\n", modifier)).size(),
              1U)
        << modifier;
  EXPECT_THAT(errors_of("$TTL 9\n$GENERATE 1-2 h${2147483647} A 192.0.2.1\n"),
              ElementsAre(HasSubstr("out of range")));
}

TEST(Generate, OtherMistakesAreOneErrorEach) {
  for (const char* arguments :
       {"", "1-2", "1-2 h$", "1-2 h$ A", "1-2 h$ MX 10 mx", "1-2 h$ FOO x", "1-2 h$ CH A 192.0.2.1",
        "1-2 h$ A 192.0.2", "1-2 h$ TXT \"\"", "1-2 h$ TXT \"(a\"", "1-2 h$ TXT \"a\\\nb\"",
        "1-2 h..$ A 192.0.2.1", "1-2 h$ TXT \"\\\"a\""})
    EXPECT_EQ(errors_of(fmt::format("$TTL 9\n$GENERATE {}\n", arguments)).size(), 1U) << arguments;
}

TEST(Generate, NumberOfRecordsIsBounded) {
  ScanOptions options = options_for("example.");
  options.max_generated = 10;
  EXPECT_EQ(scan("$TTL 9\n$GENERATE 1-10 h$ A 192.0.2.1\n", options).records.size(), 10U);
  EXPECT_THAT(scan("$TTL 9\n$GENERATE 0-10 h$ A 192.0.2.1\n", options).report.errors,
              ElementsAre("zone:2: $GENERATE would make 11 records, above 10"));
}

/// Comments are no records, and a stop of the manager waits for the end of the scan.
TEST(GivenUpScan, EndsWithinItsWindowOfComments) {
  std::string text = "a 5 NS b\n";
  while (text.size() < 1U << 20) text += "; a comment, in which nothing is asked\n";
  std::atomic<std::uint64_t> bytes = 0;
  ScanOptions options = options_for("example.");
  options.window_octets = 4096;
  options.bytes_read = &bytes;
  Progress progress;
  const Progress::Scope scope(&progress);
  const auto give_up = [&](const ScannedRecord&) -> Status {
    progress.give_up();
    return {};
  };
  options.max_errors = 1;
  const ScanReport report = scan_zone_text(text, "zone", options, give_up);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr(kGivenUp)));
  EXPECT_LE(bytes, 3 * options.window_octets);
}

}  // namespace zone_scanner_test
}  // namespace pando::dns

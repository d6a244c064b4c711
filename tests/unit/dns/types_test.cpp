#include "dns/types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <string>

#include "dns/text.h"
#include "tests/support/trees.h"

namespace pando::dns {
namespace types_test {

TEST(RRTypeText, MnemonicsAreReadInAnyCase) {
  EXPECT_EQ(*rrtype_from_text("A"), RRType::kA);
  EXPECT_EQ(*rrtype_from_text("aaaa"), RRType::kAAAA);
  EXPECT_EQ(*rrtype_from_text("Nsec3Param"), RRType::kNSEC3PARAM);
  EXPECT_EQ(*rrtype_from_text("NSAP-PTR"), RRType::kNSAP_PTR);
  EXPECT_EQ(*rrtype_from_text("any"), RRType::kANY);
}

TEST(RRTypeText, EveryNumberSurvivesTheRoundTrip) {
  for (std::uint32_t value = 0; value <= 65535; ++value) {
    const auto type = static_cast<RRType>(value);
    auto back = rrtype_from_text(to_text(type));
    ASSERT_TRUE(back) << value;
    EXPECT_EQ(*back, type) << to_text(type);
  }
}

/// Rows of the enumeration have the form kNAME = NUMBER. No other number has a name.
TEST(RRTypeText, EveryEnumeratorHasItsMnemonic) {
  std::ifstream header(pando::tests::source_path("/dns/types.h"));
  std::string line;
  while (std::getline(header, line) && !line.starts_with("enum class RRType")) continue;
  std::size_t types = 0;
  for (std::smatch row; std::getline(header, line) && line != "};"; ++types) {
    ASSERT_TRUE(std::regex_match(line, row, std::regex("  k([A-Z0-9_]+) = ([0-9]+),"))) << line;
    std::string name = row[1];
    std::ranges::replace(name, '_', '-');
    EXPECT_EQ(to_text(static_cast<RRType>(std::stoul(row[2]))), name);
  }
  std::size_t named = 0;
  for (std::uint32_t value = 0; value <= 65535; ++value)
    named += to_text(static_cast<RRType>(value)).starts_with("TYPE") ? 0 : 1;
  EXPECT_EQ(types, named);
}

TEST(RRTypeText, Rfc3597FormIsReadForEveryNumberAndPrintedForUnknownOnes) {
  EXPECT_EQ(*rrtype_from_text("TYPE1"), RRType::kA);
  EXPECT_EQ(*rrtype_from_text("type65535"), static_cast<RRType>(65535));
  EXPECT_EQ(to_text(static_cast<RRType>(65535)), "TYPE65535");
  EXPECT_EQ(to_text(static_cast<RRType>(54)), "TYPE54");
  EXPECT_EQ(to_text(static_cast<RRType>(1)), "A");
}

TEST(RRTypeText, OtherWordsAreRefused) {
  for (const char* text : {"", "AA", "TYPE", "TYPE65536", "TYPE-1", "TYPE1x", "TYPE 1", "TYP1", "1",
                           "A ", "NSEC3PARAMS"})
    EXPECT_FALSE(rrtype_from_text(text)) << text;
  EXPECT_FALSE(rrtype_from_text(std::string(100000, 'A')));
}

TEST(RRClassText, NamesAndNumbers) {
  EXPECT_EQ(*rrclass_from_text("in"), RRClass::kIN);
  EXPECT_EQ(*rrclass_from_text("CHAOS"), RRClass::kCH);
  EXPECT_EQ(*rrclass_from_text("HS"), RRClass::kHS);
  EXPECT_EQ(*rrclass_from_text("CLASS1"), RRClass::kIN);
  // RFC 1035 §3.2.4, RFC 2136 §1.3: each class is read as it is written.
  for (const RRClass rr_class :
       {RRClass::kIN, RRClass::kCH, RRClass::kHS, RRClass::kNONE, RRClass::kANY})
    EXPECT_EQ(*rrclass_from_text(to_text(rr_class)), rr_class);
  EXPECT_EQ(to_text(RRClass::kNONE), "NONE");
  EXPECT_EQ(to_text(RRClass::kANY), "ANY");
  EXPECT_EQ(to_text(static_cast<RRClass>(32)), "CLASS32");
  EXPECT_FALSE(rrclass_from_text("CLASS65536"));
  EXPECT_FALSE(rrclass_from_text("INN"));
}

TEST(RcodeText, SixteenIsBadversAndInTsigBadsig) {
  EXPECT_EQ(to_text(Rcode::kBadVers), "BADVERS");
  EXPECT_EQ(tsig_error_to_text(Rcode::kBadSig), "BADSIG");
  EXPECT_EQ(tsig_error_to_text(Rcode::kBadTime), "BADTIME");
}

TEST(RcodeText, NamesAndNumbers) {
  EXPECT_EQ(to_text(Rcode::kNoError), "NOERROR");
  EXPECT_EQ(to_text(Rcode::kNotZone), "NOTZONE");
  EXPECT_EQ(to_text(Rcode::kBadCookie), "BADCOOKIE");
  EXPECT_EQ(to_text(static_cast<Rcode>(12)), "RCODE12");
  EXPECT_EQ(to_text(static_cast<Rcode>(4095)), "RCODE4095");
}

TEST(OpcodeText, NamesAndNumbers) {
  // RFC 1035 §4.1.1, RFC 1996 §3.1, RFC 2136 §1.3, RFC 8490 §5.4
  EXPECT_EQ(to_text(static_cast<Opcode>(0)), "QUERY");
  EXPECT_EQ(to_text(static_cast<Opcode>(1)), "IQUERY");
  EXPECT_EQ(to_text(static_cast<Opcode>(2)), "STATUS");
  EXPECT_EQ(to_text(static_cast<Opcode>(4)), "NOTIFY");
  EXPECT_EQ(to_text(static_cast<Opcode>(5)), "UPDATE");
  EXPECT_EQ(to_text(static_cast<Opcode>(6)), "DSO");
  EXPECT_EQ(to_text(static_cast<Opcode>(3)), "OPCODE3");
}

TEST(MetaTypes, MayNotBeInZones) {
  for (const char* text : {"TYPE0", "OPT", "TSIG", "TKEY", "IXFR", "AXFR", "ANY", "NXNAME"})
    EXPECT_TRUE(is_meta_type(*rrtype_from_text(text))) << text;
  for (const char* text : {"A", "NULL", "EUI64", "URI", "TA", "TYPE65280"})
    EXPECT_FALSE(is_meta_type(*rrtype_from_text(text))) << text;
}

TEST(ParseDecimal, TakesDigitsUpToTheMaximum) {
  EXPECT_EQ(parse_decimal("0", 0), 0U);
  EXPECT_EQ(parse_decimal("007", 7), 7U);
  EXPECT_EQ(parse_decimal("18446744073709551615", ~0ULL), ~0ULL);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "1e3"})
    EXPECT_FALSE(parse_decimal(text, 100)) << text;
  EXPECT_FALSE(parse_decimal("18446744073709551616", ~0ULL));
  EXPECT_FALSE(parse_decimal("8", 7));
  EXPECT_FALSE(parse_decimal("10", 9));
  EXPECT_FALSE(parse_decimal("256", 255));
}

TEST(QuoteForMessage, KeepsMessagesShortAndPrintable) {
  EXPECT_EQ(quote_for_message("abc"), "'abc'");
  EXPECT_EQ(quote_for_message("a\n\x1b\xff"),
            "'a?"
            "?"
            "?'");
  EXPECT_EQ(quote_for_message(std::string(41, 'x')), "'" + std::string(40, 'x') + "...'");
}

}  // namespace types_test
}  // namespace pando::dns

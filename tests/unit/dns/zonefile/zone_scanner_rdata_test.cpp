// The fast readers must say what the general ones say, or nothing.

#include "dns/zonefile/zone_scanner_rdata.h"

#include <gtest/gtest.h>

#include <random>

#include "dns/zonefile/zone_scanner_lexer.h"

namespace pando::dns {
namespace zone_scanner_rdata_test {

struct Sample {
  RRType type;
  const char* text;
};

/// What fills zones: to be read by the fast readers, and the start of mutations.
const Sample kUsual[] = {
    {RRType::kA, "192.0.2.1"},
    {RRType::kA, "0.0.0.0"},
    {RRType::kA, "255.255.255.255"},
    {RRType::kA, "10.9.99.100"},
    {RRType::kNS, "."},
    {RRType::kNS, "ns1"},
    {RRType::kNS, "ns1.example.net."},
    {RRType::kNS,
     "a-label-that-has-more-than-sixteen-octets.and.another-one-of-those.example.net."},
    {RRType::kCNAME, "a.b.c.d.e.f.g.h"},
    {RRType::kPTR, "host-1-2-3-4.example.net."},
    {RRType::kDNAME, "x"},
    {RRType::kMX, "10 mail"},
    {RRType::kMX, "65535 mail.example."},
    {RRType::kSRV, "10 60 5060 sip"},
    {RRType::kDS, "60485 13 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50A"},
    {RRType::kDS, "1 8 2 d4b7d520e7bb5f0f67674a0cceb1e3e0614b93c4f9e99b8383f6a1e4469da50a"},
    {RRType::kRRSIG,
     "A 13 2 3600 20460101000000 20250101000000 54078 signed.example. "
     "E/WshC8nxB7I/T9FdkwrkJBwbvax0fWJIg7TlgPeUdo2jGJ7yYYFUcWP9mRhyYkopLQIIMUQQCR4bapfZ15sug=="},
    {RRType::kRRSIG,
     "NSEC3 8 1 86400 20240229235959 19700101000000 1 . "
     "E/WshC8nxB7I/T9FdkwrkJBwbvax0fWJIg7TlgPeUdo2jGJ7yYYFUcWP 9mRhyYkopLQIIMUQQCR4bapfZ15suw8="},
    {RRType::kRRSIG, "DNSKEY 8 3 86400 21051231235959 20000229120000 1 a QUJD"},
    {RRType::kNSEC, "next A NS SOA MX TXT AAAA RRSIG NSEC DNSKEY"},
    {RRType::kNSEC, "next.example. HTTPS SVCB SPF SRV a"},
    {RRType::kNSEC3, "1 1 10 AABBCCDD 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A RRSIG"},
    {RRType::kNSEC3, "1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS DS RRSIG"},
};

/// Right or wrong, but not usual.
const Sample kUnusual[] = {
    {RRType::kA, "256.0.0.1"},
    {RRType::kA, "1.2.3"},
    {RRType::kA, "1.2.3.4.5"},
    {RRType::kA, "1.2.3."},
    {RRType::kA, ".1.2.3"},
    {RRType::kA, "1..2.3"},
    {RRType::kA, "01.2.3.4"},
    {RRType::kA, "1.2.3.00"},
    {RRType::kA, "1.2.3.1000"},
    {RRType::kA, "1.2.3.4x"},
    {RRType::kA, "1.2.3.4 5"},
    {RRType::kA, "1:2"},
    {RRType::kNS, "@"},
    {RRType::kNS, "a..b"},
    {RRType::kNS, "a b"},
    {RRType::kMX, "65536 mail"},
    {RRType::kMX, "1"},
    {RRType::kMX, "-1 mail"},
    {RRType::kSRV, "1 2 3"},
    {RRType::kDS, "1 8 1 2BB183AF5F22588179A53B0A98631FAD1A292118"},
    {RRType::kDS, "1 8 2 2BB183AF5F22588179A53B0A98631FAD1A292118"},
    {RRType::kDS, "1 8 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0 614B93C4F9E99B8383F6A1E4469DA50A"},
    {RRType::kDS, "1 8 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50"},
    {RRType::kDS, "1 8 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50G"},
    {RRType::kDS, "1 RSASHA256 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50A"},
    {RRType::kRRSIG, "A 13 2 3600 20250229000000 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20251301000000 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250001000000 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250100000000 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250101240000 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250101006000 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250101000060 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 2025010100000: 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 1735689600 20250101000000 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 21060207062815 19691231235959 1 . QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 . QUI"},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 . QUJ="},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 . QR=="},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 . QUJD===="},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 . QQ== QUJD"},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 . QU JD"},
    {RRType::kRRSIG, "A 13 2 3600 20250101000000 20250101000000 1 ."},
    {RRType::kRRSIG, "TYPE1 13 2 1h 20250101000000 20250101000000 1 . QUJD"},
    {RRType::kNSEC, "next"},
    {RRType::kNSEC, "next CAA"},
    {RRType::kNSEC, "next TYPE1"},
    {RRType::kNSEC, "next A A"},
    {RRType::kNSEC, "next FOO"},
    {RRType::kNSEC3, "1 1 10 AABBCCD 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A"},
    {RRType::kNSEC3, "1 1 10 - 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR"},
    {RRType::kNSEC3, "1 1 10 x 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A"},
    {RRType::kNSEC3, "1 1 10 - 2T7B4G4VSA5SMI47K61MV5BV1A22BOJW A"},
    {RRType::kNSEC3, "1 1 10 - 2T7B4G4VSA5SMI47 A"},
    {RRType::kTXT, "x"},
};

/// The fast reader's octets, which are empty when it declines; text that is not plain is skipped.
/// Fails the test when it says other than rdata_from_text.
Bytes read_both(RRType type, std::string_view text) {
  static const PaddedName origin(Name::from_text("example.").value());
  std::string padded(text);
  padded += '\n';
  padded.append(kLexerPadding, '\0');
  RecordLexer lexer;
  lexer.set_text(std::string_view(padded).substr(0, text.size()), true);
  if (lexer.next() != RecordLexer::Outcome::kRecord || !lexer.plain()) return {};
  PlainRdata fast;
  const std::size_t size = read_plain_rdata(type, lexer.tokens(), origin, fast.data());
  if (size == 0) return {};
  Bytes general;
  const Status read = rdata_from_text(type, lexer.tokens(), origin.view(), general);
  const Bytes octets(fast.begin(), fast.begin() + static_cast<std::ptrdiff_t>(size));
  EXPECT_TRUE(read) << to_text(type) << ' ' << text;
  EXPECT_EQ(octets, general) << to_text(type) << ' ' << text;
  return octets;
}

TEST(PlainRdata, UsualFormsAreReadFast) {
  for (const Sample& sample : kUsual)
    EXPECT_FALSE(read_both(sample.type, sample.text).empty())
        << to_text(sample.type) << ' ' << sample.text;
}

TEST(PlainRdata, UnusualFormsAreReadAsInGeneralOrLeftAlone) {
  for (const Sample& sample : kUnusual) read_both(sample.type, sample.text);
  EXPECT_TRUE(read_both(RRType::kA, "256.0.0.1").empty());
}

TEST(PlainRdata, EveryAddressOctetIsReadFast) {
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(read_both(RRType::kA, fmt::format("{0}.{0}.{0}.{0}", i)),
              Bytes(4, static_cast<std::uint8_t>(i)));
}

TEST(PlainRdata, EveryDayIsReadFast) {
  for (int year = 1970; year <= 2105; ++year)
    for (int month = 1; month <= 12; ++month)
      for (int day = 1; day <= 28; day += 9)
        EXPECT_FALSE(
            read_both(RRType::kRRSIG,
                      fmt::format("A 13 2 3600 {:04}{:02}{:02}000000 20250101125959 1 . QUJD", year,
                                  month, day))
                .empty());
}

TEST(PlainRdata, EverySizeOfBase64IsRead) {
  std::string text = "A 13 2 3600 20250101000000 20250101000000 1 . ";
  for (int i = 0; i < 1000; ++i) {
    read_both(RRType::kRRSIG, text);
    text += "x8+/"[i % 4];
  }
}

TEST(PlainRdata, MutationsAreReadAsInGeneralOrLeftAlone) {
  std::mt19937 random(20260101);
  constexpr std::string_view kAlphabet = "0123456789abcXYZ.=+/-@*_ \t:!";
  std::size_t fast = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Sample& sample = kUsual[random() % std::size(kUsual)];
    std::string text = sample.text;
    for (std::size_t changes = 1 + random() % 2; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      const char c = random() % 8 == 0 ? static_cast<char>(random() % 256)
                                       : kAlphabet[random() % kAlphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        default:
          if (text.size() > 1) text.erase(at, 1);
      }
    }
    fast += read_both(sample.type, text).empty() ? 0 : 1;
  }
  EXPECT_GT(fast, 2000U);
}

/// Long names meet the borders of blocks and of 255 octets.
TEST(PlainRdata, NamesOfEachLengthAreReadAsInGeneralOrLeftAlone) {
  std::string text;
  std::size_t fast = 0;
  for (int i = 0; i < 300; ++i) {
    text += i % 23 == 22 ? '.' : 'a';
    fast += read_both(RRType::kNS, text).empty() ? 0 : 1;
    read_both(RRType::kNS, text + ".");
  }
  EXPECT_GT(fast, 200U);
}

}  // namespace zone_scanner_rdata_test
}  // namespace pando::dns

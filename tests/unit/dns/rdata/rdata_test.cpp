#include "dns/rdata/rdata.h"

#include <gtest/gtest.h>

#include "dns/encoding.h"
#include "dns/rdata/rdata_field.h"
#include "tests/support/rdata_samples.h"

namespace pando::dns {
namespace rdata_test {

Name name(std::string_view text) { return *Name::from_text(text); }

Bytes octets(std::string_view hex) { return hex_decode(hex).value(); }

/// Wire RDATA of `text` in hex, or "error: REASON".
std::string wire(RRType type, std::string_view text, NameView origin = NameView()) {
  Bytes out;
  auto status = rdata_from_text(type, text, origin, out);
  return status ? hex_encode(out) : "error: " + status.error().text;
}

std::string check(RRType type, std::string_view hex) {
  auto status = check_rdata(type, octets(hex));
  return status ? "ok" : status.error().text;
}

TEST(Rdata, EverySampleReadsToItsWireForm) {
  const auto samples = tests::load_rdata_samples();
  ASSERT_GT(samples.size(), 150U);
  for (const auto& sample : samples)
    EXPECT_EQ(wire(sample.type, sample.text), sample.hex) << sample.type_name << ' ' << sample.text;
}

TEST(Rdata, EverySamplePrintsAsBindWould) {
  for (const auto& sample : tests::load_rdata_samples())
    EXPECT_EQ(rdata_to_text(sample.type, octets(sample.hex)), sample.printed) << sample.type_name;
}

TEST(Rdata, WhatIsPrintedReadsBack) {
  for (const auto& sample : tests::load_rdata_samples())
    EXPECT_EQ(wire(sample.type, sample.printed), sample.hex) << sample.type_name;
}

TEST(Rdata, EverySampleIsReadInGenericFormToo) {
  for (const auto& sample : tests::load_rdata_samples()) {
    const std::string generic = "\\# " + std::to_string(sample.hex.size() / 2) + " " + sample.hex;
    EXPECT_EQ(wire(sample.type, generic), sample.hex) << sample.type_name;
  }
}

TEST(Rdata, EverySamplePassesTheWireCheck) {
  for (const auto& sample : tests::load_rdata_samples())
    EXPECT_EQ(check(sample.type, sample.hex), "ok") << sample.type_name << ' ' << sample.text;
}

TEST(Rdata, CutSamplesAreShownInAFormThatReadsBack) {
  for (const auto& sample : tests::load_rdata_samples()) {
    const Bytes whole = octets(sample.hex);
    if (whole.size() > 1000) continue;  // a WKS bitmap of 8 KiB says no more in 8,000 lengths
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const ByteView cut = ByteView(whole).first(size);
      const std::string text = rdata_to_text(sample.type, cut);
      if (check_rdata(sample.type, cut)) {
        EXPECT_EQ(wire(sample.type, text), hex_encode(cut)) << sample.type_name << ' ' << text;
      } else if (!check_stored_rdata(sample.type, cut)) {
        EXPECT_EQ(text.substr(0, 2), "\\#") << sample.type_name << ' ' << text;
      }
    }
  }
}

TEST(Rdata, EveryTypeOfTheTableHasASample) {
  const auto samples = tests::load_rdata_samples();
  for (const RdataDescriptor& row : all_descriptors()) {
    if (is_meta_type(row.type)) continue;
    const bool found = std::any_of(samples.begin(), samples.end(),
                                   [&](const auto& sample) { return sample.type == row.type; });
    EXPECT_TRUE(found) << to_text(row.type);
  }
}

TEST(Rdata, BadTextIsRefusedWithTheFieldAndTheReason) {
  const auto all = tests::load_bad_rdata();
  ASSERT_GT(all.size(), 200U);
  for (const auto& bad : all)
    EXPECT_EQ(wire(bad.type, bad.text), "error: " + bad.error) << bad.line;
}

TEST(Rdata, RulesForNewRecordsAloneDoNotTakeStoredOnesAway) {
  const std::pair<RRType, const char*> cases[] = {
      {RRType::kSSHFP, "0402ABCD"},
      {RRType::kNSEC3, "010000000002ABCD"},
      {RRType::kNAPTR,
       "000100010175000121"
       "00"},
      {RRType::kA6, "018000000000000000000000000000000000"},
      {RRType::kAPL, "000300020100"},
      {RRType::kWKS, "C00002010600"},
      {RRType::kDNSKEY, "010103FDFF02"},
      {RRType::kDNSKEY, "C0000308"},
      {RRType::kKEY, "C000030501"},
      {RRType::kRRSIG, "00000800000000000000000000000000000001610001"},
      {RRType::kHTTPS,
       "00010000070007"
       "2F717B646E7328"},
  };
  for (const auto& [type, hex] : cases) {
    EXPECT_NE(check(type, hex), "ok") << to_text(type) << ' ' << hex;
    EXPECT_TRUE(check_stored_rdata(type, octets(hex))) << to_text(type) << ' ' << hex;
    EXPECT_FALSE(check_stored_rdata(type, octets(hex).empty() ? Bytes{} : Bytes{1}))
        << "damage stays damage";
    EXPECT_FALSE(rdata_to_text(type, octets(hex)).empty());
  }
}

TEST(Rdata, AnOddRecordThatIsStoredKeepsItsPlaceInTheOrder) {
  const Bytes odd = octets(
      "000100010175000121"
      "0141"
      "00");  // a replacement in upper case
  const Bytes folded = octets(
      "000100010175000121"
      "0161"
      "00");
  EXPECT_EQ(compare_rdata_canonical(RRType::kNAPTR, odd, folded), 0);
}

TEST(Rdata, ErrorsLeaveTheOutputAsItWas) {
  for (const auto& bad : tests::load_bad_rdata()) {
    Bytes out{1, 2, 3};
    EXPECT_FALSE(rdata_from_text(bad.type, bad.text, NameView(), out));
    EXPECT_EQ(out, (Bytes{1, 2, 3})) << bad.line;
  }
}

TEST(Rdata, TextIsAppendedBehindWhatIsThere) {
  Bytes out{1, 2, 3};
  ASSERT_TRUE(rdata_from_text(RRType::kKEY, "49152 3 0", NameView(), out));
  EXPECT_EQ(hex_encode(out), "010203C0000300") << "NOKEY flags are looked up behind the start";
}

TEST(Rdata, RelativeNamesGetTheOrigin) {
  const Name origin = name("example.net.");
  EXPECT_EQ(wire(RRType::kMX, "10 mail", origin), wire(RRType::kMX, "10 mail.example.net."));
  EXPECT_EQ(wire(RRType::kCNAME, "@", origin), wire(RRType::kCNAME, "example.net."));
  EXPECT_EQ(wire(RRType::kSOA, "ns admin\\.x 1 2 3 4 5", origin),
            wire(RRType::kSOA, "ns.example.net. admin\\.x.example.net. 1 2 3 4 5"));
  EXPECT_EQ(wire(RRType::kHTTPS, "1 svc alpn=h2", origin),
            wire(RRType::kHTTPS, "1 svc.example.net. alpn=h2"));
}

TEST(Rdata, CharacterStringsEndAt255Octets) {
  const std::string most(255, 'x');
  EXPECT_EQ(wire(RRType::kTXT, '"' + most + '"').size(), 512U);
  EXPECT_EQ(wire(RRType::kTXT, '"' + most + "y\""), "error: text: above 255 octets");
  EXPECT_EQ(wire(RRType::kTXT, most + "\\121"), "error: text: above 255 octets");
  EXPECT_EQ(wire(RRType::kTXT, most.substr(1) + "\\121").size(), 512U) << "escapes count once";
}

TEST(Rdata, RdataEndsAt65535Octets) {
  std::string text;
  for (int i = 0; i < 255; ++i) text += std::string(255, 'x') + ' ';
  text += std::string(254, 'x');  // 255 * 256 + 255
  EXPECT_EQ(wire(RRType::kTXT, text).size(), 2 * 65535U);
  EXPECT_EQ(wire(RRType::kTXT, text + 'x'), "error: RDATA above 65535 octets");
  EXPECT_EQ(check_rdata(RRType::kTXT, Bytes(65536)).error().text, "RDATA above 65535 octets");
}

TEST(Rdata, SignatureTimesAreSerialNumbers) {
  const auto expiring = [](const std::string& time) {
    return wire(RRType::kRRSIG, "A 8 1 1 " + time + " 0 1 a. AQID");
  };
  EXPECT_EQ(expiring("20030322173103"), expiring("1048354263"));
  EXPECT_EQ(expiring("21060207062815"), expiring("4294967295"));
  EXPECT_EQ(expiring("21060207062816"), expiring("0")) << "RFC 4034 §3.1.5";
  EXPECT_EQ(expiring("19691231235959"), expiring("4294967295"));
}

TEST(Rdata, QuotesEndAWordAndBeginOne) {
  EXPECT_EQ(wire(RRType::kTXT, "a\"b c\"d"), wire(RRType::kTXT, "a \"b c\" d"));
  EXPECT_EQ(wire(RRType::kTXT, "a\\\"b\\ c"), wire(RRType::kTXT, "\"a\\\"b c\""));
}

TEST(Rdata, LinesMayHaveParenthesesAndComments) {
  EXPECT_EQ(wire(RRType::kSOA, "ns. host. ( 1 ; serial\n 2 3\n 4 5 ) ; end"),
            wire(RRType::kSOA, "ns. host. 1 2 3 4 5"));
}

TEST(Rdata, UnknownTypesAcceptEverything) {
  EXPECT_EQ(check(static_cast<RRType>(65280), ""), "ok");
  EXPECT_EQ(check(static_cast<RRType>(65280), "C0FFEE"), "ok");
  EXPECT_EQ(rdata_to_text(static_cast<RRType>(65280), octets("C0FFEE")), "\\# 3 C0FFEE");
}

TEST(Rdata, WhatDoesNotFitItsTypeIsPrintedInGenericForm) {
  EXPECT_EQ(rdata_to_text(RRType::kA, octets("C00002")), "\\# 3 C00002");
  EXPECT_EQ(rdata_to_text(RRType::kMX, octets("000AC000")), "\\# 4 000AC000");
  EXPECT_EQ(rdata_to_text(RRType::kA, {}), "\\# 0");
}

TEST(Rdata, WhatTextCannotShowIsPrintedInGenericForm) {
  const std::pair<RRType, std::string_view> cases[] = {
      {RRType::kLOC, "01ABCD"},         // another version
      {RRType::kAPL, "00030801AA"},     // another address family
      {RRType::kAMTRELAY, "0A04AABB"},  // another relay type
      {RRType::kATMA, "02AA"},          // another format
  };
  for (const auto& [type, hex] : cases) {
    EXPECT_EQ(check(type, hex), "ok") << to_text(type);
    const std::string text = rdata_to_text(type, octets(hex));
    EXPECT_EQ(text.substr(0, 2), "\\#") << to_text(type);
    EXPECT_EQ(wire(type, text), hex) << to_text(type);
  }
}

TEST(Rdata, WireCheckRefusesWhatBreaksAType) {
  struct Case {
    RRType type;
    std::string_view hex, reason;
  };
  const Case cases[] = {
      {RRType::kA, "C00002", "address: cut short"},
      {RRType::kA, "C000020101", "1 octets too many"},
      {RRType::kNS, "", "name server: missing"},
      {RRType::kNS, "C000", "name server: bad name"},
      {RRType::kNS, "0361", "name server: bad name"},
      {RRType::kNS, "4161", "name server: bad name"},
      {RRType::kTXT, "", "text: cut short"},
      {RRType::kTXT, "0261", "text: cut short"},
      {RRType::kX25, "0431323361", "address: not all digits"},
      {RRType::kNSAP, "", "address: missing"},
      {RRType::kATMA, "0161", "address: not all digits"},
      {RRType::kA6, "81", "address: prefix length 129 is above 128"},
      {RRType::kLOC,
       "00001613"
       "80000000"
       "80000000",
       "location: cut short"},
      {RRType::kLOC,
       "00A01613"
       "80000000"
       "80000000"
       "00989680",
       "location: bad size or precision"},
      {RRType::kLOC,
       "00121613"
       "9350A801"
       "80000000"
       "00989680",
       "location: coordinate out of range"},
      {RRType::kNXT, "0080", "types: bad bitmap"},
      {RRType::kAPL, "00012104C0000201", "prefixes: prefix too long"},
      {RRType::kAPL, "00012005C000020101", "prefixes: prefix too long"},
      {RRType::kAPL, "00011802C000", "prefixes: zero octet ends an address"},
      {RRType::kDS, "0001080200", "digest: 1 octets, not 32"},
      {RRType::kNSEC, "00", "types: missing"},
      {RRType::kNSEC,
       "00"
       "0000",
       "types: bad window length"},
      {RRType::kNSEC,
       "00"
       "0021"
       "00",
       "types: bad window length"},
      {RRType::kNSEC,
       "00"
       "000140"
       "000140",
       "types: windows out of order"},
      {RRType::kNSEC,
       "00"
       "010140"
       "000140",
       "types: windows out of order"},
      {RRType::kNSEC,
       "00"
       "00024000",
       "types: zero octet ends a window"},
      {RRType::kNSEC,
       "00"
       "000240",
       "types: cut short"},
      {RRType::kNSEC3, "0100000A0000", "next hash: empty"},
      {RRType::kDNSKEY, "01010308", "public key: missing"},
      {RRType::kRKEY, "0001030801", "flags: must be 0"},
      {RRType::kHIP, "0002000001", "host: empty tag or key"},
      {RRType::kHIP, "01020002AA01", "host: cut short"},
      {RRType::kIPSECKEY, "0A0402", "gateway: type 4 is unknown"},
      {RRType::kCAA, "0000", "tag: empty"},
      {RRType::kCAA, "00012D", "tag: not alphanumeric"},
      {RRType::kZONEMD,
       "0000000101F0"
       "AABB",
       "digest: 2 octets are no digest of this kind"},
      {RRType::kSVCB,
       "000100"
       "0003000201BB"
       "000100030268"
       "32",
       "parameters: keys not in ascending order"},
      {RRType::kSVCB,
       "000100"
       "0003000201BB"
       "0003000201BB",
       "parameters: keys not in ascending order"},
      {RRType::kSVCB,
       "000100"
       "000300",
       "parameters: cut short"},
      {RRType::kSVCB,
       "000100"
       "00030003"
       "01BB",
       "parameters: cut short"},
      {RRType::kSVCB,
       "000100"
       "00030001"
       "BB",
       "parameters: port: bad length"},
      {RRType::kSVCB,
       "000100"
       "00010000",
       "parameters: alpn: empty"},
      {RRType::kSVCB,
       "000100"
       "0001000100",
       "parameters: alpn: empty"},
      {RRType::kSVCB,
       "000100"
       "00040003"
       "010203",
       "parameters: ipv4hint: bad length"},
      {RRType::kSVCB,
       "000100"
       "00000002"
       "0001",
       "parameters: mandatory key alpn is missing"},
  };
  for (const Case& bad : cases)
    EXPECT_EQ(check(bad.type, bad.hex), bad.reason) << to_text(bad.type) << ' ' << bad.hex;
}

// A message for the tests below: "example." at 12, then RDATA at 21.
Bytes message_with(std::string_view rdata_hex) {
  Bytes message(12);
  append(message, octets("076578616D706C6500"));
  append(message, octets(rdata_hex));
  return message;
}

/// RDATA at 21, `extra` octets before the message's end, decompressed; or "error: REASON".
std::string decompressed(RRType type, std::string_view hex, std::size_t extra = 0) {
  const Bytes message = message_with(hex);
  Bytes out{0xEE};
  auto status = decompress_rdata(type, message, 21, message.size() - 21 - extra, out);
  EXPECT_EQ(out[0], 0xEE);
  if (!status) {
    EXPECT_EQ(out.size(), 1U) << "unchanged on error";
    return "error: " + status.error().text;
  }
  return rdata_to_text(type, ByteView(out).subspan(1));
}

TEST(DecompressRdata, ExpandsNamesOfTheOldTypesAndThoseOfRfc3597) {
  EXPECT_EQ(decompressed(RRType::kNS, "C00C"), "example.");
  EXPECT_EQ(decompressed(RRType::kMX,
                         "000A"
                         "026D78C00C"),
            "10 mx.example.");
  EXPECT_EQ(decompressed(RRType::kSOA,
                         "026E73C00C"
                         "0161C015"
                         "0000000100000002000000030000000400000005"),
            "ns.example. a.ns.example. 1 2 3 4 5");
  EXPECT_EQ(decompressed(RRType::kSRV, "000000010002C00C"), "0 1 2 example.");
  EXPECT_EQ(decompressed(RRType::kNAPTR,
                         "00010002"
                         "0173"
                         "00"
                         "00"
                         "C00C"),
            "1 2 \"s\" \"\" \"\" example.");
  EXPECT_EQ(decompressed(RRType::kDNAME, "C00C"), "example.");
  EXPECT_EQ(decompressed(RRType::kRP, "C00CC00C"), "example. example.");
  EXPECT_EQ(decompressed(RRType::kNXT,
                         "C00C"
                         "60"),
            "example. A NS");
}

TEST(DecompressRdata, RefusesPointersInOtherTypes) {
  EXPECT_EQ(decompressed(RRType::kNSEC, "C00C000140"), "error: next: bad name");
  EXPECT_EQ(decompressed(RRType::kSVCB, "0001C00C"), "error: target: bad name");
  EXPECT_EQ(decompressed(RRType::kRRSIG,
                         "000105030001518000000000000000000001"
                         "C00C"
                         "AA"),
            "error: signer: bad name");
}

TEST(DecompressRdata, KeepsInsideTheRdata) {
  EXPECT_EQ(decompressed(RRType::kNS, "C00C00"), "error: 1 octets too many");
  EXPECT_EQ(decompressed(RRType::kNS, "C00C", 1), "error: name server: name cut short");
  EXPECT_EQ(decompressed(RRType::kNS, "026E7300", 1), "error: name server: name cut short");
  EXPECT_EQ(decompressed(RRType::kMX, "000AC00C", 3), "error: preference: cut short");
  EXPECT_EQ(decompressed(RRType::kA, "C0000201", 1), "error: address: cut short");
  Bytes out;
  EXPECT_EQ(decompress_rdata(RRType::kA, Bytes(8), 5, 4, out).error().code, Errc::kTruncated);
  EXPECT_EQ(decompress_rdata(RRType::kA, Bytes(8), 9, 0, out).error().code, Errc::kTruncated);
}

TEST(DecompressRdata, GivesTheSamplesBackUnchanged) {
  for (const auto& sample : tests::load_rdata_samples())
    EXPECT_EQ(decompressed(sample.type, sample.hex), sample.printed) << sample.type_name;
}

/// What for_each_compressible_field hands out: names in (), other octets in [].
std::string stretches(RRType type, std::string_view hex) {
  std::string text;
  for_each_compressible_field(type, octets(hex), [&](ByteView field, bool is_name) {
    text += is_name ? '(' : '[';
    append_hex(text, field);
    text += is_name ? ')' : ']';
  });
  return text;
}

TEST(CompressibleFields, AreTheNamesOfRfc1035Types) {
  EXPECT_EQ(stretches(RRType::kNS, "016100"), "(016100)");
  EXPECT_EQ(stretches(RRType::kMX, "000A016100"), "[000A](016100)");
  EXPECT_EQ(stretches(RRType::kSOA, "0161000162000000000100"), "(016100)(016200)[0000000100]");
  EXPECT_EQ(stretches(RRType::kMINFO, "01610000"), "(016100)(00)");
  EXPECT_EQ(stretches(RRType::kSRV, "000000010002016100"), "[000000010002016100]");
  EXPECT_EQ(stretches(RRType::kA, "C0000201"), "[C0000201]");
  EXPECT_EQ(stretches(RRType::kAPL, ""), "");
}

TEST(CompressibleFields, DamagedRdataIsPassedOnAsOctets) {
  EXPECT_EQ(stretches(RRType::kNS, "0561"), "[0561]");
  EXPECT_EQ(stretches(RRType::kMX, "00"), "[00]");
  EXPECT_EQ(stretches(RRType::kSOA, "016100FF"), "(016100)[FF]");
}

TEST(CompressibleFields, AgreeWithTheTable) {
  for (const RdataDescriptor& row : all_descriptors()) {
    const auto fields = row.fields();
    const auto names = std::count_if(fields.begin(), fields.end(), [](const Field& field) {
      return field.rule == NameRule::kCompress;
    });
    const auto value = static_cast<std::size_t>(row.type);
    const bool listed = value < detail::kCompressibleNames.size();
    EXPECT_EQ(names, listed ? detail::kCompressibleNames[value].names : 0) << to_text(row.type);
  }
}

TEST(FixedRdataLength, AgreesWithTheWireCheck) {
  for (const RdataDescriptor& row : all_descriptors()) {
    const std::size_t fixed = fixed_rdata_length(row.type);
    if (fixed == 0) continue;
    for (std::size_t size = 0; size < 32; ++size)
      EXPECT_EQ(check_rdata(row.type, Bytes(size)).has_value(), size == fixed) << to_text(row.type);
  }
}

TEST(FixedRdataLength, HasNoTypeOfTheTableThatIsAlwaysOneSizeLeftOut) {
  for (const RdataDescriptor& row : all_descriptors()) {
    const bool fixed =
        std::all_of(row.fields().begin(), row.fields().end(), [](const Field& field) {
          using namespace field;
          for (const auto* codec : {&kU8, &kU16, &kU32, &kU64, &kTtl, &kTime, &kIpv4, &kIpv6,
                                    &kEui48, &kEui64, &kLocator64})
            if (field.codec == codec) return true;
          return false;
        });
    EXPECT_EQ(fixed, fixed_rdata_length(row.type) != 0) << to_text(row.type);
  }
}

std::string target(RRType type, std::string_view text) {
  Bytes rdata;
  EXPECT_TRUE(rdata_from_text(type, text, NameView(), rdata));
  NameView found;
  return additional_name(type, rdata, found) ? to_text(found) : "none";
}

TEST(AdditionalName, IsTheTarget) {
  EXPECT_EQ(target(RRType::kNS, "ns.example."), "ns.example.");
  EXPECT_EQ(target(RRType::kMX, "10 mx.example."), "mx.example.");
  EXPECT_EQ(target(RRType::kSRV, "0 0 53 srv.example."), "srv.example.");
  EXPECT_EQ(target(RRType::kHTTPS, "1 svc.example. alpn=h2"), "svc.example.");
  EXPECT_EQ(target(RRType::kAFSDB, "1 afs.example."), "afs.example.");
  EXPECT_EQ(target(RRType::kCNAME, "c.example."), "none");
  EXPECT_EQ(target(RRType::kA, "192.0.2.1"), "none");
}

TEST(AdditionalName, IsNotTheRoot) {
  EXPECT_EQ(target(RRType::kMX, "0 ."), "none") << "RFC 7505";
  EXPECT_EQ(target(RRType::kSRV, "0 0 0 ."), "none") << "RFC 2782";
}

TEST(AdditionalName, DamagedRdataHasNone) {
  NameView found;
  EXPECT_FALSE(additional_name(RRType::kMX, octets("00"), found));
  EXPECT_FALSE(additional_name(RRType::kMX, octets("000A05"), found));
}

int order(RRType type, std::string_view a, std::string_view b) {
  Bytes wire_a, wire_b;
  EXPECT_TRUE(rdata_from_text(type, a, NameView(), wire_a));
  EXPECT_TRUE(rdata_from_text(type, b, NameView(), wire_b));
  const int forth = compare_rdata_canonical(type, wire_a, wire_b);
  const int back = compare_rdata_canonical(type, wire_b, wire_a);
  EXPECT_EQ(forth < 0, back > 0);
  EXPECT_EQ(forth == 0, back == 0);
  return forth < 0 ? -1 : forth > 0 ? 1 : 0;
}

TEST(CanonicalRdataOrder, IsByOctetsFromTheLeft) {
  EXPECT_EQ(order(RRType::kA, "192.0.2.1", "192.0.2.200"), -1);
  EXPECT_EQ(order(RRType::kTXT, "b", "aa"), -1) << "the length octet counts";
  EXPECT_EQ(order(RRType::kTXT, "a", "a a"), -1) << "RFC 4034 §6.3: absence sorts first";
  EXPECT_EQ(order(RRType::kTXT, "A", "a"), -1) << "text keeps its case";
}

TEST(CanonicalRdataOrder, IgnoresCaseInNamesOfTheOldTypes) {
  EXPECT_EQ(order(RRType::kNS, "NS.Example.", "ns.eXample."), 0);
  EXPECT_EQ(order(RRType::kMX, "10 MX.example.", "10 mx.EXAMPLE."), 0);
  EXPECT_EQ(order(RRType::kMX, "10 B.example.", "10 a.example."), 1);
  EXPECT_EQ(order(RRType::kMX, "9 z.", "10 a."), -1);
  EXPECT_EQ(order(RRType::kSOA, "A. B. 1 2 3 4 5", "a. b. 1 2 3 4 6"), -1);
  EXPECT_EQ(order(RRType::kNAPTR, "1 1 s x !y!z! A.", "1 1 s x !y!z! a."), 0);
  EXPECT_EQ(order(RRType::kNAPTR, "1 1 S x !y!z! A.", "1 1 s x !y!z! a."), -1)
      << "strings keep theirs";
  EXPECT_EQ(order(RRType::kA6, "64 ::1 A.", "64 ::1 a."), 0);
  EXPECT_EQ(order(RRType::kRRSIG, "A 8 1 1 1 1 1 A. AQID", "A 8 1 1 1 1 1 a. AQID"), 0);
  EXPECT_EQ(order(RRType::kRRSIG, "A 8 1 1 1 1 1 A. AQID", "A 8 1 1 1 1 1 a. AQIE"), -1);
}

TEST(CanonicalRdataOrder, KeepsCaseInNamesOfLaterTypes) {
  EXPECT_EQ(order(RRType::kNSEC, "A.example. A", "a.example. A"), -1) << "RFC 6840 §5.1";
  EXPECT_EQ(order(RRType::kSVCB, "1 A.", "1 a."), -1);
  EXPECT_EQ(order(RRType::kLP, "1 A.", "1 a."), -1);
}

TEST(CanonicalRdataOrder, IsAnOrderOfDamagedRdataToo) {
  // NS: `cut` ends inside of its name, so its letters stay; `big` is whole and folded.
  const Bytes cut = octets("03426967"), big = octets("0342696700"), small = octets("0362696700");
  const Bytes low = octets("036269"), other = octets("03626967016100");
  EXPECT_EQ(compare_rdata_canonical(RRType::kNS, big, small), 0);
  const std::array<Bytes, 5> all = {cut, big, small, low, other};
  for (const Bytes& a : all)
    for (const Bytes& b : all) {
      const int forth = compare_rdata_canonical(RRType::kNS, a, b);
      const int back = compare_rdata_canonical(RRType::kNS, b, a);
      EXPECT_EQ(forth < 0, back > 0);
      EXPECT_EQ(forth == 0, back == 0);
      for (const Bytes& c : all)
        if (forth <= 0 && compare_rdata_canonical(RRType::kNS, b, c) <= 0) {
          EXPECT_LE(compare_rdata_canonical(RRType::kNS, a, c), 0);
        }
    }
}

TEST(CanonicalRdataOrder, TakesDamagedRdata) {
  EXPECT_LT(compare_rdata_canonical(RRType::kMX, octets("00"), octets("000A")), 0);
  EXPECT_NE(compare_rdata_canonical(RRType::kNS, octets("05"), octets("016100")), 0);
  EXPECT_EQ(compare_rdata_canonical(RRType::kSOA, octets("FF41"), octets("FF41")), 0);
  EXPECT_LT(compare_rdata_canonical(RRType::kSOA, {}, octets("00")), 0);
  EXPECT_EQ(compare_rdata_canonical(RRType::kA6, {}, {}), 0) << "its name depends on a first octet";
}

TEST(RrsigCovered, IsTheFirstField) {
  const auto samples = tests::load_rdata_samples();
  for (const auto& sample : samples) {
    if (sample.type != RRType::kRRSIG) continue;
    const Bytes rdata = octets(sample.hex);
    EXPECT_TRUE(sample.text.starts_with(to_text(rrsig_covered(rdata)))) << sample.text;
  }
}

}  // namespace rdata_test
}  // namespace pando::dns

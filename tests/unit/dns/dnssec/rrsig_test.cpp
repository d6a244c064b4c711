#include "dns/dnssec/rrsig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "dns/dnssec/denial_fields.h"
#include "dns/dnssec/dnskey.h"
#include "dns/rdata/rdata.h"
#include "dns/zonefile/zone_scanner.h"
#include "tests/support/trees.h"

namespace pando::dns {
namespace rrsig_test {

/// A zone that another signer has signed, by owner (lower case) and type.
class SignedByBind : public ::testing::Test {
 protected:
  using Owner = std::string;

  void SetUp() override {
    std::ifstream file(pando::tests::source_path("/tests/data/dnssec/all_algorithms.zone"));
    std::stringstream text;
    text << file.rdbuf();
    ScanOptions options;
    options.origin = Name::from_text("example.").value();
    const auto report =
        scan_zone_text(text.str(), "zone", options, [&](const ScannedRecord& record) -> Status {
          Bytes rdata(record.rdata.begin(), record.rdata.end());
          const Owner owner = to_text(Name(record.owner).folded());
          names_.emplace(owner, Name(record.owner));
          sets_[{owner, record.type}].push_back(std::move(rdata));
          return {};
        });
    ASSERT_TRUE(report.ok());
    for (auto& [key, rdatas] : sets_)
      std::sort(rdatas.begin(), rdatas.end(), [type = key.second](const Bytes& a, const Bytes& b) {
        return compare_rdata_canonical(type, a, b) < 0;
      });
    for (const Bytes& rdata : sets_[{"example.", RRType::kDNSKEY}]) {
      const DnskeyFields fields = parse_dnskey(rdata).value();
      EXPECT_TRUE(fields.is_zone_key());
      keys_.emplace(std::pair{key_tag(rdata), fields.algorithm}, fields);
    }
  }

  /// Calls `visit(rrsig, owner, rdatas, key)` for each RRSIG of the zone.
  template <class Visit>
  void for_each_rrsig(Visit&& visit) {
    for (const auto& [place, rdatas] : sets_) {
      if (place.second != RRType::kRRSIG) continue;
      for (const Bytes& rdata : rdatas) {
        const RrsigFields rrsig = parse_rrsig(rdata).value();
        const auto key = keys_.find({rrsig.key_tag, rrsig.algorithm});
        ASSERT_NE(key, keys_.end()) << "the key tag is worked out as BIND does";
        visit(rrsig, names_.at(place.first), sets_.at({place.first, rrsig.covered}), key->second);
      }
    }
  }

  std::map<Owner, Name> names_;
  std::map<std::pair<Owner, RRType>, std::vector<Bytes>> sets_;
  std::map<std::pair<std::uint16_t, std::uint8_t>, DnskeyFields> keys_;
};

TEST_F(SignedByBind, EachSignatureOfEachAlgorithmVerifies) {
  std::map<unsigned, unsigned> verified;
  for_each_rrsig([&](const RrsigFields& rrsig, NameView owner, const std::vector<Bytes>& rdatas,
                     const DnskeyFields& key) {
    auto verifier = SignatureVerifier::make(key);
    ASSERT_TRUE(verifier.has_value()) << unsigned{key.algorithm};
    EXPECT_EQ(rrsig.labels, rrsig_labels(owner));
    EXPECT_TRUE(verifier->verify(signed_octets(rrsig, owner, rdatas), rrsig.signature))
        << to_text(owner) << " " << to_text(rrsig.covered) << " " << unsigned{rrsig.algorithm};
    ++verified[rrsig.algorithm];
  });
  EXPECT_EQ(verified,
            (std::map<unsigned, unsigned>{
                {5, 20}, {7, 20}, {8, 20}, {10, 20}, {13, 20}, {14, 20}, {15, 20}, {16, 20}}));
}

TEST_F(SignedByBind, NoSignatureVerifiesOtherData) {
  for_each_rrsig([&](const RrsigFields& rrsig, NameView owner, const std::vector<Bytes>& rdatas,
                     const DnskeyFields& key) {
    if (rrsig.covered != RRType::kMX) return;
    auto verifier = SignatureVerifier::make(key);
    Bytes data = signed_octets(rrsig, owner, rdatas);
    data.back() ^= 1U;
    EXPECT_FALSE(verifier->verify(data, rrsig.signature)) << unsigned{key.algorithm};
  });
}

TEST_F(SignedByBind, NoPieceOfASignatureVerifies) {
  for_each_rrsig([&](const RrsigFields& rrsig, NameView owner, const std::vector<Bytes>& rdatas,
                     const DnskeyFields& key) {
    if (rrsig.covered != RRType::kMX) return;
    auto verifier = SignatureVerifier::make(key);
    const Bytes data = signed_octets(rrsig, owner, rdatas);
    for (std::size_t size = 0; size < rrsig.signature.size(); ++size)
      EXPECT_FALSE(verifier->verify(data, rrsig.signature.first(size)));
    Bytes longer(rrsig.signature.begin(), rrsig.signature.end());
    longer.push_back(0);
    EXPECT_FALSE(verifier->verify(data, longer));
  });
}

TEST_F(SignedByBind, NoPieceOfAKeyIsReadBeyondItsEnd) {
  for (const auto& [place, key] : keys_) {
    for (std::size_t size = 0; size < key.key.size(); ++size) {
      const Bytes piece(key.key.begin(), key.key.begin() + static_cast<std::ptrdiff_t>(size));
      DnskeyFields cut = key;
      cut.key = piece;
      auto verifier = SignatureVerifier::make(cut);
      if (key.algorithm > 10) {
        EXPECT_FALSE(verifier.has_value()) << unsigned{key.algorithm};
      }
      if (verifier) {
        EXPECT_FALSE(verifier->verify(piece, piece));
      }
    }
  }
}

TEST_F(SignedByBind, AVerifierIsAsGoodAfterOtherSignatures) {
  std::map<std::pair<std::uint16_t, std::uint8_t>, SignatureVerifier> verifiers;
  std::map<unsigned, unsigned> verified;
  for_each_rrsig([&](const RrsigFields& rrsig, NameView owner, const std::vector<Bytes>& rdatas,
                     const DnskeyFields& key) {
    const std::pair which{rrsig.key_tag, rrsig.algorithm};
    if (!verifiers.contains(which)) verifiers.emplace(which, *SignatureVerifier::make(key));
    SignatureVerifier& verifier = verifiers.at(which);
    const Bytes data = signed_octets(rrsig, owner, rdatas);
    Bytes other = data;
    other.back() ^= 1U;
    EXPECT_FALSE(verifier.verify(other, rrsig.signature)) << unsigned{key.algorithm};
    EXPECT_FALSE(verifier.verify(data, rrsig.signature.first(1))) << unsigned{key.algorithm};
    EXPECT_FALSE(verifier.verify(data, Bytes(rrsig.signature.size(), 0xFF)));
    EXPECT_FALSE(verifier.verify(data, Bytes(rrsig.signature.size(), 0)));
    EXPECT_TRUE(verifier.verify(data, rrsig.signature)) << unsigned{key.algorithm};
    ++verified[rrsig.algorithm];
  });
  EXPECT_EQ(verified.size(), 8U);
}

Bytes rsa_key(std::size_t exponent, std::size_t modulus, bool long_form) {
  Bytes octets;
  if (long_form) octets.push_back(0);
  if (long_form) octets.push_back(static_cast<std::uint8_t>(exponent >> 8));
  octets.push_back(static_cast<std::uint8_t>(exponent));
  octets.resize(octets.size() + exponent + modulus, 0xFF);
  return octets;
}

TEST(Dnskey, RsaKeysThatWouldBeSlowAreNone) {
  const auto is_key = [](const Bytes& octets) {
    return SignatureVerifier::make(DnskeyFields{256, 3, 8, octets}).has_value();
  };
  EXPECT_TRUE(is_key(rsa_key(3, 128, false)));
  EXPECT_TRUE(is_key(rsa_key(8, 512, true)));
  EXPECT_FALSE(is_key(rsa_key(9, 128, false)));
  EXPECT_FALSE(is_key(rsa_key(3, 513, false)));
  EXPECT_FALSE(is_key(rsa_key(3, 63, false)));
  EXPECT_FALSE(is_key(rsa_key(0, 128, false)));
}

TEST(Dnskey, APointThatIsNotOfTheCurveIsNoKey) {
  const Bytes nowhere(64, 0xFF);
  EXPECT_FALSE(SignatureVerifier::make(DnskeyFields{256, 3, 13, nowhere}).has_value());
}

TEST(Dnskey, FlagsSayWhatAKeyIsFor) {
  EXPECT_TRUE((DnskeyFields{256, 3, 8, {}}.is_zone_key()));
  EXPECT_FALSE((DnskeyFields{1, 3, 8, {}}.is_zone_key()));
  EXPECT_FALSE((DnskeyFields{256, 2, 8, {}}.is_zone_key()));
  EXPECT_TRUE((DnskeyFields{385, 3, 8, {}}.is_revoked()));
  EXPECT_FALSE((DnskeyFields{257, 3, 8, {}}.is_revoked()));
}

TEST(Rrsig, TheEndsOfItsPeriodBelongToIt) {
  RrsigFields rrsig;
  rrsig.inception = 100;
  rrsig.expiration = 200;
  EXPECT_FALSE(rrsig.is_valid_at(99));
  EXPECT_TRUE(rrsig.is_valid_at(100));
  EXPECT_TRUE(rrsig.is_valid_at(200));
  EXPECT_FALSE(rrsig.is_valid_at(201));
}

/// RFC 4034 §3.1.5: serial number arithmetic, so that 2106 is no end.
TEST(Rrsig, PeriodsPassTheEndOfThe32Bits) {
  RrsigFields rrsig;
  rrsig.inception = 0xFFFFFF00U;
  rrsig.expiration = 0x100;
  EXPECT_TRUE(rrsig.is_valid_at(0xFFFFFFFFU));
  EXPECT_TRUE(rrsig.is_valid_at(0x100000000ULL));
  EXPECT_FALSE(rrsig.is_valid_at(0x100000101ULL));
}

TEST(Rrsig, NoPieceOfTheRdataIsReadBeyondItsEnd) {
  const Name signer = Name::from_text("example.").value();
  Bytes rdata(18, 1);
  append(rdata, signer.view().bytes());
  for (std::size_t size = 0; size < rdata.size(); ++size) {
    const Bytes piece(rdata.begin(), rdata.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_rrsig(piece).has_value()) << size;
  }
  const auto whole = parse_rrsig(rdata);
  ASSERT_TRUE(whole.has_value());
  EXPECT_TRUE(whole->signature.empty());
}

TEST(Rrsig, LabelsDoNotCountTheAsterisk) {
  EXPECT_EQ(rrsig_labels(Name::from_text("*.example.").value()), 1);
  EXPECT_EQ(rrsig_labels(Name::from_text("a.*.example.").value()), 3);
  EXPECT_EQ(rrsig_labels(NameView()), 0);
}

TEST(DenialFields, BitmapsListTheirTypes) {
  Bytes rdata;
  ASSERT_TRUE(rdata_from_text(RRType::kNSEC, "b.example. A TXT RRSIG NSEC CAA TYPE65280",
                              NameView(), rdata));
  const NsecFields nsec = parse_nsec(rdata).value();
  EXPECT_EQ(to_text(nsec.next), "b.example.");
  EXPECT_EQ(types_in_bitmap(nsec.types),
            (std::vector<RRType>{RRType::kA, RRType::kTXT, RRType::kRRSIG, RRType::kNSEC,
                                 RRType::kCAA, static_cast<RRType>(65280)}));
}

TEST(DenialFields, NoPieceIsReadBeyondItsEnd) {
  Bytes rdata;
  ASSERT_TRUE(rdata_from_text(RRType::kNSEC3,
                              "1 1 5 aabb 2t7b4g4vsa5smi47k61mv5bv1a22bojr A CAA RRSIG", NameView(),
                              rdata));
  const Nsec3Fields whole = parse_nsec3(rdata).value();
  EXPECT_TRUE(whole.is_opt_out());
  EXPECT_EQ(whole.iterations, 5);
  EXPECT_EQ(whole.next.size(), 20U);
  for (std::size_t size = 0; size < rdata.size(); ++size) {
    const Bytes piece(rdata.begin(), rdata.begin() + static_cast<std::ptrdiff_t>(size));
    const auto cut = parse_nsec3(piece);
    EXPECT_EQ(cut.has_value(), size >= 28) << size;
    if (cut) {
      EXPECT_LE(types_in_bitmap(cut->types).size(), 3U);
    }
  }
}

TEST(CanonicalRdata, FoldsTheNamesOfOldTypesOnly) {
  const auto canonical = [](RRType type, const char* text) {
    Bytes rdata, out;
    EXPECT_TRUE(rdata_from_text(type, text, NameView(), rdata));
    append_rdata_canonical(type, rdata, out);
    return rdata_to_text(type, out);
  };
  EXPECT_EQ(canonical(RRType::kMX, "10 MAIL.Example."), "10 mail.example.");
  EXPECT_EQ(canonical(RRType::kNSEC, "B.Example. A"), "B.Example. A");  // RFC 6840 §5.1
  EXPECT_EQ(canonical(RRType::kTXT, "\"Text\""), "\"Text\"");
}

}  // namespace rrsig_test
}  // namespace pando::dns

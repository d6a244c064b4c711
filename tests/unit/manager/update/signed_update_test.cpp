#include "manager/update/signed_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "manager/dnssec/signature_check.h"
#include "tests/unit/manager/update/signed_store.h"

namespace pando::manager {
namespace signed_update_test {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using testing::difference;
using testing::edited;
using ::testing::HasSubstr;
using testing::kSigningTime;
using testing::kZone;
using testing::Lines;
using testing::name;
using testing::record;
using testing::RecordTexts;
using testing::sign;
using testing::SignedStore;
using testing::SignedUpdate;
using testing::Signing;
using testing::TestKey;
using testing::ZoneStore;

/// Glue is not signed, so nobody sees that it is missing; nor, with opt-out, that a delegation is.
bool is_unsigned_data(const UpdateRecord& record, bool opt_out) {
  const std::string owner = to_text(record.owner);
  if (opt_out && record.type == RRType::kNS) return true;
  return owner == "ns.plain.example." || owner == "ns.sub.example.";
}

INSTANTIATE_TEST_SUITE_P(Denial, SignedUpdate, ::testing::Values(0, 1, 2),
                         [](const ::testing::TestParamInfo<int>& chosen) -> std::string {
                           return chosen.param == 0   ? "Nsec"
                                  : chosen.param == 1 ? "Nsec3"
                                                      : "OptOut";
                         });

struct Edit {
  const char* what;
  Lines out, in;
};

const std::vector<Edit> kEdits = {
    {"nothing but the serial", {}, {}},
    {"a name comes", {}, {"new 300 A 192.0.2.9"}},
    {"a name at the end", {}, {"zzz 300 A 192.0.2.9"}},
    {"a name before all others", {}, {"0 300 A 192.0.2.9"}},
    {"a type comes", {}, {"www 300 TXT new"}},
    {"a type goes", {"www 300 AAAA 2001:db8::10"}, {}},
    {"a record changes", {"www 300 A 192.0.2.10"}, {"www 300 A 192.0.2.11"}},
    {"a TTL changes", {"www 300 A 192.0.2.10"}, {"www 60 A 192.0.2.10"}},
    {"a name goes", {"alias 300 CNAME www"}, {}},
    {"an empty non-terminal goes with its name", {"a.b.deep 300 TXT below"}, {}},
    {"an empty non-terminal gets data", {}, {"b.deep 300 TXT new"}},
    {"names appear above a new one", {}, {"one.two.three 300 A 192.0.2.9"}},
    {"a name becomes an empty non-terminal",
     {"www 300 A 192.0.2.10", "www 300 AAAA 2001:db8::10"},
     {"below.www 300 A 192.0.2.10"}},
    {"a wildcard comes", {}, {"*.www 300 TXT x"}},
    {"a wildcard changes", {"*.wild 300 MX 10 WWW"}, {"*.wild 300 MX 20 Www"}},
    {"a delegation comes", {}, {"sub 300 NS ns.sub", "ns.sub 300 A 192.0.2.9"}},
    {"a delegation goes", {"plain 300 NS ns.plain", "ns.plain 300 A 192.0.2.53"}, {}},
    {"a delegation goes, its glue stays", {"plain 300 NS ns.plain"}, {}},
    {"a delegation becomes secure",
     {},
     {"plain 300 DS 2 8 2 0123456789012345678901234567890123456789012345678901234567890123"}},
    {"a delegation becomes insecure",
     {"secure 300 DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123"},
     {}},
    {"names are delegated", {}, {"deep 300 NS ns.deep"}},
    {"a name is delegated that is used", {}, {"www 300 NS ns1"}},
    {"the last delegation below a name goes", {"x.y.ent 300 NS ns.elsewhere.test."}, {}},
    {"a second delegation below a name", {}, {"z.y.ent 300 NS ns.elsewhere.test."}},
    {"secure below a name above delegations",
     {},
     {"z.ent 300 DS 2 8 2 0123456789012345678901234567890123456789012345678901234567890123",
      "z.ent 300 NS ns.elsewhere.test."}},
    {"a DNAME comes", {}, {"b.deep 300 DNAME elsewhere.test."}},
    {"a DNAME goes", {"dn 300 DNAME elsewhere.test."}, {}},
    {"type above 255", {}, {"www 300 CAA 0 issue \"ca.test\"", "www 300 TYPE65280 \\# 1 00"}},
    {"apex", {}, {"@ 3600 MX 0 ."}},
};

TEST_P(SignedUpdate, WhatASignerMakesIsAccepted) {
  for (const Edit& edit : kEdits) {
    const RecordTexts before = signed_zone(kZone);
    const RecordTexts after = signed_zone(edited(kZone, edit.out, edit.in));
    SignedStore store(before);
    ASSERT_EQ(store.run(difference(before, after)), Rcode::kNoError)
        << edit.what << ": " << store.reason();
    const RecordTexts now = store.records();
    for (const auto& [text, one] : after) EXPECT_TRUE(now.contains(text)) << edit.what << text;
    EXPECT_EQ(now.size(), after.size()) << edit.what;
  }
}

TEST_P(SignedUpdate, WithoutAnyOneOfItsRecordsItIsRefused) {
  std::size_t tried = 0;
  for (const Edit& edit : kEdits) {
    const UpdateMessage whole = this->edit(edit.out, edit.in);
    SignedStore store(signed_zone(kZone));
    for (std::size_t i = 0; i < whole.updates.size(); ++i) {
      const UpdateRecord& left_out = whole.updates[i];
      // A new SOA takes the place of the old one.
      if (left_out.type == RRType::kSOA && left_out.rr_class == RRClass::kNONE) continue;
      if (is_unsigned_data(left_out, how_.opt_out)) continue;
      UpdateMessage message = whole;
      message.updates.erase(message.updates.begin() + static_cast<std::ptrdiff_t>(i));
      const UpdateOutcome outcome = store.compute(message);
      EXPECT_EQ(outcome.rcode, Rcode::kRefused)
          << edit.what << " without " << to_text(left_out.owner) << " " << to_text(left_out.type);
      ++tried;
    }
  }
  EXPECT_GT(tried, 200U);
}

// Single reasons --------------------------------------------------------------------------------

TEST_P(SignedUpdate, NobodySignsForTheClient) {
  SignedStore store(signed_zone(kZone));
  UpdateMessage message;
  message.zone = {name("@"), RRType::kSOA, RRClass::kIN};
  const zone::Record one = record("new 300 A 192.0.2.9");
  message.updates.push_back({dns::Name(one.owner), one.type, RRClass::kIN, 300, one.rdata, true});
  EXPECT_EQ(store.run(message), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("SOA with a later serial"));
}

TEST_P(SignedUpdate, WhatIsSoAlreadyNeedsNoSignature) {
  SignedStore store(signed_zone(kZone));
  UpdateMessage message;
  message.zone = {name("@"), RRType::kSOA, RRClass::kIN};
  const zone::Record one = record("www 300 A 192.0.2.10");
  message.updates.push_back({dns::Name(one.owner), one.type, RRClass::kIN, 300, one.rdata, true});
  EXPECT_EQ(store.run(message), Rcode::kNoError) << store.reason();
}

TEST_P(SignedUpdate, SignaturesOutOfTheirTimeAreRefused) {
  EXPECT_THAT(refused_when_signed([](Signing& how) { how.expiration = kSigningTime - 1; }),
              HasSubstr("not valid now"));
  EXPECT_THAT(refused_when_signed([](Signing& how) { how.inception = kSigningTime + 1; }),
              HasSubstr("not valid now"));
  EXPECT_EQ(refused_when_signed([](Signing& how) {
              how.inception = kSigningTime;
              how.expiration = kSigningTime;
            }),
            "accepted");
}

TEST_P(SignedUpdate, SignaturesOfAStrangersKeyAreRefused) {
  EXPECT_THAT(refused_when_signed([](Signing& how) { how.signing = {TestKey(9)}; }),
              HasSubstr("by no key of the zone"));
}

TEST_P(SignedUpdate, ASignatureThatDoesNotVerifyIsNamed) {
  const std::string reason = refused({}, {"www 300 TXT new"}, [](UpdateMessage& message) {
    for (UpdateRecord& record : message.updates)
      if (record.type == RRType::kRRSIG && record.rr_class == RRClass::kIN &&
          dns::rrsig_covered(record.rdata) == RRType::kTXT)
        record.rdata.back() ^= 1U;
  });
  EXPECT_THAT(reason, HasSubstr("www.example. TXT"));
  EXPECT_THAT(reason, HasSubstr("does not verify"));
}

/// Octets of the RRSIG RDATA that are checked before the signature is.
TEST_P(SignedUpdate, EachFieldOfASignatureCounts) {
  const std::vector<std::pair<std::size_t, std::string>> fields = {
      {2, "no RRSIG of algorithm 15"}, {3, "labels"}, {4, "TTL"}, {16, "by no key"}, {19, "names"}};
  for (const auto& [offset, why] : fields) {
    const std::string reason =
        refused({}, {"www 300 TXT new"}, [at = offset](UpdateMessage& message) {
          for (UpdateRecord& record : message.updates)
            if (record.type == RRType::kRRSIG && record.rr_class == RRClass::kIN &&
                dns::rrsig_covered(record.rdata) == RRType::kTXT)
              record.rdata[at] ^= at == 2 ? 2U : 1U;
        });
    EXPECT_THAT(reason, HasSubstr(why)) << offset;
  }
}

TEST_P(SignedUpdate, ASignatureOfWhatIsNotThereIsRefused) {
  const std::string reason = refused({}, {"www 300 TXT new"}, [](UpdateMessage& message) {
    std::erase_if(message.updates,
                  [](const UpdateRecord& record) { return record.type == RRType::kTXT; });
  });
  EXPECT_FALSE(reason.empty());
  EXPECT_THAT(refused({"www 300 AAAA 2001:db8::10"}, {},
                      [](UpdateMessage& message) {
                        std::erase_if(message.updates, [](const UpdateRecord& record) {
                          return record.type == RRType::kRRSIG &&
                                 dns::rrsig_covered(record.rdata) == RRType::kAAAA;
                        });
                      }),
              HasSubstr("AAAA, which is not there"));
}

TEST_P(SignedUpdate, ASecondSignatureMustVerifyToo) {
  EXPECT_THAT(refused({}, {"www 300 TXT new"},
                      [](UpdateMessage& message) {
                        for (std::size_t i = 0; i < message.updates.size(); ++i) {
                          UpdateRecord other = message.updates[i];
                          if (other.type != RRType::kRRSIG || other.rr_class != RRClass::kIN)
                            continue;
                          other.rdata.back() ^= 1U;
                          message.updates.push_back(other);
                          return;
                        }
                      }),
              HasSubstr("does not verify"));
}

TEST_P(SignedUpdate, AZoneStaysSigned) {
  SignedStore store(signed_zone(kZone));
  UpdateMessage message;
  message.zone = {name("@"), RRType::kSOA, RRClass::kIN};
  for (const RRType type : {RRType::kDNSKEY, RRType::kNSEC, RRType::kNSEC3PARAM, RRType::kRRSIG})
    message.updates.push_back({name("@"), type, RRClass::kANY, 0, {}, false});
  EXPECT_EQ(store.run(message), Rcode::kRefused);
  const zone::Record soa = record("@ 3600 SOA ns1 admin 11 3600 600 86400 300");
  message.updates.push_back({dns::Name(soa.owner), soa.type, RRClass::kIN, 3600, soa.rdata, true});
  EXPECT_EQ(store.run(message), Rcode::kRefused);
}

TEST_P(SignedUpdate, TheWayOfDenyingStays) {
  Signing other = how_;
  other.nsec3 = !how_.nsec3;
  SignedStore store(signed_zone(kZone));
  EXPECT_EQ(store.run(difference(signed_zone(kZone), sign(edited(kZone, {}, {}), other))),
            Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("cannot change"));
}

// Limits and permission -------------------------------------------------------------------------

TEST_P(SignedUpdate, NamesBelowANewCutLeaveTheChain) {
  Lines lines = kZone;
  for (int i = 0; i < 12; ++i) lines.push_back(fmt::format("n{}.many 300 A 192.0.2.1", i));
  const RecordTexts before = signed_zone(lines);
  SignedStore store(before);
  UpdateMessage message = difference(before, signed_zone(edited(lines, {}, {"many 300 NS ns1"})));
  EXPECT_EQ(store.compute(message).rcode, Rcode::kNoError);
  std::erase_if(message.updates, [](const UpdateRecord& record) {
    return record.owner == name("n7.many") && record.type == RRType::kRRSIG &&
           dns::rrsig_covered(record.rdata) == RRType::kA;
  });
  const UpdateOutcome outcome = store.compute(message);
  EXPECT_THAT(outcome.reason, HasSubstr("n7.many.example. A, which is not authoritative"));
}

/// As many as a message has room for.
constexpr int kManyNames = 2000;

/// Names that share nothing but their neighbours.
Lines with_many(Lines lines, const char* format) {
  for (int i = 0; i < kManyNames; ++i)
    lines.push_back(fmt::format(fmt::runtime(format), fmt::format("n{:04}", i)));
  return lines;
}

TEST_P(SignedUpdate, ThousandsOfAdjacentNamesLeaveInOneUpdate) {
  const Lines lines = with_many(kZone, "{} 300 A 192.0.2.1");
  const RecordTexts before = signed_zone(lines), after = signed_zone(edited(kZone, {}, {}));
  SignedStore store(before);
  EXPECT_EQ(store.run(difference(before, after)), Rcode::kNoError) << store.reason();
  EXPECT_EQ(store.records().size(), after.size());
}

/// With opt-out they need neither NSEC3 nor signature; else they come signed and all at once in no
/// message, so their number is that of the signatures that may be verified.
TEST_P(SignedUpdate, AdjacentNamesComeInOneUpdate) {
  Lines lines = edited(kZone, {}, {});
  if (how_.opt_out)
    lines = with_many(lines, "{} 300 NS ns.elsewhere.test.");
  else
    for (int i = 0; i < 400; ++i) lines.push_back(fmt::format("n{:04} 300 A 192.0.2.1", i));
  const RecordTexts before = signed_zone(kZone), after = signed_zone(lines);
  SignedStore store(before);
  EXPECT_EQ(store.run(difference(before, after)), Rcode::kNoError) << store.reason();
  EXPECT_EQ(store.records().size(), after.size());
}

TEST_P(SignedUpdate, AdjacentNamesLeaveBehindGlue) {
  Lines lines = kZone;
  for (int i = 0; i < kManyNames; ++i) lines.push_back(fmt::format("g{}.plain 300 A 192.0.2.1", i));
  const RecordTexts after = signed_zone(edited(lines, {}, {}));
  lines = with_many(lines, "q{} 300 A 192.0.2.1");
  const RecordTexts before = signed_zone(lines);
  SignedStore store(before);
  EXPECT_EQ(store.run(difference(before, after)), Rcode::kNoError) << store.reason();
}

TEST(ChangedZone, LooksAtNoMoreThanItMay) {
  Lines lines = {"@ 3600 SOA ns1 admin 10 3600 600 86400 300", "@ 3600 NS ns1"};
  for (int i = 0; i < 100; ++i) lines.push_back(fmt::format("n{}.many 300 A 192.0.2.1", i));
  ZoneStore store(lines);
  TouchedNames touched(store.zone());
  TouchedNames::add(touched.at(name("many")), RRType::kNS, {300},
                    name("ns1").view().bytes());
  EXPECT_FALSE(ChangedZone(store.zone(), touched, 1000).exhausted());
  const ChangedZone limited(store.zone(), touched, 50);
  EXPECT_TRUE(limited.exhausted());
  EXPECT_LE(limited.affected().size(), 51U);
}

/// The most iterations there are, with a salt that makes each one five times as dear.
TEST(Nsec3Check, ALongSaltCountsForWhatItCosts) {
  Signing how;
  how.nsec3 = true;
  how.iterations = 2500;
  how.salt = std::string(510, 'a');
  Lines lines = edited(kZone, {}, {});
  for (int i = 0; i < 100; ++i) lines.push_back(fmt::format("n{} 300 A 192.0.2.1", i));
  const RecordTexts before = sign(kZone, how), after = sign(lines, how);
  SignedStore store(before);
  EXPECT_EQ(store.run(difference(before, after)), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("names and hashes"));
  how.salt = "-";
  SignedStore cheap(sign(kZone, how));
  EXPECT_EQ(cheap.run(difference(sign(kZone, how), sign(lines, how))), Rcode::kNoError)
      << cheap.reason();
}

TEST_P(SignedUpdate, WhoMayChangeATypeMayChangeItsSignatures) {
  SignedStore store(signed_zone(kZone));
  zone::Acl acl{zone::AclRule{}};
  const UpdateMessage message = edit({}, {"new 300 A 192.0.2.9"});
  acl[0].types = {RRType::kA, RRType::kSOA, RRType::kNSEC, RRType::kNSEC3};
  EXPECT_EQ(store.compute(message, acl).rcode, Rcode::kNoError);
  acl[0].types = {RRType::kA, RRType::kSOA};
  EXPECT_EQ(store.compute(message, acl).code, dns::ExtendedError::kProhibited);
  acl[0].types = {RRType::kA, RRType::kNSEC, RRType::kNSEC3};
  EXPECT_EQ(store.compute(message, acl).code, dns::ExtendedError::kProhibited);
}

// Chance ----------------------------------------------------------------------------------------

/// Random zones of few labels, so that names become cuts, aliases and empty non-terminals of each
/// other.
class RandomLines {
 public:
  explicit RandomLines(unsigned seed) : random_(seed) {}
  Lines zone(int serial) {
    Lines lines = {fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial),
                   "@ 3600 NS ns1"};
    for (const auto& [owner, types] : names_)
      for (const std::string& type : types) lines.push_back(owner + " 300 " + type);
    return lines;
  }
  void change() {
    for (auto left = 1 + random_() % 3; left > 0; --left) {
      std::string owner;
      do {
        owner += (owner.empty() ? "" : ".") + std::string(1, "abc*"[random_() % 4]);
      } while (random_() % 2 == 0 && owner.size() < 6);
      auto& types = names_[owner];
      if (!types.empty() && random_() % 3 == 0)
        names_.erase(owner);
      else
        set(types);
    }
  }

 private:
  void set(std::set<std::string>& types) {
    switch (random_() % 8) {
      case 0:
        types = {"CNAME www"};
        break;
      case 1:
        types = {"NS ns.elsewhere.test."};
        break;
      case 2:
        types = {"NS ns.elsewhere.test.", "DS 2 8 1 0123456789012345678901234567890123456789"};
        break;
      case 3:
        types = {"DNAME elsewhere.test."};
        break;
      default:
        if (types.contains("CNAME www") || types.contains("NS ns.elsewhere.test.")) types.clear();
        types.insert(random_() % 2 == 0 ? "A 192.0.2.1" : "TXT t");
    }
  }
  std::mt19937 random_;
  std::map<std::string, std::set<std::string>> names_;
};

TEST_P(SignedUpdate, RandomZonesFollowEachOther) {
  RandomLines lines(4711U + static_cast<unsigned>(GetParam()));
  for (int i = 0; i < 6; ++i) lines.change();
  RecordTexts before = signed_zone(lines.zone(1));
  SignedStore store(before);
  std::mt19937 random(7);
  for (int serial = 2; serial < 100; ++serial) {
    lines.change();
    const RecordTexts after = signed_zone(lines.zone(serial));
    const UpdateMessage message = difference(before, after);
    UpdateMessage broken = message;
    const std::size_t victim = random() % broken.updates.size();
    const UpdateRecord left_out = broken.updates[victim];
    broken.updates.erase(broken.updates.begin() + static_cast<std::ptrdiff_t>(victim));
    const bool covers_data = left_out.type == RRType::kRRSIG || left_out.type == RRType::kNSEC ||
                             left_out.type == RRType::kNSEC3;
    if (covers_data) {
      ASSERT_EQ(store.compute(broken).rcode, Rcode::kRefused)
          << serial << " without " << to_text(left_out.owner) << " " << to_text(left_out.type);
    }
    ASSERT_EQ(store.run(message), Rcode::kNoError) << serial << ": " << store.reason();
    ASSERT_EQ(store.records().size(), after.size());
    before = after;
  }
}

}  // namespace signed_update_test
}  // namespace pando::manager

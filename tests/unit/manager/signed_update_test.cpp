#include "manager/signed_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "manager/signature_check.h"
#include "manager/update_request.h"
#include "tests/unit/manager/zone_signer.h"

namespace pando::manager {
namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using testing::all_records;
using testing::difference;
using ::testing::HasSubstr;
using testing::kSigningTime;
using testing::name;
using testing::record;
using testing::RecordTexts;
using testing::sign;
using testing::Signing;
using testing::TestKey;
using testing::ZoneStore;
using Lines = std::vector<std::string>;

/// Serial 10; names of every kind: plain, alias, wildcard, below empty non-terminals, delegations
/// with and without DS and glue, DNAME.
const Lines kZone = {
    "@ 3600 SOA ns1 admin 10 3600 600 86400 300",
    "@ 3600 NS ns1",
    "ns1 3600 A 192.0.2.1",
    "www 300 A 192.0.2.10",
    "www 300 AAAA 2001:db8::10",
    "alias 300 CNAME www",
    "a.b.deep 300 TXT below",
    "*.wild 300 MX 10 WWW",
    "plain 300 NS ns.plain",
    "ns.plain 300 A 192.0.2.53",
    "secure 300 NS ns.elsewhere.test.",
    "secure 300 DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123",
    "dn 300 DNAME elsewhere.test.",
    "x.y.ent 300 NS ns.elsewhere.test.",
};

/// The zone after one more edit, with the next serial.
Lines edited(Lines lines, const Lines& out, const Lines& in) {
  for (const std::string& line : out) EXPECT_EQ(std::erase(lines, line), 1U) << line;
  lines.insert(lines.end(), in.begin(), in.end());
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("@ 3600 SOA"); });
  lines.push_back("@ 3600 SOA ns1 admin 11 3600 600 86400 300");
  return lines;
}

zone::Record first_of(const RecordTexts& records, const std::string& prefix) {
  const auto found = records.lower_bound(prefix);
  EXPECT_TRUE(found != records.end() && found->first.starts_with(prefix)) << prefix;
  return found->second;
}

/// A store with a signed zone.
class SignedStore {
 public:
  explicit SignedStore(const RecordTexts& records) : store_(apex_lines(records)) {
    zone::Changes changes{name("@"), {}, {}};
    for (const auto& [text, one] : records) changes.added.push_back(one);
    store_.apply(changes);
  }
  UpdateOutcome compute(const UpdateMessage& message, const zone::Acl& acl = {zone::AclRule{}},
                        std::uint64_t now = kSigningTime) {
    UpdateRules rules;
    rules.allow_update = &acl;
    rules.now = now;
    return compute_update(store_.snapshot(), message, rules);
  }
  Rcode run(const UpdateMessage& message) {
    const UpdateOutcome outcome = compute(message);
    reason_ = outcome.reason;
    if (outcome.rcode == Rcode::kNoError && !outcome.changes.empty()) store_.apply(outcome.changes);
    return outcome.rcode;
  }
  [[nodiscard]] RecordTexts records() const { return all_records(store_.zone()); }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  static Lines apex_lines(const RecordTexts& records) {
    const zone::Record soa = first_of(records, "example. SOA");
    return {"@ 3600 SOA " + dns::rdata_to_text(RRType::kSOA, soa.rdata), "@ 3600 NS ns1"};
  }
  ZoneStore store_;
  std::string reason_;
};

/// Glue is not signed, so nobody sees that it is missing; nor, with opt-out, that a delegation is.
bool is_unsigned_data(const UpdateRecord& record, bool opt_out) {
  const std::string owner = to_text(record.owner);
  if (opt_out && record.type == RRType::kNS) return true;
  return owner == "ns.plain.example." || owner == "ns.sub.example.";
}

/// NSEC, NSEC3 and NSEC3 with opt-out.
class SignedUpdate : public ::testing::TestWithParam<int> {
 protected:
  SignedUpdate() {
    how_.nsec3 = GetParam() > 0;
    how_.opt_out = GetParam() > 1;
    if (how_.nsec3) how_.salt = "aabb";
    how_.iterations = how_.nsec3 ? 1 : 0;
  }
  [[nodiscard]] RecordTexts signed_zone(const Lines& lines) const { return sign(lines, how_); }
  /// The message that edits kZone.
  [[nodiscard]] UpdateMessage edit(const Lines& out, const Lines& in) const {
    return difference(signed_zone(kZone), signed_zone(edited(kZone, out, in)));
  }
  /// What the store says to the message that edits kZone after `spoil` has changed it.
  template <class Spoil>
  std::string refused(const Lines& out, const Lines& in, Spoil&& spoil) const {
    SignedStore store(signed_zone(kZone));
    UpdateMessage message = edit(out, in);
    spoil(message);
    const UpdateOutcome outcome = store.compute(message);
    EXPECT_EQ(outcome.rcode, Rcode::kRefused);
    EXPECT_EQ(outcome.code, dns::ExtendedError::kNotSupported);
    EXPECT_TRUE(outcome.changes.empty());
    return outcome.reason;
  }
  /// Adds a TXT to www, after `spoil` has changed how the new zone is signed.
  template <class Spoil>
  std::string refused_when_signed(Spoil&& spoil) const {
    Signing other = how_;
    spoil(other);
    SignedStore store(signed_zone(kZone));
    const UpdateMessage message =
        difference(signed_zone(kZone), sign(edited(kZone, {}, {"www 300 TXT new"}), other));
    return store.run(message) == Rcode::kRefused ? store.reason() : "accepted";
  }

  Signing how_;
};

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
  message.updates.push_back({one.owner, one.type, RRClass::kIN, 300, one.rdata, true});
  EXPECT_EQ(store.run(message), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("SOA with a later serial"));
}

TEST_P(SignedUpdate, WhatIsSoAlreadyNeedsNoSignature) {
  SignedStore store(signed_zone(kZone));
  UpdateMessage message;
  message.zone = {name("@"), RRType::kSOA, RRClass::kIN};
  const zone::Record one = record("www 300 A 192.0.2.10");
  message.updates.push_back({one.owner, one.type, RRClass::kIN, 300, one.rdata, true});
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
        refused({}, {"www 300 TXT new"}, [offset = offset](UpdateMessage& message) {
          for (UpdateRecord& record : message.updates)
            if (record.type == RRType::kRRSIG && record.rr_class == RRClass::kIN &&
                dns::rrsig_covered(record.rdata) == RRType::kTXT)
              record.rdata[offset] ^= offset == 2 ? 2U : 1U;
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
  message.updates.push_back({soa.owner, soa.type, RRClass::kIN, 3600, soa.rdata, true});
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

// Keys ------------------------------------------------------------------------------------------

TEST_P(SignedUpdate, KeysRollOver) {
  const TestKey old(1), fresh(2, 256);
  Signing published = how_, both = how_, swapped = how_, gone = how_;
  published.published = {old, fresh};
  both.published = {old, fresh};
  both.signing = {old, fresh};
  gone.published = {fresh};
  gone.signing = {fresh};
  const RecordTexts zero = signed_zone(kZone);
  const Lines next = edited(kZone, {}, {});
  const auto at = [&](const Signing& how, int serial) {
    Lines lines = next;
    lines.back() = fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
    return sign(lines, how);
  };
  SignedStore store(zero);
  EXPECT_EQ(store.run(difference(zero, at(gone, 11))), Rcode::kRefused) << "all at once";
  EXPECT_THAT(store.reason(), HasSubstr("no DNSKEY would be left that signed"));
  EXPECT_EQ(store.run(difference(zero, at(published, 11))), Rcode::kNoError) << store.reason();
  EXPECT_EQ(store.run(difference(at(published, 11), at(gone, 12))), Rcode::kRefused);
  EXPECT_EQ(store.run(difference(at(published, 11), at(both, 12))), Rcode::kNoError)
      << store.reason();
  EXPECT_EQ(store.run(difference(at(both, 12), at(gone, 13))), Rcode::kNoError) << store.reason();
}

/// RFC 6781 §4.1.4: the signatures of an algorithm come before its keys and go after them.
TEST_P(SignedUpdate, AlgorithmsRollOver) {
  const TestKey old(1), fresh(2, 257, 16);
  const auto at = [&](int serial, std::vector<TestKey> published, std::vector<TestKey> signing) {
    Signing how = how_;
    how.published = std::move(published);
    how.signing = std::move(signing);
    Lines lines = edited(kZone, {}, {fmt::format("www 300 TXT {}", serial)});
    lines.back() = fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
    return sign(lines, how);
  };
  RecordTexts now = at(11, {old}, {old});
  SignedStore store(now);
  EXPECT_EQ(store.run(difference(now, at(12, {old}, {fresh}))), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("has no RRSIG of algorithm 15"));
  const std::vector<RecordTexts> steps = {at(12, {old}, {old, fresh}),
                                          at(13, {old, fresh}, {old, fresh}),
                                          at(14, {fresh}, {old, fresh}), at(15, {fresh}, {fresh})};
  for (const RecordTexts& next : steps) {
    EXPECT_EQ(store.run(difference(now, next)), Rcode::kNoError) << store.reason();
    EXPECT_EQ(store.records().size(), next.size());
    now = next;
  }
}

TEST_P(SignedUpdate, ADigestOfTheZoneIsOfItsSerial) {
  const std::string digest(96, 'A');
  const Lines with = [&] {
    Lines lines = kZone;
    lines.push_back("@ 3600 ZONEMD 10 1 1 " + digest);
    return lines;
  }();
  const auto answer = [&](const Lines& after) {
    SignedStore store(signed_zone(with));
    return store.run(difference(signed_zone(with), signed_zone(after))) == Rcode::kNoError
               ? "accepted"
               : store.reason();
  };
  EXPECT_THAT(answer(edited(with, {}, {})), HasSubstr("no ZONEMD would be of serial 11"));
  EXPECT_EQ(answer(edited(with, {with.back()}, {"@ 3600 ZONEMD 11 1 1 " + digest})), "accepted");
  EXPECT_EQ(answer(edited(with, {with.back()}, {})), "accepted");
}

/// Validators come to the keys by one that the parent names.
TEST_P(SignedUpdate, AKeyThatSignedTheKeysHasToSignThemStill) {
  const TestKey entry(1), working(2, 256);
  Signing both = how_;
  both.published = both.signing = {entry, working};
  const auto at = [&](int serial, const TestKey& signer_of_keys) {
    Lines lines = kZone;
    lines.front() = fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
    RecordTexts records = sign(lines, both);
    std::erase_if(records, [&](const auto& entry_of) {
      const zone::Record& one = entry_of.second;
      return one.type == RRType::kRRSIG && dns::rrsig_covered(one.rdata) == RRType::kDNSKEY &&
             dns::parse_rrsig(one.rdata)->key_tag != dns::key_tag(signer_of_keys.dnskey());
    });
    return records;
  };
  SignedStore store(at(10, entry));
  EXPECT_EQ(store.run(difference(at(10, entry), at(11, working))), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("no key that signed example. DNSKEY before"));
  EXPECT_EQ(store.run(difference(at(10, entry), at(11, entry))), Rcode::kNoError) << store.reason();
}

TEST_P(SignedUpdate, ARevokedKeyCountsForNothing) {
  const TestKey revoked(1, 257 | 0x80), fresh(2);
  Signing both = how_, after = how_;
  both.published = both.signing = {TestKey(1), fresh};
  after.published = {revoked, fresh};
  after.signing = {revoked};
  const RecordTexts before = sign(kZone, both);
  SignedStore store(before);
  EXPECT_EQ(store.run(difference(before, sign(edited(kZone, {}, {}), after))), Rcode::kRefused);
}

TEST_P(SignedUpdate, AKeyOfAnUnknownAlgorithmDemandsNothing) {
  SignedStore store(signed_zone(kZone));
  Lines lines = edited(kZone, {}, {"@ 3600 DNSKEY 256 3 200 AAAA"});
  EXPECT_EQ(store.run(difference(signed_zone(kZone), signed_zone(lines))), Rcode::kNoError)
      << store.reason();
}

TEST_P(SignedUpdate, MalformedKeysAreNoKeys) {
  for (const char* key : {"@ 3600 DNSKEY 256 3 15 AAAA", "@ 3600 DNSKEY 256 3 8 AAAA",
                          "@ 3600 DNSKEY 256 3 13 AAAA", "@ 3600 DNSKEY 256 3 5 AQ=="}) {
    SignedStore store(signed_zone(kZone));
    EXPECT_EQ(store.run(difference(signed_zone(kZone), signed_zone(edited(kZone, {}, {key})))),
              Rcode::kNoError)
        << key << store.reason();
  }
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
  ZoneOverlay overlay(store.zone());
  ZoneOverlay::add(overlay.at(name("many")), RRType::kNS, {300}, name("ns1").view().bytes());
  EXPECT_FALSE(ChangedZone(store.zone(), overlay, 1000).exhausted());
  const ChangedZone limited(store.zone(), overlay, 50);
  EXPECT_TRUE(limited.exhausted());
  EXPECT_LE(limited.affected().size(), 51U);
}

TEST(ZoneKeys, VerifiesNoMoreThanItMay) {
  const RecordTexts records = sign(kZone, Signing());
  const ZoneOverlay::RRset dnskey{{3600}, {TestKey(1).dnskey()}};
  const ZoneOverlay::RRset soa{{3600}, {first_of(records, "example. SOA").rdata}};
  const Bytes signature = first_of(records, "example. RRSIG SOA").rdata;
  ZoneKeys keys(&dnskey);
  for (std::size_t i = 0; i < ZoneKeys::kMaxVerifications; ++i)
    ASSERT_EQ(keys.verify(*dns::parse_rrsig(signature), name("@"), soa),
              ZoneKeys::Verdict::kVerified);
  EXPECT_EQ(keys.verify(*dns::parse_rrsig(signature), name("@"), soa), ZoneKeys::Verdict::kTooMany);
}

TEST(ZoneKeys, HashesNoMoreThanItMay) {
  const RecordTexts records = sign(kZone, Signing());
  const ZoneOverlay::RRset dnskey{{3600}, {TestKey(1).dnskey()}};
  const ZoneOverlay::RRset soa{{3600}, {first_of(records, "example. SOA").rdata}};
  const Bytes rdata = first_of(records, "example. RRSIG SOA").rdata;
  const auto signature = dns::parse_rrsig(rdata);
  const std::size_t octets = dns::signed_octets(*signature, name("@"), soa.rdatas).size();
  ZoneKeys keys(&dnskey, 2 * octets + 1);
  EXPECT_EQ(keys.verify(*signature, name("@"), soa), ZoneKeys::Verdict::kVerified);
  EXPECT_EQ(keys.verify(*signature, name("@"), soa), ZoneKeys::Verdict::kVerified);
  EXPECT_EQ(keys.verify(*signature, name("@"), soa), ZoneKeys::Verdict::kTooMany);
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

}  // namespace
}  // namespace pando::manager

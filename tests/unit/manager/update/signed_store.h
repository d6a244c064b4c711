#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "manager/update/update_request.h"
#include "tests/unit/manager/dnssec/zone_signer.h"

/// A signed zone in a store, and updates to it as a client makes them that has its keys.
namespace pando::manager::testing {

using Lines = std::vector<std::string>;

/// Serial 10; names of every kind: plain, alias, wildcard, below empty non-terminals, delegations
/// with and without DS and glue, DNAME.
inline const Lines kZone = {
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
inline Lines edited(Lines lines, const Lines& out, const Lines& in) {
  for (const std::string& line : out) EXPECT_EQ(std::erase(lines, line), 1U) << line;
  lines.insert(lines.end(), in.begin(), in.end());
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("@ 3600 SOA"); });
  lines.push_back("@ 3600 SOA ns1 admin 11 3600 600 86400 300");
  return lines;
}

inline zone::Record first_of(const RecordTexts& records, const std::string& prefix) {
  const auto found = records.lower_bound(prefix);
  EXPECT_TRUE(found != records.end() && found->first.starts_with(prefix)) << prefix;
  return found->second;
}

/// A store with a signed zone.
class SignedStore {
 public:
  explicit SignedStore(const RecordTexts& records) : store_(apex_lines(records)) {
    zone::Changeset changes{name("@"), {}, {}};
    for (const auto& [text, one] : records) changes.added.push_back(one);
    store_.apply(changes);
  }
  UpdateOutcome compute(const UpdateMessage& message, const zone::Acl& acl = {zone::AclRule{}},
                        std::uint64_t now = kSigningTime) {
    UpdateRules rules;
    rules.allow_update = &acl;
    rules.now = now;
    return compute_update(store_.view(), message, rules);
  }
  dns::Rcode run(const UpdateMessage& message) {
    const UpdateOutcome outcome = compute(message);
    reason_ = outcome.reason;
    if (outcome.rcode == dns::Rcode::kNoError && !outcome.changes.empty())
      store_.apply(outcome.changes);
    return outcome.rcode;
  }
  [[nodiscard]] RecordTexts records() const { return all_records(store_.zone()); }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  static Lines apex_lines(const RecordTexts& records) {
    const zone::Record soa = first_of(records, "example. SOA");
    return {"@ 3600 SOA " + dns::rdata_to_text(dns::RRType::kSOA, soa.rdata), "@ 3600 NS ns1"};
  }
  ZoneStore store_;
  std::string reason_;
};

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
    EXPECT_EQ(outcome.rcode, dns::Rcode::kRefused);
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
    return store.run(message) == dns::Rcode::kRefused ? store.reason() : "accepted";
  }

  Signing how_;
};

}  // namespace pando::manager::testing

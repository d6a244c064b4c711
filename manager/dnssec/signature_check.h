#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "dns/dnssec/dnskey.h"
#include "dns/dnssec/rrsig.h"
#include "manager/dnssec/changed_zone.h"

namespace pando::manager {

/// The zone keys of a DNSKEY set, and signatures that they verify. A key is taken apart when it is
/// first needed.
class ZoneKeys {
 public:
  /// Verifications that one update may cost: measured on a busy machine 20 ms with RSA of 2048
  /// bits, 0.1 s with P-256, 0.25 s with Ed25519, 1.6 s with P-384; of those a message has room for
  /// 450. More than one for an RRSIG are only needed where keys have the same tag.
  static constexpr std::size_t kMaxVerifications = 1000;
  /// Octets that those may hash, each set once for each of its signatures: a large set with many
  /// signatures costs more than its part of a message tells. 40 ms with SHA-256.
  static constexpr std::size_t kMaxOctets = std::size_t{16} << 20;

  enum class Verdict : std::uint8_t { kVerified, kVerifiedByRevoked, kNoKey, kWrong, kTooMany };

  /// `rrset` may be null: then there is no key.
  explicit ZoneKeys(const ChangedZone::RRset* rrset, std::size_t max_octets = kMaxOctets);
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  [[nodiscard]] bool has_algorithm(std::uint8_t algorithm) const noexcept;
  /// Looks for a key with the tag and algorithm of `rrsig` that verifies it (RFC 4035 §5.3.1).
  Verdict verify(const dns::RrsigFields& rrsig, dns::NameView owner, const ChangedZone::RRset& set);

 private:
  struct Key {
    dns::DnskeyFields fields;
    std::uint16_t tag = 0;
    bool taken_apart = false;
    std::optional<dns::SignatureVerifier> verifier = std::nullopt;
  };
  std::vector<Key> keys_;  // views into the set
  std::size_t verifications_ = 0;
  std::size_t octets_left_;
};

/// Signatures of what an update changes: the RRSIGs of each changed set verify, and no signature
/// is left behind for what is not there or not signed (RFC 4035 §2.2). Signatures of an algorithm
/// that has no key stand beside those that verify: an algorithm's signatures come before its keys
/// and go after them (RFC 6781 §4.1.4), and validators pass over them.
///
/// Which algorithms a set must be signed with: those that the zone's SOA was signed with before and
/// that have a key in the DNSKEY set now. RFC 4035 §2.2 says all of the DNSKEY set; but while one
/// is introduced it signs some sets and not yet others, and signing the SOA with it is what ends
/// that.
class SignatureCheck {
 public:
  SignatureCheck(ChangedZone& zone, std::uint64_t now);
  Fault run();

 private:
  using Node = ChangedZone::Node;
  using RRset = ChangedZone::RRset;
  using Place = ChangedZone::Place;

  Fault check_keys();
  Fault check_entry(const Node& apex);
  Fault check_rollover(const Node& apex);
  Fault check_name(dns::NameView name);
  Fault check_set(const Node& node, dns::RRType type, bool must_be_signed);
  Fault check_signature(const Node& node, dns::RRType type, ByteView rdata,
                        std::set<std::uint8_t>& signed_by);
  [[nodiscard]] std::string problem_of(const Node& node, const dns::RrsigFields& rrsig,
                                       const RRset& set) const;

  ChangedZone& zone_;
  std::uint64_t now_;
  ZoneKeys keys_;
  std::set<std::uint8_t> algorithms_;  // that each set must be signed with
};

}  // namespace pando::manager

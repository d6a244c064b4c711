#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "dns/dnssec/dnskey.h"
#include "dns/dnssec/rrsig.h"
#include "manager/dnssec/changed_zone.h"

namespace pando::manager {

/// The zone keys of a DNSKEY set, and verification with them. A key is parsed when first needed.
class ZoneKeys {
 public:
  /// Limit of verifications per update. Measured on a busy machine: 20 ms with RSA of 2048 bits,
  /// 0.1 s with P-256, 0.25 s with Ed25519, 1.6 s with P-384. A message has room for only 450
  /// signatures of P-384. An RRSIG needs more than one verification only if keys have the same tag.
  static constexpr std::size_t kMaxVerifications = 1000;
  /// Limit of octets hashed for these, counting each set once per signature; 40 ms with SHA-256. A
  /// large set with many signatures costs far more than its share of a message suggests.
  static constexpr std::size_t kMaxOctets = std::size_t{16} << 20;

  enum class Verdict : std::uint8_t { kVerified, kVerifiedByRevoked, kNoKey, kWrong, kTooMany };

  struct Limits {
    std::size_t verifications = kMaxVerifications;
    std::size_t octets = kMaxOctets;
  };
  /// A null `rrset` means no keys.
  explicit ZoneKeys(const ChangedZone::RRset* rrset) : ZoneKeys(rrset, Limits()) {}
  ZoneKeys(const ChangedZone::RRset* rrset, const Limits& limits);
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  [[nodiscard]] bool has_algorithm(std::uint8_t algorithm) const noexcept;
  /// Verifies `rrsig` with the keys of its tag and algorithm (RFC 4035 §5.3.1).
  Verdict verify(const dns::RrsigFields& rrsig, dns::NameView owner, const ChangedZone::RRset& set);

 private:
  struct Key {
    dns::DnskeyFields fields;
    std::uint16_t tag = 0;
    bool taken_apart = false;
    std::optional<dns::SignatureVerifier> verifier = std::nullopt;
  };
  std::vector<Key> keys_;  // views into the DNSKEY set
  Limits left_;
};

/// Checks the signatures around an update's changes (RFC 4035 §2.2). The RRSIGs of each changed set
/// must verify. No signature may remain for absent or unsigned data. Signatures of an algorithm
/// without a key are allowed beside verified ones. An algorithm's signatures come before its keys
/// and go after them (RFC 6781 §4.1.4), and validators skip these signatures.
///
/// Each set must be signed with every algorithm that signed the old SOA and has a key in the new
/// DNSKEY set. RFC 4035 §2.2 demands all algorithms of the DNSKEY set. But a new algorithm signs
/// only some sets at first; its signature of the SOA ends that phase.
class SignatureCheck {
 public:
  SignatureCheck(ChangedZone& zone, std::uint64_t now)
      : SignatureCheck(zone, now, ZoneKeys::Limits()) {}
  SignatureCheck(ChangedZone& zone, std::uint64_t now, const ZoneKeys::Limits& limits);
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
  ZoneKeys::Limits limits_;
  ZoneKeys keys_;
  std::set<std::uint8_t> algorithms_;  // algorithms that every set must be signed with
};

}  // namespace pando::manager

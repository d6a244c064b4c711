#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dns/dnssec/dnskey.h"
#include "dns/dnssec/rrsig.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// The earliest end of a signature that a zone depends on.
struct SignatureEnd {
  dns::Name owner;
  dns::RRType type{};
  std::uint64_t at = 0;  ///< seconds since 1970
};

/// Verifies the signatures of sets with the keys of their zone, as a validator would that has no
/// clock but `now`. One per thread; the zone's version must stay pinned.
///
/// A set is well signed if each required algorithm has a signature that verifies and is valid at
/// `now`. Other signatures beside these do no harm (RFC 6840 §5.11), and are not looked at.
/// Required are the algorithms that sign the SOA with a key of the zone: RFC 4035 §2.2 demands all
/// of the DNSKEY set, but a new algorithm signs only some sets at first (RFC 6781 §4.1.4).
class SetVerifier {
 public:
  /// `one_in`: of the signatures of other names than the apex, one in so many is verified.
  SetVerifier(const ZoneView& zone, std::uint64_t now, unsigned one_in = 1);

  /// The reason why no set of the zone can be verified; empty = none. check() needs none.
  [[nodiscard]] std::string obstacle() const;
  /// The fault of the set's signatures; empty = none. `owner` is the set's owner.
  [[nodiscard]] std::string check(const dns::Name& owner, const RRsetView& set);

  [[nodiscard]] std::uint64_t verified() const noexcept { return verified_; }
  [[nodiscard]] const std::optional<SignatureEnd>& first_end() const noexcept { return first_end_; }

 private:
  /// Limit of verifications for one set: with more, keys of one tag are a trap (CVE-2023-50387).
  static constexpr unsigned kMaxTriesPerSet = 32;

  struct Key {
    std::uint16_t tag = 0;
    std::uint8_t algorithm = 0;
    bool revoked = false;
    std::optional<dns::SignatureVerifier> verifier;
  };
  void read_keys(const ZoneView& zone);
  void require_algorithms(const ZoneView& zone);
  [[nodiscard]] bool has_key_of(std::uint8_t algorithm) const noexcept;
  [[nodiscard]] std::string check_algorithm(const dns::Name& owner, const RRsetView& set,
                                            std::uint8_t algorithm);
  [[nodiscard]] std::string problem_of(const dns::RrsigFields& rrsig, const dns::Name& owner);
  [[nodiscard]] std::string verify(const dns::RrsigFields& rrsig, const dns::Name& owner);
  void note_end(const dns::RrsigFields& rrsig, const dns::Name& owner);

  dns::Name apex_;
  std::uint64_t now_;
  unsigned one_in_;
  std::uint64_t met_ = 0;  // signatures of other names than the apex
  std::vector<Key> keys_;
  std::set<std::uint8_t> required_;
  std::uint64_t verified_ = 0;
  std::optional<SignatureEnd> first_end_;
  // of the set that is checked; kept for their memory
  std::vector<Bytes> rdatas_;
  std::vector<Bytes> signatures_;
  Bytes octets_;
  unsigned tries_ = 0;
};

}  // namespace pando::zone

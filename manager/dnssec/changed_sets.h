#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "manager/dnssec/changed_zone.h"
#include "manager/dnssec/zone_signer.h"
#include "zone/dnssec/set_signer.h"

namespace pando::manager {

/// Signs sets of the names that a change touches. A set that stays as it is keeps its signatures
/// while these fit. One thread.
class ChangedSets {
 public:
  using Node = TouchedNames::Node;
  using RRset = TouchedNames::RRset;

  /// References outlive the object. Signatures that end before `renewed_before` are made anew;
  /// both times are seconds since 1970.
  ChangedSets(const ZoneSigner& signer, zone::SetSigner& sets, std::uint64_t now,
              std::uint64_t renewed_before) noexcept
      : signer_(signer), sets_(sets), now_(now), renewed_before_(renewed_before) {}

  /// Makes the RRSIG records of a set of the node, unless its present ones are still right.
  /// kUnsupported: OpenSSL does not sign.
  Status sign(Node& node, dns::RRType type);
  /// The set takes the place of the node's set of this type, and is signed.
  Status replace(Node& node, dns::RRType type, RRset set);
  /// Removes a set, and its signatures.
  static void remove(Node& node, dns::RRType type);
  /// Removes the signatures of each type that `stays` does not accept.
  static void keep_signatures(Node& node, const std::function<bool(dns::RRType)>& stays);

 private:
  [[nodiscard]] bool fit(const Node& node, dns::RRType type) const;
  [[nodiscard]] bool is_good(ByteView rrsig, const dns::SigningKey& key) const;

  const ZoneSigner& signer_;
  zone::SetSigner& sets_;
  std::uint64_t now_;
  std::uint64_t renewed_before_;
};

}  // namespace pando::manager

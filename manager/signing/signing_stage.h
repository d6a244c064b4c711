#pragma once

#include <cstdint>
#include <string_view>

#include "manager/signing/keys/roll_step.h"
#include "manager/signing/keys/signing_facts.h"
#include "zone/dnssec/apex_key_sets.h"

namespace pando::manager {

/// The stages of a zone on its way to be signed, and back.
enum class SigningStage : std::uint8_t {
  kSigning,       ///< not all of the zone is signed yet
  kSpreading,     ///< signed; caches may still have unsigned records
  kDsWanted,      ///< the parent is asked for DS records
  kSecure,        ///< validators can follow a chain to the zone
  kNoDsWanted,    ///< the parent is asked to remove the DS records
  kDsExpiring,    ///< they are gone; caches may still have them
  kUnsigning,     ///< nobody validates the zone, and its signatures go
  kUnsigned,      ///< served unsigned, although the configuration names a policy
};
[[nodiscard]] std::string_view to_text(SigningStage stage) noexcept;

/// The waits of a policy, in seconds.
struct SigningWaits {
  std::uint64_t propagation = 3600;      ///< until all secondaries have a new version
  std::uint64_t parent_ds_ttl = 86400;   ///< of the DS records at the parent
  bool publishes_cds = true;
  bool rolls_by_itself = false;  ///< no step of a key roll needs the operator's word
  bool operator==(const SigningWaits&) const = default;
};

struct SigningState {
  SigningStage stage = SigningStage::kSigning;
  std::uint64_t until = 0;  ///< when the next stage begins by itself; 0: something else begins it
  zone::ParentRequest parent_request = zone::ParentRequest::kNone;
  RollState roll{};
  [[nodiscard]] bool wants_signatures() const noexcept { return stage < SigningStage::kUnsigning; }
};

/// The stage that follows from what was seen (RFC 7583 §3.3.4, RFC 7344 §4.1, RFC 8078 §4). Pure.
///
/// - Resolvers that have unsigned records of the zone in their caches would take these for bogus as
///   soon as the parent has DS records. So the parent is asked when the longest TTL is over.
/// - Resolvers that have DS records in their caches take an unsigned zone for bogus. So signatures
///   stay for a DS record's TTL after these are gone.
///
/// `keys`: those in the zone's folder, for the state of a key roll. No roll goes on while the zone is
/// being unsigned.
[[nodiscard]] SigningState signing_state(const SigningFacts& facts, std::span<const FolderKey> keys,
                                         const SigningWaits& waits, std::uint64_t now);

}  // namespace pando::manager

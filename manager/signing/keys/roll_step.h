#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "manager/signing/keys/signing_facts.h"
#include "zone/dnssec/set_signer.h"

/// The steps by which a zone's keys follow others, as pure functions of what was seen: one sequence
/// for keys of each kind. It is a roll by "pre-publication" for keys that sign data, by "double
/// signatures" for those that sign keys (RFC 6781 §4.1.1, §4.1.2), and the one of RFC 6781 §4.1.4 for
/// another algorithm.
namespace pando::manager {

/// A key in the zone's folder.
struct FolderKey {
  KeyId id;
  bool is_sep = false;
};

/// The uses of a zone's keys, in the same order, at the step of `roll`. Keys that the roll does not
/// name stay. Without a roll: zone::usual_uses().
[[nodiscard]] std::vector<zone::KeyUse> uses_of(std::span<const FolderKey> keys,
                                                const KeyRoll& roll);

/// What a roll is about.
struct RollShape {
  bool is_of_algorithm = false;  ///< the algorithms before are not those after
  bool changes_ds = false;       ///< the parent's DS records change
  bool changes_data = false;     ///< other keys sign the zone's data
};
[[nodiscard]] RollShape shape_of(std::span<const FolderKey> keys, const KeyRoll& roll);
[[nodiscard]] RollStep first_step(const RollShape& shape) noexcept;

/// Before the next step begins.
enum class RollWait : std::uint8_t {
  kNothing,
  kZone,        ///< all of the zone is to show the step
  kSignatures,  ///< old signatures are to be renewed
  kParent,      ///< the operator is to see the new DS records at the parent
  kCaches,      ///< caches are to forget: until a time
  kOperator,    ///< the operator is to agree
  kUnsigning,   ///< the zone is being unsigned
};

/// The times in seconds.
struct RollWaits {
  std::uint64_t max_ttl = 0;      ///< of the zone's records
  std::uint64_t propagation = 0;  ///< until all secondaries have a new version
  std::uint64_t ds_ttl = 0;       ///< of the DS records at the parent
  bool goes_by_itself = false;    ///< no step needs the operator's word
};

struct RollState {
  RollWait wait = RollWait::kNothing;
  std::uint64_t until = 0;         ///< seconds since 1970, with kCaches
  RollStep next = RollStep::kNone;  ///< begins now
  bool is_done = false;            ///< the old keys' files may go
};

/// The next step follows when nothing that caches may still have would make the zone bogus: after
/// each version, the DNSKEY sets, DS records and signatures of the version before may be seen for
/// their TTL and the time that secondaries take (RFC 7583 §3.2.1, §3.3.2; RFC 6781 §4.1.4).
[[nodiscard]] RollState roll_state(const KeyRoll& roll, const RollShape& shape,
                                   const RollWaits& waits, std::uint64_t now) noexcept;

/// Begins a step: nothing was seen of it.
void begin_step(KeyRoll& roll, RollStep step);

}  // namespace pando::manager

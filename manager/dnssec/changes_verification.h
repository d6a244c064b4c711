#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "zone/dnssec/zone_verification.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Records of changesets above which a whole zone is verified, in several threads, instead of the
/// changes in one.
inline constexpr std::uint64_t kMaxChangedRecords = 50'000;

/// Zones with fewer names are verified faster than threads are started.
inline constexpr std::uint64_t kNamesForThreads = 500;

/// A verdict on a zone's data.
struct Verdict {
  zone::Verification found;
  bool whole = true;  ///< false: by the changes alone
};

/// Verifies a zone by its changes alone, which `changes` lead from `before` to `after`: the changed
/// names with their neighbours (signature_check.h, denial_check.h), and the digest of the whole
/// zone, if there is one. The caller knows that `before` had no fault. `now` is in seconds since
/// 1970. For threads that nobody waits for; both versions stay pinned.
///
/// Nullopt: no verdict, so that the whole zone must be verified. These checks are stricter than
/// validators (a primary may exchange NSEC for NSEC3), and limited. first_end is that of the
/// changed sets alone.
[[nodiscard]] std::optional<zone::Verification> verify_changes(
    const zone::ZoneView& before, const zone::ZoneView& after,
    std::span<const zone::Changeset> changes, std::uint64_t now);

}  // namespace pando::manager

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "manager/dnssec/changes_verification.h"
#include "manager/verifier/zone_verifier.h"
#include "zone/draft/built.h"

namespace pando::manager {

/// The judges of a zone's data before they are served.
struct Judges {
  /// Runs `work` beside the commit thread, and then `then` on it.
  using Run = std::function<void(std::function<void()> work, std::function<void()> then)>;

  bool signatures = false;    ///< `verify: refuse`
  ZoneVerifierPtr program{};  ///< null: none
  /// Whether the data of a served zone were verified without a fault; empty: they were not. Asked
  /// on the commit thread.
  std::function<bool(const zone::ZoneView& served)> is_verified{};
  bool base_is_valid = false;  ///< its answer about the version that the change begins with
  Run run{};  ///< in threads of the change's source; empty: in those of the road or the program
  [[nodiscard]] explicit operator bool() const noexcept { return signatures || program; }
};

/// The verdicts of the judges.
struct Judgement {
  std::shared_ptr<const Verdict> signatures{};  ///< null: not verified
  std::string refusal{};                        ///< in one line; empty = the data may be served
};

/// Judges a zone as a change leaves it: signatures first, then the program, which may take minutes.
/// `changes` lead from `before` to `after`. When the served data were valid the changes alone
/// decide; without changes the whole zone is verified. Both versions stay pinned. For threads that
/// nobody waits for; a Progress::here() that is given up ends the work, which the refusal says.
[[nodiscard]] Judgement judge_zone(const Judges& judges, const zone::ZoneView& before,
                                   const zone::ZoneView& after,
                                   std::span<const zone::Changeset> changes);

/// The same for a zone that was built in a transaction and is in no version yet; all of it is
/// verified. `before` has no data if the zone had none.
[[nodiscard]] Judgement judge_built(shm::Store& store, const Judges& judges, const dns::Name& apex,
                                    const zone::ZoneView& before, const zone::BuiltZone& built);

}  // namespace pando::manager

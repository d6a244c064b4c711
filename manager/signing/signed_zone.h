#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dns/name.h"
#include "manager/change/zone_signers.h"
#include "manager/signing/keys/zone_keys.h"
#include "manager/signing/signing_stage.h"

namespace pando::manager {

/// A zone of the configuration that is signed here.
struct SignedZone {
  dns::Name name;
  KeyLayout layout;
  ZoneSigner::Options signing;
  SigningWaits waits;
  bool may_make_key = true;
  std::string ds_check{};  ///< remote that is asked for the zone's DS records; empty: none
  std::optional<Result<OpenedKeys>> opened{};     ///< nullopt: the folder was not read yet
  std::optional<Result<ZoneSignerPtr>> signer{};  ///< made from `opened`; null: signs no more
  std::vector<ZoneSigners::Known> waiting{};
  std::optional<bool> is_source_signed{};  ///< by others; of the newest source that came whole
  bool awaits_source = false;              ///< its folder has no keys, see OpenedKeys
  std::optional<KeyLayout> told_layout{};  ///< of the policy, last found not to be that of the keys
  std::uint64_t told_at = 0;            ///< signing time of the last line about unusable keys
  std::optional<SigningStage> stage{};  ///< the last one; none: the folder was not read yet
  std::uint64_t until = 0;              ///< when it is looked at again; 0: never
  /// The clock did not make the zone's newest signature doubtful, and goes on steadily since.
  mutable bool is_time_right = false;

  [[nodiscard]] bool is_open() const { return opened && *opened; }
  /// `now`: seconds since 1970; 0: nobody knows.
  [[nodiscard]] SigningState state(std::uint64_t now) const;
  /// Makes the signer that the keys and facts demand in `state`; an error if they cannot be used.
  void make_signer(const SigningState& state);
  /// Says in the log that the policy wants other keys, once for each policy: somebody may wait for
  /// them.
  void tell_layout();
  /// The keys that a reader of the folder is to find. `served` may be null.
  [[nodiscard]] WantedKeys wanted_keys(const zone::ZoneView& served) const;
};

/// That a policy wants other keys than a zone has, in one line; empty: it does not.
[[nodiscard]] std::string layout_note(const KeyLayout& wanted,
                                      const std::vector<dns::SigningKey>& keys);

}  // namespace pando::manager

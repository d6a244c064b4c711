#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "manager/commit/committer.h"
#include "manager/signing/keys/roll_keys.h"
#include "manager/signing/signature_look.h"
#include "manager/signing/signed_zones.h"

namespace pando::manager {

/// Leads zones whose keys follow others from step to step: it begins a step when its time has come,
/// and notes what looks at the zone have shown. The facts beside the keys have it all
/// (signing_facts.h). Lives on the commit thread.
class KeyRolls {
 public:
  using Done = SignedZones::Done;
  /// References outlive the object.
  KeyRolls(const Committer& committer, SignedZones& zones)
      : committer_(committer), zones_(zones) {}

  /// Makes new keys, which follow the zone's. kInvalid: the zone is not in a stage for that.
  void start(const dns::Name& zone, RolledKeys keys, Done done);
  /// The operator agrees to the next step, or wants none. kInvalid: no keys follow others.
  void agree(const dns::Name& zone, Done done) { set_word(zone, true, std::move(done)); }
  void hold(const dns::Name& zone, Done done) { set_word(zone, false, std::move(done)); }
  /// See restore_zone_key().
  void restore(const dns::Name& zone, std::uint16_t tag, Done done);

  static constexpr std::chrono::seconds kRetry{10};
  /// Tries again to end rolls that could not be ended, each kRetry; to be called regularly.
  void retry(std::chrono::steady_clock::time_point now);
  /// Begins the zone's next step if it is time to.
  void check(const dns::Name& zone);
  /// A look at a zone that `signer` has signed is over.
  void looked(const dns::Name& zone, const ZoneSignerPtr& signer, const SignatureLook& look);

 private:
  void set_word(const dns::Name& zone, bool is_agreed, Done done);
  void note(const dns::Name& zone, const KeyRoll& roll, const SignatureLook& look);
  using EditRoll = std::function<void(KeyRoll& roll)>;
  void edit(const dns::Name& zone, RollStep step, EditRoll edit, std::function<void()> then);
  void end(const dns::Name& zone);
  [[nodiscard]] std::string new_ds(const dns::Name& zone) const;

  const Committer& committer_;
  SignedZones& zones_;
  std::map<std::string, std::chrono::steady_clock::time_point> failed_;  // when to try again
  std::set<std::string> written_;  // zones whose facts are being written, by dns::folded_key()
};

[[nodiscard]] std::string_view to_text(RollWait wait) noexcept;

}  // namespace pando::manager

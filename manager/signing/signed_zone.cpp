#include "manager/signing/signed_zone.h"

#include "manager/signing/keys/roll_keys.h"

namespace pando::manager {

namespace {

/// The zone's keys, with the uses that they have at the present step.
zone::SigningKeys used_keys(const OpenedKeys& opened) {
  const zone::SigningKeys& keys = *opened.keys;
  if (opened.facts.roll.step == RollStep::kNone) return keys;
  return keys.rolling(uses_of(folder_keys(keys.all()), opened.facts.roll));
}

}  // namespace

SigningState SignedZone::state(std::uint64_t now) const {
  if (!is_open()) return {};
  const OpenedKeys& known = **opened;
  std::vector<FolderKey> keys;
  if (known.keys && known.facts.roll.step != RollStep::kNone) keys = folder_keys(known.keys->all());
  return signing_state(known.facts, keys, waits, now);
}

void SignedZone::make_signer(const SigningState& state) {
  if (!*opened) {
    signer = fail(opened->error().code, "{}", opened->error().text);
    return;
  }
  const OpenedKeys& known = **opened;
  ZoneSigner::Options options = signing;
  options.parent_request = state.parent_request;
  if (!known.keys || !state.wants_signatures())
    signer = ZoneSignerPtr();
  else
    signer = std::make_shared<const ZoneSigner>(name, used_keys(known), options);
}

WantedKeys SignedZone::wanted_keys(const zone::ZoneView& served) const {
  const bool is_signed = served && served.loaded() && served.denial() != zone::Denial::kUnsigned;
  return {name, layout, is_signed, may_make_key};
}

}  // namespace pando::manager

#include "manager/signing/signed_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dns/mnemonics.h"
#include "ipc/log.h"
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

std::string layout_note(const KeyLayout& wanted, const std::vector<dns::SigningKey>& keys) {
  const auto has_kind = [&keys](bool is_sep) {
    return std::ranges::any_of(keys, [=](const auto& key) { return key.is_sep() == is_sep; });
  };
  const bool has_algorithm = std::ranges::all_of(
      keys, [&wanted](const auto& key) { return key.algorithm() == wanted.algorithm; });
  // Of the usual layout, one CSK, nobody knows whether it was meant: keys may come from elsewhere.
  const bool has_layout = !wanted.is_split || (has_kind(true) && has_kind(false));
  if (has_algorithm && has_layout) return {};
  return fmt::format("the policy wants {}, {}: the zone keeps its keys until 'pandoctl dnssec roll'",
                     wanted.is_split ? "a KSK and a ZSK" : "a CSK",
                     dns::mnemonic_of(dns::kDnssecAlgorithms, wanted.algorithm));
}

void SignedZone::tell_layout() {
  std::string text;
  if (is_open() && (*opened)->keys && (*opened)->facts.roll.step == RollStep::kNone)
    text = layout_note(layout, (*opened)->keys->all());
  const auto before =
      std::exchange(told_layout, text.empty() ? std::nullopt : std::optional(layout));
  if (!text.empty() && before != layout)
    log::warning("signing_keys_kept", "zone", dns::to_text(name), "text", text);
}

WantedKeys SignedZone::wanted_keys(const zone::ZoneView& served) const {
  const bool is_served = served && served.loaded();
  const bool is_signed = has_signers_records(served) || is_source_signed.value_or(false);
  return {name, layout, is_signed, may_make_key, is_served || is_source_signed};
}

}  // namespace pando::manager

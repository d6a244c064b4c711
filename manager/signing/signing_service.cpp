#include "manager/signing/signing_service.h"

#include <utility>

namespace pando::manager {

SigningService::SigningService(Parts parts, SigningClock::Sources clocks, Hooks hooks)
    : hooks_(std::move(hooks)),
      zones_(parts.io, parts.background, parts.files, parts.committer, std::move(clocks)),
      watch_(parts.store, parts.committer, zones_),
      rolls_(parts.committer, zones_),
      parent_(parts.io, parts.network, parts.committer, zones_),
      whole_(parts.io, parts.network.builders(), parts.store, parts.slots, parts.committer,
             parts.road, zones_, hooks_.holds, [this](const dns::Name& zone) { whole_is_done(zone); }),
      renewal_(parts.io, parts.background, parts.slots, parts.committer, parts.road, zones_,
               [this](const dns::Name& zone, const ZoneSignerPtr& signer,
                      const SignatureLook& look) {
                 watch_.looked(zone, signer, look);
                 rolls_.looked(zone, signer, look);
                 parent_.check_zone(zone);
               }) {
  parts.road.sign_by(zones_);
  parts.road.hold_updates_by(hooks_.holds);
  zones_.on_ready([this](const dns::Name& zone) { ready(zone); },
                  [this](const dns::Name& zone, std::uint64_t refresh) {
                    watch_.keys_unusable(zone, refresh);
                  });
}

void SigningService::check(std::chrono::steady_clock::time_point now) {
  zones_.check(now);
  whole_.retry(now);
  renewal_.check(now);
  watch_.retry(now);
  rolls_.retry(now);
  parent_.check(now);
}

void SigningService::published(const dns::Name& zone, bool is_whole) {
  if (!zones_.has(zone)) return;
  whole_.check(zone);
  if (is_whole)
    renewal_.check_zone(zone);
  else
    renewal_.published(zone);
}

/// A zone that is served, and has a policy since then, is signed.
void SigningService::ready(const dns::Name& zone) {
  whole_.check(zone);
  renewal_.check_zone(zone);
  rolls_.check(zone);
  parent_.check_zone(zone);
  hooks_.signed_anew(zone);
}

void SigningService::whole_is_done(const dns::Name& zone) {
  watch_.was_unsigned(zone);
  hooks_.signed_anew(zone);
}

std::string SigningService::problem(dns::NameView zone) const {
  std::string text = zones_.problem(zone);
  if (text.empty()) text = whole_.problem(zone);
  if (text.empty()) text = watch_.problem(zone);
  return text;
}

}  // namespace pando::manager

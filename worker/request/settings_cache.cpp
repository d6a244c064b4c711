#include "worker/request/settings_cache.h"

namespace pando::worker {

namespace {

bool matches_everybody(const zone::Acl& acl) {
  if (acl.empty()) return false;
  const zone::AclRule& first = acl.front();
  const bool any_address = !first.address || first.address->length == 0;
  return !first.deny && !first.key && !first.tls && any_address;
}

/// True for "0.0.0.0/0" and "::/0" side by side: the configuration's way to admit everybody.
bool both_families(const zone::Acl& acl) {
  bool v4 = false;
  bool v6 = false;
  for (const auto& rule : acl) {
    if (rule.deny || rule.key || rule.tls || !rule.address) return false;
    v6 = v6 || rule.address->length == 0;
    v4 = v4 || (rule.address->length == 96 && rule.address->address.is_v4());
    if (v4 && v6) return true;
  }
  return false;
}

}  // namespace

const zone::ServerSettings& SettingsCache::server(const zone::StoreView& view) {
  const std::uint64_t tag = view.server_settings_tag();
  if (server_known_ && tag == server_tag_) return server_;
  if (auto decoded = zone::decode_server_settings(view.server_settings_bytes())) {
    server_ = std::move(*decoded);
    server_tag_ = tag;
    server_known_ = true;
  }
  return server_;
}

/// zone() for another zone's rules than the last ones.
const DecodedZoneSettings* SettingsCache::other_zone(const zone::ZoneView& zone) {
  const std::uint64_t tag = zone.settings_tag();
  auto found = zones_.find(tag);
  if (found == zones_.end()) {
    auto decoded = zone::decode_zone_settings(zone.settings_bytes());
    if (!decoded) return nullptr;
    auto entry = std::make_unique<DecodedZoneSettings>();
    entry->settings = std::move(*decoded);
    entry->everybody_may_query = matches_everybody(entry->settings.allow_query) ||
                                 both_families(entry->settings.allow_query);
    if (zones_.size() >= kMaxEntries) zones_.clear();
    found = zones_.emplace(tag, std::move(entry)).first;
  }
  last_tag_ = tag;
  last_ = found->second.get();
  return last_;
}

}  // namespace pando::worker

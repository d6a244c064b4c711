#include "zone/draft/draft.h"

#include "zone/draft/built.h"
#include "zone/draft/entry_past.h"
#include "zone/draft/zone_edit.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/stored_settings.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

void set_source(ZoneEntry& entry, const ZoneFileInfo& source) noexcept {
  entry.source_mtime_ns = source.file_mtime_ns;
  entry.source_bytes = source.file_bytes;
  entry.source_hash = source.hash;
  entry.source_stamp = source.stamp;
}

/// Discards the zone's data and history. Dismantling records later does not follow references into
/// shared sets, so their pages are released here.
Status discard_data(DraftCore& core, dns::NameView apex, ZoneEntry& entry) {
  if (auto released = release_shared(core.data(), entry.shared); !released) return released;
  if (auto dropped = EntryPast(core, apex, entry).drop_history(); !dropped) return dropped;
  std::vector<std::uint32_t> refs;
  for (const std::uint32_t ref : {entry.apex, entry.names, entry.nsec3})
    if (ref != 0) refs.push_back(ref);
  return refs.empty() ? Status() : core.discard_blocks(refs);
}

/// Archives the zone's data if snapshots need them, else discards them.
Status retire_data(DraftCore& core, dns::NameView apex, ZoneEntry& entry) {
  if (auto archived = EntryPast(core, apex, entry).archive_data(); !archived) return archived;
  return discard_data(core, apex, entry);
}

}  // namespace

Draft::Draft(shm::Transaction& transaction, shm::Ref<> root, std::uint64_t version)
    : Draft(transaction, transaction, root, version) {}

Draft::Draft(shm::Transaction& data, shm::Transaction& table, shm::Ref<> root,
             std::uint64_t version)
    : core_(data, table, root, version) {}

Status Draft::put_server_settings(const ServerSettings& settings) {
  const Bytes bytes = encode(settings);
  const std::uint64_t hash = tag_of(bytes);
  if (view().server_settings_tag() == hash) return {};
  auto root = core_.writable_root();
  if (!root) return pass(root);
  auto block = write_bytes(core_.table(), bytes);
  if (!block) return pass(block);
  release_bytes(core_.table(), (*root)->server_settings, (*root)->server_settings_bytes);
  (*root)->server_settings = *block;
  (*root)->server_settings_bytes = static_cast<std::uint32_t>(bytes.size());
  (*root)->server_settings_hash = hash;
  return {};
}

// Settings are shared: one block for all zones whose settings are equal (mostly a template's).
Status Draft::share_settings(const EncodedSettings& settings, std::uint64_t before) {
  auto root = core_.writable_root();
  if (!root) return pass(root);
  SettingsEditor editor(core_.table(), (*root)->settings);
  if (auto added = editor.add_zone(settings.octets, settings.tag); !added) return added;
  if (before != 0)
    if (auto dropped = editor.drop_zone(before); !dropped) return dropped;
  (*root)->settings = editor.root();
  return {};
}

Status Draft::drop_settings(std::uint64_t tag) {
  auto root = core_.writable_root();
  if (!root) return pass(root);
  SettingsEditor editor(core_.table(), (*root)->settings);
  if (auto dropped = editor.drop_zone(tag); !dropped) return dropped;
  (*root)->settings = editor.root();
  return {};
}

Status Draft::put_zone_settings(dns::NameView apex, const EncodedSettings& settings,
                                std::uint32_t side_index) {
  const std::uint64_t hash = settings.tag;
  const ZoneEntry* old = core_.entry_at(apex);
  if (old != nullptr && old->settings_hash == hash && old->side_index == side_index) return {};
  ZoneEntry entry{};
  if (old != nullptr) entry = *old;
  entry.name_octets = static_cast<std::uint8_t>(apex.size() - 1);
  entry.side_index = side_index;
  if (entry.settings_hash != hash) {
    if (auto shared = share_settings(settings, entry.settings_hash); !shared) return shared;
    entry.settings_hash = hash;
  }
  return core_.put_entry(entry, apex);
}

Status Draft::put_zone(dns::NameView apex, const BuiltZone& built, const ZoneFileInfo& source) {
  auto entry = core_.entry_of(apex);
  if (!entry) return pass(entry);
  if (auto retired = retire_data(core_, apex, *entry); !retired) return retired;
  entry->flags = static_cast<std::uint8_t>(ZoneEntry::kLoaded | built.flags);
  entry->apex = built.apex;
  entry->names = built.names;
  entry->nsec3 = built.nsec3;
  entry->shared = built.shared;
  entry->serial = built.serial;
  entry->primary_serial = 0;
  entry->record_count = built.record_count;
  entry->name_count = built.name_count;
  entry->data_units = built.data_units;
  core_.mark_changed(*entry);
  set_source(*entry, source);
  return core_.put_entry(*entry, apex, &built.spelling);
}

Status Draft::put_zone_source(dns::NameView apex, const ZoneFileInfo& source) {
  auto entry = core_.entry_of(apex);
  if (!entry) return pass(entry);
  set_source(*entry, source);
  return core_.put_entry(*entry, apex);
}

Status Draft::put_primary_serial(dns::NameView apex, std::optional<dns::Serial> serial) {
  auto entry = core_.entry_of(apex);
  if (!entry) return pass(entry);
  const auto others = entry->flags & ~ZoneEntry::kPrimarySerial;
  entry->flags = static_cast<std::uint8_t>(others | (serial ? ZoneEntry::kPrimarySerial : 0));
  entry->primary_serial = serial ? serial->value : 0;
  return core_.put_entry(*entry, apex);
}

Status Draft::put_changeset(const Changeset& changeset, dns::Serial from, dns::Serial to,
                            const DataLimits& limits) {
  auto entry = core_.entry_of(changeset.zone);
  if (!entry) return pass(entry);
  EntryPast past(core_, changeset.zone, *entry);
  if (auto done = past.append({from, to, changeset, 0, 0}, limits); !done) return done;
  return core_.put_entry(*entry, changeset.zone);
}

Status Draft::unload_zone(dns::NameView apex) {
  auto entry = core_.entry_of(apex);
  if (!entry) return pass(entry);
  if (auto retired = retire_data(core_, apex, *entry); !retired) return retired;
  entry->flags = 0;
  entry->apex = entry->names = entry->nsec3 = entry->shared = entry->serial = 0;
  entry->record_count = entry->name_count = entry->data_units = entry->primary_serial = 0;
  core_.mark_changed(*entry);
  set_source(*entry, {});
  return core_.put_entry(*entry, apex);
}

Status Draft::remove_zone(dns::NameView apex) {
  auto entry = core_.entry_of(apex);
  if (!entry) return pass(entry);
  if (auto removed = EntryPast(core_, apex, *entry).remove_all_snapshots(); !removed)
    return removed;
  if (auto discarded = discard_data(core_, apex, *entry); !discarded) return discarded;
  if (auto dropped = drop_settings(entry->settings_hash); !dropped) return dropped;
  return core_.remove_entry(apex);
}

Result<Applied> Draft::apply(const Changeset& changes, const DataLimits& limits) {
  return ZoneEdit(core_, changes, limits, stop_).run();
}

}  // namespace pando::zone

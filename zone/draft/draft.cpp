#include "zone/draft/draft.h"

#include <algorithm>
#include <cstring>

#include "zone/draft/built.h"
#include "zone/history/history.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/stored_settings.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

ByteView apex_labels(dns::NameView apex) { return apex.bytes().first(apex.size() - 1); }

void set_source(ZoneEntry& entry, const ZoneFileInfo& source) noexcept {
  entry.source_mtime_ns = source.file_mtime_ns;
  entry.source_bytes = source.file_bytes;
  entry.source_hash = source.hash;
  entry.source_stamp = source.stamp;
}

}  // namespace

Draft::Draft(shm::Transaction& transaction, shm::Ref<> root, std::uint64_t version)
    : Draft(transaction, transaction, root, version) {}

Draft::Draft(shm::Transaction& transaction, shm::Transaction& table, shm::Ref<> root,
             std::uint64_t version)
    : transaction_(transaction), table_(table), root_(root), version_(version) {}

StoreView Draft::view() const noexcept { return StoreView(table_.window(), root_, version_); }

const ZoneEntry* Draft::entry_at(dns::NameView apex) const noexcept {
  return view().zone_at(apex).entry_;
}

Result<RootData*> Draft::writable_root() {
  if (root_ && table_.is_fresh(root_)) return table_.writable(root_.as<RootData>());
  const RootData* old = nullptr;
  if (root_) {
    old = table_.window().at(root_.as<RootData>());
    if (old == nullptr) return fail(Errc::kCorrupt, "root of the store is damaged");
  }
  auto ref = table_.allocate(sizeof(RootData));
  if (!ref) return pass(ref);
  auto* root = table_.writable(ref->as<RootData>());
  *root = old == nullptr ? RootData{} : *old;
  if (root_) table_.release(root_, sizeof(RootData));
  root_ = *ref;
  return root;
}

Status Draft::put_server_settings(const ServerSettings& settings) {
  const Bytes bytes = encode(settings);
  const std::uint64_t hash = tag_of(bytes);
  if (view().server_settings_tag() == hash) return {};
  auto root = writable_root();
  if (!root) return pass(root);
  auto block = write_bytes(table_, bytes);
  if (!block) return pass(block);
  release_bytes(table_, (*root)->server_settings, (*root)->server_settings_bytes);
  (*root)->server_settings = *block;
  (*root)->server_settings_bytes = static_cast<std::uint32_t>(bytes.size());
  (*root)->server_settings_hash = hash;
  return {};
}

// Settings are shared: one block for all zones whose settings are equal (mostly a template's).
Status Draft::share_settings(const EncodedSettings& settings, std::uint64_t before) {
  auto root = writable_root();
  if (!root) return pass(root);
  SettingsEditor editor(table_, (*root)->settings);
  if (auto added = editor.add_zone(settings.octets, settings.tag); !added) return added;
  if (before != 0)
    if (auto dropped = editor.drop_zone(before); !dropped) return dropped;
  (*root)->settings = editor.root();
  return {};
}

Status Draft::drop_settings(std::uint64_t tag) {
  auto root = writable_root();
  if (!root) return pass(root);
  SettingsEditor editor(table_, (*root)->settings);
  if (auto dropped = editor.drop_zone(tag); !dropped) return dropped;
  (*root)->settings = editor.root();
  return {};
}

Status Draft::put_entry(const ZoneEntry& entry, dns::NameView apex, const dns::Name* spelling) {
  const LeafBlock old = view().zones().find(TrieKey(apex_labels(apex)), apex_labels(apex));
  if (old && table_.is_fresh(old.ref)) {
    auto* block = table_.writable(old.ref.as<ZoneEntry>());
    *block = entry;
    if (spelling != nullptr) std::memcpy(block + 1, spelling->data(), apex.size());
    return {};
  }
  auto ref = table_.allocate(entry.octets());
  if (!ref) return pass(ref);
  auto* block = table_.writable(ref->as<ZoneEntry>());
  *block = entry;
  // A replaced entry keeps its spelling of the name: answers do not change case with an update.
  const std::uint8_t* name = old ? old.data + sizeof(ZoneEntry) : apex.data();
  if (spelling != nullptr) name = spelling->data();
  std::memcpy(block + 1, name, apex.size());
  auto root = writable_root();
  if (!root) return pass(root);
  auto zones =
      trie_put(table_, (*root)->zones, LeafKind::kZone, TrieKey(apex_labels(apex)), ref->units);
  if (!zones) return pass(zones);
  if (old)
    table_.release(old.ref, entry.octets());
  else
    ++(*root)->zone_count;
  (*root)->zones = *zones;
  return {};
}

Status Draft::put_zone_settings(dns::NameView apex, const EncodedSettings& settings,
                                std::uint32_t side_index) {
  const std::uint64_t hash = settings.tag;
  const ZoneEntry* old = entry_at(apex);
  if (old != nullptr && old->settings_hash == hash && old->side_index == side_index) return {};
  ZoneEntry entry{};
  if (old != nullptr) entry = *old;
  entry.name_octets = static_cast<std::uint8_t>(apex.size() - 1);
  entry.side_index = side_index;
  if (entry.settings_hash != hash) {
    if (auto shared = share_settings(settings, entry.settings_hash); !shared) return shared;
    entry.settings_hash = hash;
  }
  return put_entry(entry, apex);
}

Status Draft::put_zone(dns::NameView apex, const BuiltZone& built,
                       const ZoneFileInfo& source) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  ZoneEntry entry = *old;
  if (auto archived = archive_data(entry, apex); !archived) return archived;
  if (auto discarded = discard(entry); !discarded) return discarded;
  entry.flags = static_cast<std::uint8_t>(ZoneEntry::kLoaded | built.flags);
  entry.apex = built.apex;
  entry.names = built.names;
  entry.nsec3 = built.nsec3;
  entry.shared = built.shared;
  entry.serial = built.serial;
  entry.record_count = built.record_count;
  entry.name_count = built.name_count;
  entry.data_units = built.data_units;
  mark_changed(entry, version_, time_);
  set_source(entry, source);
  return put_entry(entry, apex, &built.spelling);
}

Status Draft::put_zone_source(dns::NameView apex, const ZoneFileInfo& source) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  ZoneEntry entry = *old;
  set_source(entry, source);
  return put_entry(entry, apex);
}

Status Draft::unload_zone(dns::NameView apex) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  ZoneEntry entry = *old;
  if (auto archived = archive_data(entry, apex); !archived) return archived;
  if (auto discarded = discard(entry); !discarded) return discarded;
  entry.flags = 0;
  entry.apex = entry.names = entry.nsec3 = entry.shared = entry.serial = 0;
  entry.record_count = entry.name_count = entry.data_units = 0;
  mark_changed(entry, version_, time_);
  set_source(entry, {});
  return put_entry(entry, apex);
}

Status Draft::remove_zone(dns::NameView apex) {
  const LeafBlock leaf = view().zones().find(TrieKey(apex_labels(apex)), apex_labels(apex));
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  ZoneEntry entry = *old;
  if (auto released = release_snapshots(entry); !released) return released;
  if (auto discarded = discard(entry); !discarded) return discarded;
  if (auto dropped = drop_settings(entry.settings_hash); !dropped) return dropped;
  auto root = writable_root();
  if (!root) return pass(root);
  auto zones = trie_remove(table_, (*root)->zones, LeafKind::kZone, TrieKey(apex_labels(apex)));
  if (!zones) return pass(zones);
  table_.release(leaf.ref, entry.octets());
  (*root)->zones = *zones;
  --(*root)->zone_count;
  return {};
}

}  // namespace pando::zone

#include "zone/draft/draft_core.h"

#include <cstring>

#include "zone/draft/discarded_blocks.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

ByteView apex_labels(dns::NameView apex) { return apex.bytes().first(apex.size() - 1); }

}  // namespace

Result<RootData*> DraftCore::writable_root() {
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

const ZoneEntry* DraftCore::entry_at(dns::NameView apex) const noexcept {
  return view().zone_at(apex).entry_;
}

Result<ZoneEntry> DraftCore::entry_of(dns::NameView apex) const {
  const ZoneEntry* entry = entry_at(apex);
  if (entry == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  return *entry;
}

Status DraftCore::put_entry(const ZoneEntry& entry, dns::NameView apex, const dns::Name* spelling) {
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

Status DraftCore::remove_entry(dns::NameView apex) {
  const TrieKey key(apex_labels(apex));
  const LeafBlock leaf = view().zones().find(key, apex_labels(apex));
  const std::size_t octets = entry_at(apex)->octets();
  auto root = writable_root();
  if (!root) return pass(root);
  auto zones = trie_remove(table_, (*root)->zones, LeafKind::kZone, key);
  if (!zones) return pass(zones);
  table_.release(leaf.ref, octets);
  (*root)->zones = *zones;
  --(*root)->zone_count;
  return {};
}

Status DraftCore::discard_blocks(const std::vector<std::uint32_t>& refs) {
  auto root = writable_root();
  if (!root) return pass(root);
  auto list = write_discarded(table_, refs, (*root)->discarded);
  if (!list) return pass(list);
  (*root)->discarded = *list;
  return {};
}

void DraftCore::mark_changed(ZoneEntry& entry) const noexcept {
  entry.data_version = version_;
  entry.changed_at = time_;
}

}  // namespace pando::zone

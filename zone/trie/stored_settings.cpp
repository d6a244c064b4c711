#include "zone/trie/stored_settings.h"

#include <algorithm>
#include <cstring>

#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

LeafBlock find_entry(const shm::Window& window, std::uint32_t root,
                     const SettingsKey& key) noexcept {
  return Trie(window, root, LeafKind::kRecord).find(TrieKey(key.labels()), key.labels());
}

tl::unexpected<Error> damaged_settings() { return fail(Errc::kCorrupt, "settings of zones are damaged"); }

/// A copy of the entry; the old one is released.
Result<std::uint32_t> copy_entry(shm::Transaction& transaction, std::uint32_t ref,
                                 const SettingsEntry& old) {
  auto copy = transaction.allocate(sizeof(SettingsEntry));
  if (!copy) return pass(copy);
  *transaction.writable(copy->as<SettingsEntry>()) = old;
  transaction.release(shm::Ref<>{ref}, sizeof(SettingsEntry));
  return copy->units;
}

}  // namespace

Result<std::uint32_t> write_bytes(shm::Transaction& transaction, ByteView bytes) {
  auto ref = transaction.allocate(std::max<std::size_t>(bytes.size(), 1));
  if (!ref) return pass(ref);
  if (!bytes.empty()) std::memcpy(transaction.writable(*ref), bytes.data(), bytes.size());
  return ref->units;
}

Result<std::uint32_t> move_bytes(shm::Transaction& transaction, std::uint32_t ref,
                                 std::size_t octets) {
  if (ref == 0 || !transaction.in_victim(shm::Ref<>{ref})) return ref;
  const std::size_t size = std::max<std::size_t>(octets, 1);
  const auto* old = transaction.window().at(shm::Ref<>{ref}, size);
  if (old == nullptr) return fail(Errc::kCorrupt, "block is damaged");
  auto copy = transaction.allocate(size);
  if (!copy) return pass(copy);
  std::memcpy(transaction.writable(*copy), old, size);
  transaction.release(shm::Ref<>{ref}, size);
  return copy->units;
}

void release_bytes(shm::Transaction& transaction, std::uint32_t ref, std::size_t octets) {
  if (ref != 0) transaction.release(shm::Ref<>{ref}, std::max<std::size_t>(octets, 1));
}

const SettingsEntry* settings_entry(shm::Window window, std::uint32_t ref) noexcept {
  const auto* entry = window.at(shm::Ref<SettingsEntry>{ref});
  return entry != nullptr && entry->key_octets == SettingsKey::kOctets ? entry : nullptr;
}

std::uint64_t settings_tag(const SettingsEntry& entry) noexcept {
  std::uint64_t tag = 0;
  for (std::size_t i = 1; i < SettingsKey::kOctets; ++i) {
    const std::size_t digit = kHexDigits.find(static_cast<char>(entry.key[i]));
    if (digit == kHexDigits.npos) return 0;
    tag = tag << 4 | digit;
  }
  return tag;
}

ByteView find_settings(shm::Window window, std::uint32_t root, std::uint64_t tag) noexcept {
  const LeafBlock leaf = find_entry(window, root, SettingsKey(tag));
  const SettingsEntry* entry = leaf ? settings_entry(window, leaf.ref.units) : nullptr;
  if (entry == nullptr) return {};
  const auto* block = window.at(shm::Ref<>{entry->block}, entry->octets);
  if (block == nullptr) return {};
  return {reinterpret_cast<const std::uint8_t*>(block), entry->octets};
}

Status SettingsEditor::add_zone(ByteView octets, std::uint64_t tag) {
  const SettingsKey key(tag);
  if (const LeafBlock leaf = find_entry(transaction_.window(), root_, key)) {
    auto entry = writable_entry(leaf.ref.units, key);
    if (entry) ++(*entry)->zones;
    return entry ? Status() : pass(entry);
  }
  auto block = write_bytes(transaction_, octets);
  if (!block) return pass(block);
  auto ref = transaction_.allocate(sizeof(SettingsEntry));
  if (!ref) return pass(ref);
  auto* entry = transaction_.writable(ref->as<SettingsEntry>());
  *entry = {};
  entry->key_octets = SettingsKey::kOctets;
  std::copy(key.labels().begin(), key.labels().end(), entry->key);
  entry->zones = 1;
  entry->block = *block;
  entry->octets = static_cast<std::uint32_t>(octets.size());
  return put_leaf(ref->units, key);
}

Status SettingsEditor::drop_zone(std::uint64_t tag) {
  const SettingsKey key(tag);
  const LeafBlock leaf = find_entry(transaction_.window(), root_, key);
  const SettingsEntry* old = leaf ? settings_entry(transaction_.window(), leaf.ref.units) : nullptr;
  if (old == nullptr) return damaged_settings();
  if (old->zones > 1) {
    auto entry = writable_entry(leaf.ref.units, key);
    if (entry) --(*entry)->zones;
    return entry ? Status() : pass(entry);
  }
  auto root = trie_remove(transaction_, root_, LeafKind::kRecord, TrieKey(key.labels()));
  if (!root) return pass(root);
  root_ = *root;
  release_bytes(transaction_, old->block, old->octets);
  transaction_.release(leaf.ref, sizeof(SettingsEntry));
  return {};
}

/// The entry at `ref` for writing: a copy unless this transaction wrote the entry.
Result<SettingsEntry*> SettingsEditor::writable_entry(std::uint32_t ref, const SettingsKey& key) {
  const SettingsEntry* old = settings_entry(transaction_.window(), ref);
  if (old == nullptr) return damaged_settings();
  if (!transaction_.is_fresh(shm::Ref<>{ref})) {
    auto copy = copy_entry(transaction_, ref, *old);
    if (!copy) return pass(copy);
    ref = *copy;
    if (auto put = put_leaf(ref, key); !put) return pass(put);
  }
  return transaction_.writable(shm::Ref<SettingsEntry>{ref});
}

Status SettingsEditor::put_leaf(std::uint32_t ref, const SettingsKey& key) {
  auto root = trie_put(transaction_, root_, LeafKind::kRecord, TrieKey(key.labels()), ref);
  if (!root) return pass(root);
  root_ = *root;
  return {};
}

Result<std::uint32_t> relocate_settings(shm::Transaction& transaction, std::uint32_t ref) {
  const SettingsEntry* old = settings_entry(transaction.window(), ref);
  if (old == nullptr) return damaged_settings();
  SettingsEntry entry = *old;
  auto block = move_bytes(transaction, old->block, old->octets);
  if (!block) return block.error().code == Errc::kCorrupt ? damaged_settings() : pass(block);
  if (*block == entry.block && !transaction.in_victim(shm::Ref<>{ref})) return ref;
  entry.block = *block;
  return copy_entry(transaction, ref, entry);
}

}  // namespace pando::zone

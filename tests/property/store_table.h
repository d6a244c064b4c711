#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "shm/layout.h"
#include "shm/store.h"

/// A small persistent table on top of the store, for tests: 4,096 keys with values of any size, in
/// three levels of blocks, copied on write. Its root holds a sum over all values, so that whoever
/// reads a version can tell whether it is whole.
namespace pando::shm::test {

inline constexpr std::uint32_t kFanout = 64;
inline constexpr std::uint32_t kKeys = kFanout * kFanout;

struct TableRoot {
  std::uint64_t sum;  // of hash_of(key, value) over all values
  std::uint64_t values;
  std::array<std::uint32_t, kFanout> inner;
};
struct TableInner {
  std::array<std::uint32_t, kFanout> leaf;
};
struct TableLeaf {
  std::uint32_t key;
  std::uint32_t octets;  // of the value, which follows
};

inline std::uint64_t hash_of(std::uint32_t key, const std::byte* value, std::size_t octets) {
  std::uint64_t hash = (key + 1) * 0x9E3779B97F4A7C15U ^ octets;
  for (std::size_t i = 0; i + 8 <= octets; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, value + i, 8);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93U;
    hash ^= hash >> 32;
  }
  return hash;
}

/// What a walk over one version found.
struct Found {
  std::uint64_t sum = 0;
  std::uint64_t values = 0;
  std::uint64_t octets = 0;  // of all blocks
};

/// Walks the version; nothing when a block is out of reach or contradicts the root's sum.
inline std::optional<Found> walk(const Window& window, Ref<> ref) {
  Found found;
  if (!ref) return found;
  const auto* root = window.at(ref.as<TableRoot>());
  if (root == nullptr) return std::nullopt;
  found.octets = block_bytes(sizeof(TableRoot));
  for (std::uint32_t i = 0; i < kFanout; ++i) {
    if (root->inner[i] == 0) continue;
    const auto* inner = window.at(Ref<TableInner>{root->inner[i]});
    if (inner == nullptr) return std::nullopt;
    found.octets += block_bytes(sizeof(TableInner));
    for (std::uint32_t j = 0; j < kFanout; ++j) {
      if (inner->leaf[j] == 0) continue;
      const Ref<TableLeaf> at{inner->leaf[j]};
      const auto* leaf = window.at(at);
      if (leaf == nullptr || leaf->key != i * kFanout + j ||
          window.at(at, sizeof *leaf + leaf->octets) == nullptr)
        return std::nullopt;
      found.sum += hash_of(leaf->key, reinterpret_cast<const std::byte*>(leaf + 1), leaf->octets);
      found.octets += block_bytes(sizeof *leaf + leaf->octets);
      ++found.values;
    }
  }
  if (found.sum != root->sum || found.values != root->values) return std::nullopt;
  return found;
}

/// The octets that a store's statistics should count for a version: its blocks and its root block.
inline std::uint64_t live_bytes_of(const Store& store, const Found& found) {
  const auto* header = reinterpret_cast<const Header*>(store.window().base());
  const Ref<RootBlock> root{header->publication.root.load()};
  return found.octets + root_block_at(store.window(), root)->bytes;
}

/// The writer's side: changes in one transaction.
class Table {
 public:
  Table(Transaction& transaction, Ref<> root) : transaction_(transaction), root_(root) {}

  [[nodiscard]] Ref<> root() const { return root_; }

  /// A value of `octets` octets (a multiple of 8) made from `seed`. False when the store is full;
  /// the transaction must then be dropped.
  bool put(std::uint32_t key, std::size_t octets, std::uint64_t seed) {
    const auto leaf = transaction_.allocate(sizeof(TableLeaf) + octets);
    if (!leaf) return false;
    auto* made = transaction_.writable(leaf->as<TableLeaf>());
    *made = {key, static_cast<std::uint32_t>(octets)};
    auto* value = reinterpret_cast<std::byte*>(made + 1);
    for (std::size_t i = 0; i + 8 <= octets; i += 8) {
      const std::uint64_t word = seed + i;
      std::memcpy(value + i, &word, 8);
    }
    return replace(key, *leaf);
  }
  bool erase(std::uint32_t key) { return replace(key, Ref<>{}); }

  /// Copies what lies in victim chunks.
  bool compact() {
    if (!root_) return true;
    if (!own_root()) return false;
    for (std::uint32_t key = 0; key < kKeys; ++key) {
      const Ref<> leaf = leaf_of(key);
      if (!leaf || !transaction_.in_victim(leaf)) continue;
      const std::size_t size = size_of(leaf);
      const auto copy = transaction_.allocate(size);
      if (!copy) return false;
      std::memcpy(transaction_.writable(*copy), transaction_.window().at(leaf, size), size);
      if (!replace(key, *copy)) return false;
    }
    for (std::uint32_t i = 0; i < kFanout; ++i)
      if (in_root().inner[i] != 0 && transaction_.in_victim(Ref<>{in_root().inner[i]}) &&
          !own_inner(i))
        return false;
    return true;
  }

 private:
  template <class T>
  bool own(std::uint32_t& units) {
    Ref<T> old{units};
    if (old && transaction_.is_fresh(old.template as<std::byte>())) return true;
    const auto fresh = transaction_.allocate(sizeof(T));
    if (!fresh) return false;
    T* block = transaction_.writable(fresh->template as<T>());
    if (old) {
      std::memcpy(block, transaction_.window().at(old), sizeof(T));
      transaction_.release(old.template as<std::byte>(), sizeof(T));
    } else {
      std::memset(block, 0, sizeof(T));
    }
    units = fresh->units;
    return true;
  }
  bool own_root() { return own<TableRoot>(root_.units); }
  bool own_inner(std::uint32_t i) { return own<TableInner>(in_root().inner[i]); }
  TableRoot& in_root() { return *transaction_.writable(root_.as<TableRoot>()); }

  Ref<> leaf_of(std::uint32_t key) {
    const std::uint32_t inner = in_root().inner[key / kFanout];
    if (inner == 0) return {};
    return Ref<>{transaction_.window().at(Ref<TableInner>{inner})->leaf[key % kFanout]};
  }
  std::size_t size_of(Ref<> leaf) {
    return sizeof(TableLeaf) + transaction_.window().at(leaf.as<TableLeaf>())->octets;
  }
  std::uint64_t hash_at(Ref<> leaf) {
    const auto* block = transaction_.window().at(leaf.as<TableLeaf>());
    return hash_of(block->key, reinterpret_cast<const std::byte*>(block + 1), block->octets);
  }

  bool replace(std::uint32_t key, Ref<> fresh) {
    if (!own_root()) return false;
    const Ref<> old = leaf_of(key);
    if (!old && !fresh) return true;
    if (!own_inner(key / kFanout)) return false;
    if (old) {
      in_root().sum -= hash_at(old);
      --in_root().values;
      transaction_.release(old, size_of(old));
    }
    if (fresh) {
      in_root().sum += hash_at(fresh);
      ++in_root().values;
    }
    transaction_.writable(Ref<TableInner>{in_root().inner[key / kFanout]})->leaf[key % kFanout] =
        fresh.units;
    return true;
  }

  Transaction& transaction_;
  Ref<> root_;
};

}  // namespace pando::shm::test

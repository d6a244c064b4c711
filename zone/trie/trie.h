#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "shm/map/ref.h"
#include "zone/trie/key.h"

/// The copy-on-write qp-trie (a radix tree on key symbols with packed children): reading.
/// Works on any block of the store whose first octet's bit 0 is clear as a leaf; a leaf tells its
/// name (labels without the root octet) through leaf_labels(). All reads are bounds-checked and all
/// descents are bounded, because branch offsets must grow.
namespace pando::zone {

struct Branch;

/// A leaf block and how far it may be read.
struct LeafBlock {
  const std::uint8_t* data = nullptr;
  shm::Ref<> ref;
  explicit operator bool() const noexcept { return data != nullptr; }
};

/// Owner labels of a leaf of either kind; empty view with null data when the block is damaged.
enum class LeafKind : std::uint8_t { kRecord, kZone };

/// What a descent found.
struct TrieMatch {
  static constexpr std::size_t kMaxAncestors = dns::kMaxLabels;

  LeafBlock nearest;            ///< a leaf that shares the longest prefix with the key
  std::size_t common = 0;       ///< length of that prefix in symbols
  bool exact = false;           ///< nearest is the key itself
  bool prefix_of_leaf = false;  ///< the whole key is a proper prefix of nearest: an ENT
  bool damaged = false;         ///< a reference, offset or leaf did not make sense
  std::uint8_t ancestor_count = 0;
  std::uint32_t
      ancestors[kMaxAncestors];  ///< leaves that are proper ancestors of the key, top first
};

class Trie {
 public:
  Trie(shm::Window window, std::uint32_t root, LeafKind kind) noexcept
      : window_(window), root_(root), kind_(kind) {}

  [[nodiscard]] bool empty() const noexcept { return root_ == 0; }

  /// One descent: exact leaf, empty non-terminal, closest encloser and all ancestors.
  void match(const TrieKey& key, TrieMatch& out) const noexcept;

  /// Just the leaf of `key`, if there.
  [[nodiscard]] LeafBlock find(const TrieKey& key, ByteView labels) const noexcept;

  /// The leaf with the greatest key that is not above `key`; none when all are above.
  [[nodiscard]] LeafBlock at_or_before(const TrieKey& key) const noexcept {
    return preceding(key, true);
  }
  /// The leaf with the greatest key below `key`.
  [[nodiscard]] LeafBlock before(const TrieKey& key) const noexcept {
    return preceding(key, false);
  }
  [[nodiscard]] LeafBlock last() const noexcept;

  /// The branch at `ref`, or nullptr when the block is a leaf or damaged (then `leaf` stays null).
  const Branch* branch_at(std::uint32_t ref, LeafBlock& leaf) const noexcept;
  [[nodiscard]] ByteView labels_of(LeafBlock leaf) const noexcept;
  [[nodiscard]] shm::Window window() const noexcept { return window_; }
  [[nodiscard]] std::uint32_t root() const noexcept { return root_; }

 private:
  [[nodiscard]] LeafBlock preceding(const TrieKey& key, bool or_equal) const noexcept;
  [[nodiscard]] LeafBlock leaf_below(std::uint32_t ref, bool last) const noexcept;

  shm::Window window_;
  std::uint32_t root_;
  LeafKind kind_;
};

/// Visits leaves in canonical order. For transfers and the manager, not for the query path: its
/// stack lives on the heap. Valid as long as the version is pinned.
class TrieWalk {
 public:
  explicit TrieWalk(const Trie& trie);
  /// Goes on with the first leaf whose key is above `key` (or equal, with `inclusive`).
  void seek(const TrieKey& key, bool inclusive);
  /// The next leaf; none at the end or where the trie is damaged.
  LeafBlock next();

 private:
  struct Frame {
    std::uint32_t ref;
    std::uint32_t next_child;
  };
  LeafBlock descend(std::uint32_t ref);
  Trie trie_;
  std::uint64_t left_;  // leaves that there can be: damage must not lead in circles
  std::vector<Frame> stack_;
  std::uint32_t pending_ = 0;  // a subtree to visit before the stack
};

}  // namespace pando::zone

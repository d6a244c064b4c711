#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "shm/map/ref.h"
#include "zone/trie/key.h"

/// The copy-on-write qp-trie (a radix tree on key symbols with packed children): reading. Any block
/// of the store whose first byte has bit 0 clear is a leaf; Trie::labels_of() gives its name
/// (labels without the root octet). All reads are bounds-checked. All descents are bounded, because
/// branch offsets must grow.
namespace pando::zone {

struct Branch;

/// A leaf block: its first byte and its reference.
struct LeafBlock {
  const std::uint8_t* data = nullptr;
  shm::Ref<> ref;
  explicit operator bool() const noexcept { return data != nullptr; }
};

/// The two kinds of leaves. Trie::labels_of() of a damaged leaf is an empty view with null data.
enum class LeafKind : std::uint8_t { kRecord, kZone };

/// The result of a descent.
struct TrieMatch {
  static constexpr std::size_t kMaxAncestors = dns::kMaxLabels;

  LeafBlock nearest;            ///< a leaf that shares the longest prefix with the key
  std::size_t common = 0;       ///< length of that prefix in symbols
  bool exact = false;           ///< nearest is the key itself
  bool prefix_of_leaf = false;  ///< the whole key is a proper prefix of nearest: an ENT
  bool damaged = false;         ///< a reference, offset or leaf did not make sense
  bool behind_nearest = false;  ///< the key stands after nearest in canonical order
  std::uint8_t ancestor_count = 0;
  std::uint32_t
      ancestors[kMaxAncestors];  ///< leaves that are proper ancestors of the key, top first
};

/// The branches of one descent, from the root down: the way from a key that is not there to its
/// neighbour.
using TrieBranches = std::span<const Branch* const>;

/// Room for the branches of any descent. Offsets grow strictly on the way, so their range bounds
/// the number of branches.
struct TriePath {
  static constexpr std::size_t kMaxBranches = 1024;  // 2^10, since an offset has ten bits

  std::size_t count = 0;
  std::array<const Branch*, kMaxBranches> branches;  // filled up to `count`

  operator TrieBranches() const noexcept { return {branches.data(), count}; }  // NOLINT
};

/// Children that may be ancestors of a key: the key continues after a label border, and a leaf may
/// end there.
struct TrieCandidates {
  struct Child {
    std::uint32_t ref;
    std::uint16_t offset;
  };
  Child children[TrieMatch::kMaxAncestors];
  std::size_t count = 0;

  void add(std::uint32_t ref, std::size_t offset) noexcept {
    if (count < TrieMatch::kMaxAncestors)
      children[count++] = {ref, static_cast<std::uint16_t>(offset)};
  }
};

/// A place on the way down to the leaf nearest to a key.
struct TrieWay {
  std::uint32_t ref = 0;        ///< of the next block
  std::size_t next_offset = 0;  ///< smallest offset that its branch may have
  bool on_path = true;          ///< the key may still be below
};

/// A descent that takes turns with others: see Trie::start(). The key must outlive it.
struct TrieDescent {
  /// A longer descent is given up, and the lookup then makes its own. Names of a few labels need
  /// fewer: a branch tests a symbol that tells names apart.
  static constexpr std::size_t kMaxBranches = 48;
  enum class State : std::uint8_t { kNone, kGoing, kAtLeaf, kGivenUp };

  State state = State::kNone;
  std::uint32_t root = 0;
  KeyView key{nullptr, 0};
  TrieWay way;
  LeafBlock leaf;
  TrieCandidates candidates;
  std::size_t count = 0;
  std::array<const Branch*, kMaxBranches> branches;  // filled up to `count`

  [[nodiscard]] TrieBranches path() const noexcept { return {branches.data(), count}; }
};

class Trie {
 public:
  Trie(shm::Window window, std::uint32_t root, LeafKind kind) noexcept
      : window_(window), root_(root), kind_(kind) {}

  [[nodiscard]] bool empty() const noexcept { return root_ == 0; }

  /// One descent: exact leaf, empty non-terminal, closest encloser and all ancestors. `path`, if
  /// given, gets the way down. `labels`, if given, are the labels of `key`: an exact leaf of the
  /// same spelling is then recognised sooner.
  void match(KeyView key, TrieMatch& out, TriePath* path = nullptr,
             ByteView labels = {}) const noexcept;
  /// Starts a descent, which run_all() completes and match() then uses.
  void start(KeyView key, TrieDescent& descent) const noexcept;
  /// Moves all descents to their leaves, a step each in turn: each one's next block is on its way
  /// to the processor's caches while the others move. They may be in different tries of one store.
  static void run_all(const shm::Window& window, std::span<TrieDescent> descents) noexcept;
  /// Whether `descent` has found a leaf of this trie for this very key.
  [[nodiscard]] bool has_ended(const TrieDescent& descent, KeyView key) const noexcept {
    return descent.state == TrieDescent::State::kAtLeaf && descent.root == root_ &&
           descent.key.data() == key.data() && descent.key.length() == key.length();
  }
  /// match() after a descent that has_ended().
  void match(const TrieDescent& descent, TrieMatch& out, ByteView labels) const noexcept;

  /// The leaf with the greatest key below `key`, which match() with `found` and `path` did not find
  /// exactly. Costs no second descent.
  [[nodiscard]] LeafBlock before(KeyView key, const TrieMatch& found,
                                 TrieBranches path) const noexcept;

  /// Only the leaf of `key`, if it exists.
  [[nodiscard]] LeafBlock find(KeyView key, ByteView labels) const noexcept;

  /// The leaf with the greatest key that is not above `key`; none when all are above.
  [[nodiscard]] LeafBlock at_or_before(KeyView key) const noexcept { return preceding(key, true); }
  /// The leaf with the greatest key below `key`.
  [[nodiscard]] LeafBlock before(KeyView key) const noexcept { return preceding(key, false); }
  [[nodiscard]] LeafBlock last() const noexcept;

  /// The branch at `ref`, or nullptr when the block is a leaf or damaged (then `leaf` stays null).
  const Branch* branch_at(std::uint32_t ref, LeafBlock& leaf) const noexcept;
  [[nodiscard]] ByteView labels_of(LeafBlock leaf) const noexcept;
  [[nodiscard]] shm::Window window() const noexcept { return window_; }
  [[nodiscard]] std::uint32_t root() const noexcept { return root_; }

 private:
  [[nodiscard]] LeafBlock preceding(KeyView key, bool or_equal) const noexcept;
  [[nodiscard]] LeafBlock left_of(KeyView key, TrieBranches path) const noexcept;
  void finish(KeyView key, LeafBlock leaf, ByteView labels, const TrieCandidates& candidates,
              TrieMatch& out) const noexcept;
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
  /// Continues with the first leaf whose key is above `key` (or equal, with `inclusive`).
  void seek(const TrieKey& key, bool inclusive);
  /// The next leaf; none at the end or where the trie is damaged.
  LeafBlock next();

 private:
  struct Frame {
    const std::uint32_t* children;  // `count` of them, all in the window
    std::uint32_t next_child;
    std::uint32_t count;
  };
  std::uint32_t next_child() noexcept;
  Trie trie_;
  std::uint64_t left_;  // upper bound of the remaining leaves: damage must not lead in circles
  std::vector<Frame> stack_;
  std::uint32_t pending_ = 0;  // a subtree to visit before the stack
};

}  // namespace pando::zone

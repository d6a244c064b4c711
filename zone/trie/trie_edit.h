#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "shm/store.h"
#include "zone/trie/trie.h"

/// The copy-on-write qp-trie: changing. Every function returns the root of the changed trie. Blocks
/// that only the old root reached are released; fresh blocks are changed in place.
namespace pando::zone {

/// Puts `leaf` at `key`, replacing (not releasing) a leaf at that key. kFull, kCorrupt.
Result<std::uint32_t> trie_put(shm::Transaction& transaction, std::uint32_t root, LeafKind kind,
                               const TrieKey& key, std::uint32_t leaf);

/// Takes the leaf at `key` out (without releasing it). kNotFound, kFull, kCorrupt.
Result<std::uint32_t> trie_remove(shm::Transaction& transaction, std::uint32_t root, LeafKind kind,
                                  const TrieKey& key);

/// Builds a trie from leaves that arrive in canonical order. Each branch is written once, when its
/// last child is known, right after the leaves below it.
class TrieBuilder {
 public:
  explicit TrieBuilder(shm::Transaction& transaction) noexcept : transaction_(transaction) {}
  /// `key`: the leaf's symbols, above those of the previous leaf.
  Status add(std::uint32_t leaf, ByteView key);
  /// The root; 0 when no leaf was added.
  Result<std::uint32_t> finish();

 private:
  struct Open {
    std::size_t offset;
    std::uint64_t bitmap;
    std::size_t first_child;  // into children_
  };
  Status close_top();
  shm::Transaction& transaction_;
  Bytes before_;  // key of the last leaf
  std::vector<Open> open_;
  std::vector<std::uint32_t> children_;  // of all open branches, outermost first
  std::uint32_t pending_ = 0;            // subtree that has no parent yet
};

/// Releases the trie's branches from the version; its leaves stay.
void release_branches(shm::Transaction& transaction, std::uint32_t root);

/// Writable copy of a branch: the block itself when fresh. The old block is released.
Result<std::uint32_t> make_branch_fresh(shm::Transaction& transaction, std::uint32_t ref);

}  // namespace pando::zone

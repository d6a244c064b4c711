#include "zone/trie/trie_edit.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// One step of a descent: the branch and the index of the child taken.
struct Step {
  std::uint32_t ref;
  std::uint16_t index;
  std::uint16_t offset;  // of the branch
};

/// The branches from the root down to the place of a change. Offsets grow, so there are at most as
/// many as a key has symbols.
struct Path {
  std::array<Step, kMaxKeySymbols + 1> steps;
  std::size_t size = 0;
};

Branch* writable_branch(shm::Transaction& transaction, std::uint32_t ref) {
  return transaction.writable(shm::Ref<Branch>{ref});
}

Result<std::uint32_t> allocate_branch(shm::Transaction& transaction, unsigned count) {
  auto ref = transaction.allocate(Branch::octets(count));
  if (!ref) return pass(ref);
  return ref->units;
}

/// Hands `child` up the path: each branch gets its new child, until a branch changes in place.
Result<std::uint32_t> rebuild(shm::Transaction& transaction, std::uint32_t root, const Path& path,
                              std::uint32_t child) {
  for (std::size_t i = path.size; i-- > 0;) {
    auto fresh = make_branch_fresh(transaction, path.steps[i].ref);
    if (!fresh) return pass(fresh);
    writable_branch(transaction, *fresh)->children()[path.steps[i].index] = child;
    if (*fresh == path.steps[i].ref) return root;  // changed in place: no branch above moves
    child = *fresh;
  }
  return child;
}

/// The place of a key, found in one descent.
struct Place {
  Path path;  // branches that test a symbol of the common prefix of the key and `nearest`
  std::uint32_t ref = 0;   // the subtree below the path
  TrieKey nearest;         // of a leaf that shares the longest prefix with the key
  std::size_t common = 0;  // length of that prefix
  bool exact = false;      // whether `nearest` is the key itself, and `ref` its leaf
};

/// False when the trie is damaged. The trie must not be empty.
bool find_place(const Trie& trie, const TrieKey& key, Place& place) {
  Path& path = place.path;
  std::uint32_t ref = trie.root();
  std::size_t next_offset = 0;
  std::size_t left_at = SIZE_MAX;  // offset at which the key has no child
  LeafBlock leaf;
  while (const Branch* branch = trie.branch_at(ref, leaf)) {
    const std::size_t offset = branch->offset();
    if (offset < next_offset || path.size == path.steps.size()) return false;
    next_offset = offset + 1;
    const unsigned symbol = key[offset];
    if (left_at == SIZE_MAX && !branch->has(symbol)) left_at = offset;
    const unsigned index = left_at == SIZE_MAX ? branch->index_of(symbol) : 0;
    path.steps[path.size++] = {ref, static_cast<std::uint16_t>(index),
                               static_cast<std::uint16_t>(offset)};
    ref = branch->children()[index];
  }
  if (!leaf) return false;
  const ByteView labels = trie.labels_of(leaf);
  if (labels.empty() && leaf.data[1] != 0) return false;
  place.nearest.assign(labels);
  place.common = key.common_prefix(place.nearest);
  place.exact = place.common == key.length() && place.common == place.nearest.length();
  if (left_at < (place.exact ? SIZE_MAX : place.common)) return false;
  place.ref = ref;
  // From the first differing symbol on, the descent took arbitrary children.
  while (!place.exact && path.size > 0 && path.steps[path.size - 1].offset >= place.common)
    place.ref = path.steps[--path.size].ref;
  return true;
}

/// A new two-way branch above `below`.
Result<std::uint32_t> split(shm::Transaction& transaction, std::uint32_t below,
                            std::uint8_t symbol_below, std::uint32_t leaf, std::uint8_t symbol_leaf,
                            std::size_t offset) {
  auto ref = allocate_branch(transaction, 2);
  if (!ref) return pass(ref);
  Branch* branch = writable_branch(transaction, *ref);
  branch->header =
      Branch::make((std::uint64_t{1} << symbol_below) | (std::uint64_t{1} << symbol_leaf), offset);
  branch->children()[symbol_below < symbol_leaf ? 0 : 1] = below;
  branch->children()[symbol_below < symbol_leaf ? 1 : 0] = leaf;
  return *ref;
}

/// A copy of the branch with one more child. The old block is released.
Result<std::uint32_t> widen(shm::Transaction& transaction, std::uint32_t ref, std::uint8_t symbol,
                            std::uint32_t leaf) {
  const Branch* old = transaction.window().at(shm::Ref<Branch>{ref});
  const unsigned count = old->count();
  auto made = allocate_branch(transaction, count + 1);
  if (!made) return pass(made);
  Branch* branch = writable_branch(transaction, *made);
  branch->header = Branch::make(old->bitmap() | (std::uint64_t{1} << symbol), old->offset());
  const unsigned index = branch->index_of(symbol);
  std::memcpy(branch->children(), old->children(), index * sizeof(std::uint32_t));
  branch->children()[index] = leaf;
  std::memcpy(branch->children() + index + 1, old->children() + index,
              (count - index) * sizeof(std::uint32_t));
  transaction.release(shm::Ref<>{ref}, Branch::octets(count));
  return *made;
}

/// A copy of the branch with one child less. The old block is released.
Result<std::uint32_t> narrow(shm::Transaction& transaction, std::uint32_t ref,
                             std::uint8_t symbol) {
  const Branch* old = transaction.window().at(shm::Ref<Branch>{ref});
  const unsigned count = old->count();
  const unsigned index = old->index_of(symbol);
  auto made = allocate_branch(transaction, count - 1);
  if (!made) return pass(made);
  Branch* branch = writable_branch(transaction, *made);
  branch->header = Branch::make(old->bitmap() & ~(std::uint64_t{1} << symbol), old->offset());
  std::memcpy(branch->children(), old->children(), index * sizeof(std::uint32_t));
  std::memcpy(branch->children() + index, old->children() + index + 1,
              (count - index - 1) * sizeof(std::uint32_t));
  transaction.release(shm::Ref<>{ref}, Branch::octets(count));
  return *made;
}

std::size_t common_prefix(ByteView a, ByteView b) {
  const auto differs = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differs.first - a.begin());
}

std::uint8_t symbol_at(ByteView key, std::size_t at) {
  return at < key.size() ? key[at] : kLabelEnd;
}

tl::unexpected<Error> damaged_trie() { return fail(Errc::kCorrupt, "zone trie is damaged"); }

}  // namespace

Result<std::uint32_t> make_branch_fresh(shm::Transaction& transaction, std::uint32_t ref) {
  if (transaction.is_fresh(shm::Ref<>{ref})) return ref;
  const Branch* old = transaction.window().at(shm::Ref<Branch>{ref});
  if (old == nullptr) return damaged_trie();
  const std::size_t octets = Branch::octets(old->count());
  auto copy = transaction.allocate(octets);
  if (!copy) return pass(copy);
  std::memcpy(transaction.writable(*copy), old, octets);
  transaction.release(shm::Ref<>{ref}, octets);
  return copy->units;
}

Result<std::uint32_t> trie_put(shm::Transaction& transaction, std::uint32_t root, LeafKind kind,
                               const TrieKey& key, std::uint32_t leaf) {
  if (root == 0) return leaf;
  Place place;
  if (!find_place(Trie(transaction.window(), root, kind), key, place)) return damaged_trie();
  if (place.exact) return rebuild(transaction, root, place.path, leaf);

  const std::uint8_t symbol = key[place.common];
  LeafBlock ignored;
  const Branch* branch = Trie(transaction.window(), root, kind).branch_at(place.ref, ignored);
  auto replaced =
      branch != nullptr && branch->offset() == place.common
          ? widen(transaction, place.ref, symbol, leaf)
          : split(transaction, place.ref, place.nearest[place.common], leaf, symbol, place.common);
  if (!replaced) return replaced;
  return rebuild(transaction, root, place.path, *replaced);
}

Result<std::uint32_t> trie_remove(shm::Transaction& transaction, std::uint32_t root, LeafKind kind,
                                  const TrieKey& key) {
  if (root == 0) return fail(Errc::kNotFound, "no such name");
  Place place;
  if (!find_place(Trie(transaction.window(), root, kind), key, place)) return damaged_trie();
  if (!place.exact) return fail(Errc::kNotFound, "no such name");
  Path& path = place.path;
  if (path.size == 0) return 0U;  // the only leaf

  const Step last = path.steps[--path.size];
  const Branch* branch = transaction.window().at(shm::Ref<Branch>{last.ref});
  if (branch->count() == 2) {  // the other child takes the branch's place
    const std::uint32_t other = branch->children()[1 - last.index];
    transaction.release(shm::Ref<>{last.ref}, Branch::octets(2));
    return rebuild(transaction, root, path, other);
  }
  auto narrowed = narrow(transaction, last.ref, key[branch->offset()]);
  if (!narrowed) return narrowed;
  return rebuild(transaction, root, path, *narrowed);
}

Status TrieBuilder::add(std::uint32_t leaf, ByteView key) {
  const bool is_first = pending_ == 0 && open_.empty();
  const std::size_t common = is_first ? 0 : common_prefix(before_, key);
  const std::uint8_t symbol_before = symbol_at(before_, common);
  before_.assign(key.begin(), key.end());
  if (is_first) {
    pending_ = leaf;
    return {};
  }
  // Branches deeper than the new fork are complete: no later leaf can come below them.
  while (!open_.empty() && open_.back().offset > common) {
    children_.push_back(pending_);
    if (auto closed = close_top(); !closed) return closed;
  }
  if (open_.empty() || open_.back().offset < common)
    open_.push_back({common, std::uint64_t{1} << symbol_before, children_.size()});
  children_.push_back(pending_);
  open_.back().bitmap |= std::uint64_t{1} << symbol_at(key, common);
  pending_ = leaf;
  return {};
}

Status TrieBuilder::close_top() {
  const Open top = open_.back();
  const auto count = static_cast<unsigned>(children_.size() - top.first_child);
  auto ref = allocate_branch(transaction_, count);
  if (!ref) return pass(ref);
  Branch* branch = writable_branch(transaction_, *ref);
  branch->header = Branch::make(top.bitmap, top.offset);
  std::memcpy(branch->children(), children_.data() + top.first_child,
              count * sizeof(std::uint32_t));
  children_.resize(top.first_child);
  open_.pop_back();
  pending_ = *ref;
  return {};
}

Result<std::uint32_t> TrieBuilder::finish() {
  while (!open_.empty()) {
    children_.push_back(pending_);
    if (auto closed = close_top(); !closed) return pass(closed);
  }
  return pending_;
}

void release_branches(shm::Transaction& transaction, std::uint32_t root) {
  const Trie trie(transaction.window(), root, LeafKind::kRecord);
  std::vector<std::uint32_t> left{root};
  while (!left.empty()) {
    const std::uint32_t ref = left.back();
    left.pop_back();
    LeafBlock leaf;
    const Branch* branch = trie.branch_at(ref, leaf);
    if (branch == nullptr) continue;
    left.insert(left.end(), branch->children(), branch->children() + branch->count());
    transaction.release(shm::Ref<>{ref}, Branch::octets(branch->count()));
  }
}

}  // namespace pando::zone

#include "zone/trie/trie.h"

#include <algorithm>
#include <utility>

#include "dns/octet_words.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// Keeps the candidates that are ancestors of the key, and the leaf if it is one. A part of
/// match(), which is the hot path: inlined, so that the descent's state stays in registers.
[[gnu::always_inline]] inline void take_ancestors(const Trie& trie, KeyView key, LeafBlock leaf,
                                                  bool leaf_ends, const TrieCandidates& candidates,
                                                  TrieMatch& out) noexcept {
  for (std::size_t i = 0; i < candidates.count; ++i) {
    const auto [ref, offset] = candidates.children[i];
    if (offset > out.common) break;
    const auto* block = trie.window().at(shm::Ref<Branch>{ref});
    if (block != nullptr && (block->header & 1) == 0 && ref != leaf.ref.units)
      out.ancestors[out.ancestor_count++] = ref;
  }
  if (leaf_ends && out.common < key.length() && out.ancestor_count < TrieMatch::kMaxAncestors)
    out.ancestors[out.ancestor_count++] = leaf.ref.units;
}

void give_up(TrieMatch& out) noexcept { out.damaged = true; }

[[gnu::always_inline]] inline void clear(TrieMatch& out) noexcept {
  out.nearest = {};
  out.common = 0;
  out.exact = out.prefix_of_leaf = out.damaged = out.behind_nearest = false;
  out.ancestor_count = 0;
}

enum class Seen : std::uint8_t { kBranch, kLeaf, kDamaged };

/// The block at way.ref: a leaf, or a branch, which way.ref then leads on from. A part of match(),
/// inlined as take_ancestors() is.
[[gnu::always_inline]] inline Seen look(const shm::Window& window, KeyView key, TrieWay& way,
                                        TrieCandidates& candidates,
                                        const Branch*& branch) noexcept {
  branch = window.at(shm::Ref<Branch>{way.ref});
  if (branch == nullptr) [[unlikely]]
    return Seen::kDamaged;
  if ((branch->header & 1) == 0) return Seen::kLeaf;
  const std::size_t offset = branch->offset();
  if (offset < way.next_offset) [[unlikely]]
    return Seen::kDamaged;
  way.next_offset = offset + 1;
  const unsigned symbol = key[offset];
  way.on_path = way.on_path && branch->has(symbol);
  const unsigned index = way.on_path ? branch->index_of(symbol) : 0;
  // Children up to the chosen one are read: a damaged block may have no more than it shows.
  if (window.room_after(branch) < Branch::octets(index + 1)) [[unlikely]]
    return Seen::kDamaged;
  if (symbol != kLabelEnd && branch->has(kLabelEnd) && key.is_label_border(offset))
    candidates.add(branch->children()[0], offset);
  way.ref = branch->children()[index];
  return Seen::kBranch;
}

/// Octets that the processor fetches at once.
constexpr std::size_t kLine = 64;

/// Asks for the block at `ref` without waiting for it. A wrong reference does no harm.
[[gnu::always_inline]] inline void fetch(const shm::Window& window, std::uint32_t ref) noexcept {
  __builtin_prefetch(window.base() + shm::Ref<>{ref}.offset());
}

LeafBlock leaf_of(const Branch* block, const TrieWay& way) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(block), shm::Ref<>{way.ref}};
}

/// Whether two runs of octets are the same, case included.
[[gnu::always_inline]] inline bool are_same(ByteView a, ByteView b) noexcept {
  if (a.size() != b.size()) return false;
  std::size_t at = 0;
  for (; at + 8 <= a.size(); at += 8)
    if (load_unaligned<std::uint64_t>(a.data() + at) !=
        load_unaligned<std::uint64_t>(b.data() + at))
      return false;
  for (; at < a.size(); ++at)
    if (a[at] != b[at]) return false;
  return true;
}

/// See Trie::branch_at().
[[gnu::always_inline]] inline const Branch* branch_in(const shm::Window& window, std::uint32_t ref,
                                                      LeafBlock& leaf) noexcept {
  const auto* block = window.at(shm::Ref<Branch>{ref});
  if (block == nullptr) [[unlikely]]
    return nullptr;
  if ((block->header & 1) == 0) {
    leaf = {reinterpret_cast<const std::uint8_t*>(block), shm::Ref<>{ref}};
    return nullptr;
  }
  const std::size_t octets = Branch::octets(block->count());
  return window.room_after(block) >= octets && block->count() >= 2 ? block : nullptr;
}

}  // namespace

const Branch* Trie::branch_at(std::uint32_t ref, LeafBlock& leaf) const noexcept {
  return branch_in(window_, ref, leaf);
}

ByteView Trie::labels_of(LeafBlock leaf) const noexcept {
  const std::size_t header = kind_ == LeafKind::kRecord ? sizeof(RecordHeader) : sizeof(ZoneEntry);
  const std::uint64_t room = window_.room_after(leaf.data);
  if (room < header || room < header + leaf.data[1]) [[unlikely]]
    return {};
  const ByteView labels(leaf.data + header, leaf.data[1]);
  return are_labels(labels) ? labels : ByteView{};
}

void Trie::match(KeyView key, TrieMatch& out, TriePath* path, ByteView of_key) const noexcept {
  if (path != nullptr) path->count = 0;
  clear(out);
  if (root_ == 0) return;
  TrieCandidates candidates;
  TrieWay way{root_};
  const Branch* branch = nullptr;
  Seen seen = Seen::kBranch;
  while ((seen = look(window_, key, way, candidates, branch)) == Seen::kBranch)
    if (path != nullptr) path->branches[path->count++] = branch;
  if (seen == Seen::kDamaged) [[unlikely]]
    return give_up(out);
  finish(key, leaf_of(branch, way), of_key, candidates, out);
}

void Trie::start(KeyView key, TrieDescent& descent) const noexcept {
  descent.state = root_ == 0 ? TrieDescent::State::kGivenUp : TrieDescent::State::kGoing;
  descent.root = root_;
  descent.key = key;
  descent.way = TrieWay{root_};
  descent.candidates.count = 0;
  descent.count = 0;
  fetch(window_, root_);
}

void Trie::run_all(const shm::Window& window, std::span<TrieDescent> descents) noexcept {
  using State = TrieDescent::State;
  std::size_t going = 0;
  do {
    going = 0;
    for (TrieDescent& descent : descents) {
      if (descent.state != State::kGoing) continue;
      const Branch* branch = nullptr;
      const Seen seen = look(window, descent.key, descent.way, descent.candidates, branch);
      if (seen == Seen::kBranch && descent.count < TrieDescent::kMaxBranches) [[likely]] {
        descent.branches[descent.count++] = branch;
        fetch(window, descent.way.ref);
        ++going;
        continue;
      }
      descent.state = seen == Seen::kLeaf ? State::kAtLeaf : State::kGivenUp;
      if (seen != Seen::kLeaf) continue;
      descent.leaf = leaf_of(branch, descent.way);
      // The labels of a ZoneEntry are after 120 octets.
      __builtin_prefetch(descent.leaf.data + kLine);
      __builtin_prefetch(descent.leaf.data + 2 * kLine);
    }
  } while (going > 0);
}

void Trie::match(const TrieDescent& descent, TrieMatch& out, ByteView labels) const noexcept {
  clear(out);
  finish(descent.key, descent.leaf, labels, descent.candidates, out);
}

/// Compares the key with the leaf at its end of the trie. `of_key`: see match().
[[gnu::always_inline]] inline void Trie::finish(KeyView key, LeafBlock leaf, ByteView of_key,
                                                const TrieCandidates& candidates,
                                                TrieMatch& out) const noexcept {
  out.nearest = leaf;
  const ByteView labels = labels_of(leaf);
  if (labels.empty() && leaf.data[1] != 0) return give_up(out);
  if (!of_key.empty() && are_same(labels, of_key)) {
    out.common = key.length();
    out.exact = true;
    return take_ancestors(*this, key, leaf, true, candidates, out);
  }
  const KeyView::Parting parting = key.part_from(labels, window_.room_after(labels.data()));
  out.common = parting.common;
  out.exact = parting.name_ends && out.common == key.length();
  out.prefix_of_leaf = !out.exact && out.common == key.length();
  out.behind_nearest = parting.next < key[out.common];
  take_ancestors(*this, key, leaf, parting.name_ends, candidates, out);
}

LeafBlock Trie::find(KeyView key, ByteView labels) const noexcept {
  if (root_ == 0) return {};
  std::uint32_t ref = root_;
  std::size_t next_offset = 0;
  LeafBlock leaf;
  while (const Branch* branch = branch_at(ref, leaf)) {
    const std::size_t offset = branch->offset();
    const unsigned symbol = key[offset];
    if (offset < next_offset || !branch->has(symbol)) return {};
    next_offset = offset + 1;
    ref = branch->children()[branch->index_of(symbol)];
  }
  if (!leaf) return {};
  const ByteView found = labels_of(leaf);
  using dns::NameCase;
  const bool same = found.size() == labels.size() && leaf.data[1] == labels.size() &&
                    (labels.empty() || dns::same_octets<NameCase::kIgnored>(
                                           found.data(), labels.data(), labels.size()));
  return same ? leaf : LeafBlock{};
}

LeafBlock Trie::leaf_below(std::uint32_t ref, bool last) const noexcept {
  LeafBlock leaf;
  std::size_t next_offset = 0;
  while (const Branch* branch = branch_at(ref, leaf)) {
    if (branch->offset() < next_offset) return {};
    next_offset = branch->offset() + 1;
    ref = branch->children()[last ? branch->count() - 1 : 0];
  }
  return leaf;
}

LeafBlock Trie::last() const noexcept { return root_ == 0 ? LeafBlock{} : leaf_below(root_, true); }

/// The last leaf of the nearest subtree to the left of the key's way through these branches.
LeafBlock Trie::left_of(KeyView key, TrieBranches path) const noexcept {
  for (std::size_t at = path.size(); at-- > 0;) {
    const Branch* branch = path[at];
    if (const unsigned index = branch->index_of(key[branch->offset()]); index > 0)
      return leaf_below(branch->children()[index - 1], true);
  }
  return {};
}

LeafBlock Trie::before(KeyView key, const TrieMatch& found, TrieBranches path) const noexcept {
  if (found.damaged || !found.nearest) return {};
  // Branches after the common prefix: their leaves all are on one side of the key.
  std::size_t at = path.size();
  while (at > 0 && path[at - 1]->offset() > found.common) --at;
  const bool leaves_at_branch = at > 0 && path[at - 1]->offset() == found.common;
  if (!leaves_at_branch && found.behind_nearest) {
    if (at == path.size()) return found.nearest;
    const Branch* subtree = path[at];
    return leaf_below(subtree->children()[subtree->count() - 1], true);
  }
  return left_of(key, path.first(at));
}

LeafBlock Trie::preceding(KeyView key, bool or_equal) const noexcept {
  TrieMatch found;
  TriePath path;
  match(key, found, &path);
  if (!found.exact) return before(key, found, path);
  if (or_equal) return found.nearest;
  return left_of(key, path);
}

TrieWalk::TrieWalk(const Trie& trie)
    : trie_(trie),
      left_((std::max(trie.window().limit(), shm::kFirstBlock) - shm::kFirstBlock) / shm::kUnit),
      pending_(trie.root()) {}

void TrieWalk::seek(const TrieKey& key, bool inclusive) {
  stack_.clear();
  pending_ = 0;
  TrieMatch found;
  trie_.match(key, found);
  if (found.damaged || !found.nearest) return;
  std::uint32_t ref = trie_.root();
  LeafBlock leaf;
  while (const Branch* branch = trie_.branch_at(ref, leaf)) {
    const std::size_t offset = branch->offset();
    if (!found.exact && offset > found.common) break;
    const unsigned index = branch->index_of(key[offset]);
    if (!branch->has(key[offset])) {  // the key would stand before this child
      stack_.push_back({branch->children(), index, branch->count()});
      return;
    }
    stack_.push_back({branch->children(), index + 1, branch->count()});
    ref = branch->children()[index];
  }
  // `ref` shares the whole common prefix with the key: it stands wholly before or after it.
  const int order = TrieKey(trie_.labels_of(found.nearest)).compare(key);
  if (order > 0 || (order == 0 && inclusive)) pending_ = ref;
}

/// The next child of the branch at the top; 0 at the end.
inline std::uint32_t TrieWalk::next_child() noexcept {
  while (!stack_.empty()) {
    Frame& top = stack_.back();
    if (top.next_child < top.count) {
      const std::uint32_t child = top.children[top.next_child++];
      // The caller is busy with this child while the next one's memory comes.
      if (top.next_child < top.count) fetch(trie_.window(), top.children[top.next_child]);
      return child;
    }
    stack_.pop_back();
  }
  return 0;
}

LeafBlock TrieWalk::next() {
  if (left_ == 0) return {};
  --left_;
  std::uint32_t ref = pending_ != 0 ? std::exchange(pending_, 0) : next_child();
  LeafBlock leaf;
  while (const Branch* branch = branch_in(trie_.window(), ref, leaf)) {
    if (stack_.size() > kMaxKeySymbols) return {};
    stack_.push_back({branch->children(), 1, branch->count()});
    ref = branch->children()[0];
  }
  return leaf;
}

}  // namespace pando::zone

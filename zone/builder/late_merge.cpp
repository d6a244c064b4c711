#include "zone/builder/late_merge.h"

#include <algorithm>

#include "base/pause_point.h"
#include "base/progress.h"

namespace pando::zone {

namespace {

/// The leaves of a trie in canonical order, with their keys.
class LeafRow {
 public:
  explicit LeafRow(const Trie& trie) : trie_(trie), walk_(trie) { advance(); }

  void advance() {
    leaf_ = walk_.next();
    if (leaf_) key_.assign(trie_.labels_of(leaf_));
  }
  [[nodiscard]] bool ended() const { return !leaf_; }
  [[nodiscard]] std::uint32_t ref() const { return leaf_.ref.units; }
  [[nodiscard]] ByteView key() const { return {key_.data(), key_.length()}; }
  [[nodiscard]] bool is_before(ByteView key) const {
    return !ended() && std::ranges::lexicographical_compare(this->key(), key);
  }
  [[nodiscard]] bool is_at(ByteView key) const { return !ended() && same_octets(this->key(), key); }

 private:
  Trie trie_;
  TrieWalk walk_;
  LeafBlock leaf_;
  TrieKey key_;
};

}  // namespace

Result<std::uint32_t> LateMerge::write(const LateRecords::Group& group, std::uint32_t old) {
  const auto behind = std::ranges::find_if_not(
      group.entries, [this](const auto& entry) { return late_.came_before_mark(entry); });
  writer_.begin(group.labels);
  for (auto entry = group.entries.begin(); entry != behind; ++entry)
    writer_.add(late_.record(*entry));
  if (old != 0)
    if (auto added = writer_.add_written(old); !added) return pass(added);
  for (auto entry = behind; entry != group.entries.end(); ++entry)
    writer_.add(late_.record(*entry));
  if (auto ok = writer_.check(); !ok) return pass(ok);
  return writer_.write();
}

Result<std::uint32_t> LateMerge::put_each() {
  ProgressCount count(Progress::Phase::kBuilding, late_.size());
  while (const auto group = late_.next()) {
    count.add(group->entries.size());
    if (count.is_given_up()) return fail(Errc::kExists, kGivenUp);
    const TrieKey key(group->labels);
    const Trie trie(transaction_.window(), root_, LeafKind::kRecord);
    const bool at_apex = group->labels.empty();
    auto ref = write(*group, at_apex ? apex_ : trie.find(key, group->labels).ref.units);
    if (!ref) return ref;
    if (at_apex) continue;
    auto root = trie_put(transaction_, root_, LeafKind::kRecord, key, *ref);
    if (!root) return root;
    root_ = *root;
  }
  return root_;
}

Result<std::uint32_t> LateMerge::rebuild(std::uint64_t leaves) {
  ProgressCount count(Progress::Phase::kBuilding, late_.size() + leaves);
  pause_point("zone-build");
  TrieBuilder trie(transaction_);
  LeafRow row(Trie(transaction_.window(), root_, LeafKind::kRecord));
  while (const auto group = late_.next()) {
    count.add(group->entries.size());
    if (count.is_given_up()) return fail(Errc::kExists, kGivenUp);
    for (; row.is_before(group->key); row.advance(), count.add())
      if (auto kept = trie.add(row.ref(), row.key()); !kept) return pass(kept);
    const bool at_apex = group->labels.empty();
    const bool is_there = !at_apex && row.is_at(group->key);
    auto ref = write(*group, at_apex ? apex_ : is_there ? row.ref() : 0);
    if (!ref) return ref;
    if (at_apex) continue;
    if (auto put = trie.add(*ref, group->key); !put) return pass(put);
    if (is_there) row.advance();
  }
  for (; !row.ended(); row.advance(), count.add())
    if (auto kept = trie.add(row.ref(), row.key()); !kept) return pass(kept);
  release_branches(transaction_, root_);
  return trie.finish();
}

}  // namespace pando::zone

#include "zone/trie/trie.h"

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/record/record_codec.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {
namespace trie_test {

using testing::name;

struct CanonicalLess {
  bool operator()(const dns::Name& a, const dns::Name& b) const {
    return dns::compare_canonical(a, b) < 0;
  }
};
using Model = std::map<dns::Name, std::uint32_t, CanonicalLess>;

ByteView labels_of(const dns::Name& n) { return relative_labels(n, dns::NameView()); }

class TrieTest : public testing::ZoneTest {
 protected:
  Result<std::uint32_t> leaf(shm::Transaction& transaction, const dns::Name& owner) {
    NameDraft draft;
    draft.labels = labels_of(owner);
    draft.at(dns::RRType::kA).rdatas.push_back(ByteView(kAddress));
    return write_record(transaction, dns::NameView(), draft);
  }
  static constexpr std::uint8_t kAddress[4] = {192, 0, 2, 1};
};

dns::Name random_name(std::mt19937& random) {
  static const char* const kLabels[] = {"a", "b", "c", "ab", "abc", "*", "\\000", "-x", "z9", "A"};
  std::string text;
  const auto labels = static_cast<unsigned>(1 + random() % 4);
  for (unsigned i = 0; i < labels; ++i) text += std::string(kLabels[random() % 10]) + ".";
  return name(text);
}

/// Labels of the longest ancestor-or-self that exists, ENTs included.
std::size_t model_encloser(const Model& model, const dns::Name& wanted) {
  dns::NameView view = wanted;
  for (;; view = view.parent()) {
    for (const auto& [owner, ref] : model)
      if (owner.view().is_at_or_below(view)) return view.label_count();
    if (view.is_root()) return 0;
  }
}

void expect_match(const Trie& trie, const Model& model, const dns::Name& wanted) {
  const TrieKey key(labels_of(wanted));
  TrieMatch found;
  trie.match(key, found);
  ASSERT_FALSE(found.damaged);
  const auto exact = model.find(wanted);
  EXPECT_EQ(found.exact, exact != model.end()) << dns::to_text(wanted);
  EXPECT_EQ(static_cast<bool>(trie.find(key, labels_of(wanted))), exact != model.end());
  if (found.exact) {
    EXPECT_EQ(found.nearest.ref.units, exact->second);
  }
  if (!model.empty()) {
    EXPECT_EQ(key.labels_within(found.common), model_encloser(model, wanted))
        << dns::to_text(wanted);
  }
  std::vector<std::uint32_t> ancestors;
  for (dns::NameView view = wanted.view().parent(); !view.is_root(); view = view.parent())
    if (const auto at = model.find(dns::Name(view)); at != model.end())
      ancestors.insert(ancestors.begin(), at->second);
  ASSERT_EQ(found.ancestor_count, ancestors.size()) << dns::to_text(wanted);
  for (std::size_t i = 0; i < ancestors.size(); ++i) EXPECT_EQ(found.ancestors[i], ancestors[i]);

  auto after = model.upper_bound(wanted);
  const LeafBlock at_or_before = trie.at_or_before(key);
  EXPECT_EQ(at_or_before.ref.units, after == model.begin() ? 0 : std::prev(after)->second)
      << dns::to_text(wanted);
  auto at = model.lower_bound(wanted);
  EXPECT_EQ(trie.before(key).ref.units, at == model.begin() ? 0 : std::prev(at)->second)
      << dns::to_text(wanted);

  TrieDescent descent;
  trie.start(key, descent);
  Trie::run_all(trie.window(), {&descent, 1});
  EXPECT_EQ(trie.has_ended(descent, key), !trie.empty());
  if (!trie.empty()) {
    TrieMatch same;
    trie.match(descent, same, labels_of(wanted));
    EXPECT_EQ(same.nearest.ref, found.nearest.ref);
    EXPECT_EQ(same.common, found.common);
    EXPECT_EQ(std::tuple(same.exact, same.prefix_of_leaf, same.damaged),
              std::tuple(found.exact, found.prefix_of_leaf, found.damaged));
    EXPECT_TRUE(std::equal(same.ancestors, same.ancestors + same.ancestor_count, found.ancestors,
                           found.ancestors + found.ancestor_count));
    if (!same.exact) {
      EXPECT_EQ(trie.before(key, same, descent.path()).ref.units, trie.before(key).ref.units);
    }
  }

  TrieWalk walk(trie);
  walk.seek(key, false);
  EXPECT_EQ(walk.next().ref.units, after == model.end() ? 0 : after->second);
  walk.seek(key, true);
  EXPECT_EQ(walk.next().ref.units, at == model.end() ? 0 : at->second);
}

void expect_same_order(const Trie& trie, const Model& model) {
  TrieWalk walk(trie);
  for (const auto& [owner, ref] : model) ASSERT_EQ(walk.next().ref.units, ref);
  EXPECT_FALSE(walk.next());
}

TEST_F(TrieTest, AgreesWithASortedMapThroughRandomChanges) {
  std::mt19937 random(42);
  Model model;
  std::uint32_t root = 0;
  for (int round = 0; round < 400; ++round) {
    shm::Transaction transaction = store_->begin();
    for (int change = 0; change < 10; ++change) {
      const dns::Name owner = random_name(random);
      const TrieKey key(labels_of(owner));
      if (random() % 3 != 0) {
        auto made = leaf(transaction, owner);
        ASSERT_TRUE(made);
        auto changed = trie_put(transaction, root, LeafKind::kRecord, key, *made);
        ASSERT_TRUE(changed);
        root = *changed;
        model[owner] = *made;
      } else {
        auto changed = trie_remove(transaction, root, LeafKind::kRecord, key);
        ASSERT_EQ(static_cast<bool>(changed), model.erase(owner) == 1);
        if (changed) root = *changed;
      }
    }
    const Trie trie(transaction.window(), root, LeafKind::kRecord);
    expect_same_order(trie, model);
    for (int look = 0; look < 10; ++look) expect_match(trie, model, random_name(random));
    auto published = store_->publish(std::move(transaction), shm::Ref<>{root}, 0);
    ASSERT_TRUE(published) << published.error().text;
  }
}

TEST_F(TrieTest, AWalkEndsWhereSubtreesHangInTwoPlaces) {
  // Damage can make a store of one leaf look like one of 2^60.
  shm::Transaction transaction = store_->begin();
  std::uint32_t ref = *leaf(transaction, name("a."));
  for (std::size_t offset = 60; offset-- > 0;) {
    const auto made = transaction.allocate(Branch::octets(2));
    ASSERT_TRUE(made);
    auto* branch = transaction.writable(shm::Ref<Branch>{made->units});
    branch->header = Branch::make(3, offset);
    branch->children()[0] = branch->children()[1] = ref;
    ref = made->units;
  }
  const shm::Window window = transaction.window();
  TrieWalk walk(Trie(window, ref, LeafKind::kRecord));
  std::uint64_t leaves = 0;
  while (walk.next()) ++leaves;
  EXPECT_GT(leaves, 0U);
  EXPECT_LE(leaves, (window.limit() - shm::kFirstBlock) / shm::kUnit);
}

TEST_F(TrieTest, BuiltFromSortedLeavesEqualsBuiltOneByOne) {
  std::mt19937 random(7);
  shm::Transaction transaction = store_->begin();
  Model model;
  for (int i = 0; i < 3000; ++i) model.emplace(random_name(random), 0);
  TrieBuilder builder(transaction);
  std::uint32_t one_by_one = 0;
  for (auto& [owner, ref] : model) {
    auto made = leaf(transaction, owner);
    ASSERT_TRUE(made);
    ref = *made;
    const TrieKey key(labels_of(owner));
    ASSERT_TRUE(builder.add(ref, {key.data(), key.length()}));
    one_by_one = *trie_put(transaction, one_by_one, LeafKind::kRecord, key, ref);
  }
  const auto built = builder.finish();
  ASSERT_TRUE(built);
  const Trie trie(transaction.window(), *built, LeafKind::kRecord);
  expect_same_order(trie, model);
  expect_same_order(Trie(transaction.window(), one_by_one, LeafKind::kRecord), model);
  for (int look = 0; look < 300; ++look) expect_match(trie, model, random_name(random));
}

TEST_F(TrieTest, ADescentThatIsTooLongToTakeTurnsIsGivenUp) {
  shm::Transaction transaction = store_->begin();
  std::uint32_t root = 0;
  std::string text;
  for (std::size_t label = 0; label < 2 * TrieDescent::kMaxBranches; ++label) {
    text = (label % 2 == 0 ? "a." : "b.") + text;
    const dns::Name owner = name(text);
    root = *trie_put(transaction, root, LeafKind::kRecord, TrieKey(labels_of(owner)),
                     *leaf(transaction, owner));
  }
  const Trie trie(transaction.window(), root, LeafKind::kRecord);
  const dns::Name deep = name(text), top = name("a.");
  const TrieKey keys[] = {TrieKey(labels_of(deep)), TrieKey(labels_of(top))};
  std::array<TrieDescent, 2> descents;
  for (std::size_t i = 0; i < 2; ++i) trie.start(keys[i], descents[i]);
  Trie::run_all(trie.window(), descents);
  EXPECT_FALSE(trie.has_ended(descents[0], keys[0]));
  EXPECT_TRUE(trie.has_ended(descents[1], keys[1]));
  EXPECT_FALSE(trie.has_ended(descents[1], keys[0])) << "of another key";
  EXPECT_FALSE(Trie(trie.window(), root + 1, LeafKind::kRecord).has_ended(descents[1], keys[1]));
}

TEST_F(TrieTest, DamageIsReportedNotFollowed) {
  const Trie outside(store_->window(), 0xFFFFFFFF, LeafKind::kRecord);
  TrieMatch found;
  outside.match(TrieKey(labels_of(name("a."))), found);
  EXPECT_TRUE(found.damaged);
  EXPECT_FALSE(outside.find(TrieKey(labels_of(name("a."))), labels_of(name("a."))));
  EXPECT_FALSE(TrieWalk(outside).next());

  // A branch that points at itself: offsets do not grow, so the descent ends.
  shm::Transaction transaction = store_->begin();
  const auto ref = transaction.allocate(Branch::octets(2));
  ASSERT_TRUE(ref);
  auto* branch = transaction.writable(ref->as<Branch>());
  branch->header = Branch::make(0b11, 0);
  branch->children()[0] = branch->children()[1] = ref->units;
  const Trie loop(transaction.window(), ref->units, LeafKind::kRecord);
  loop.match(TrieKey(labels_of(name("a."))), found);
  EXPECT_TRUE(found.damaged);
  const TrieKey key(labels_of(name("a.")));
  std::array<TrieDescent, 2> descents;
  loop.start(key, descents[0]);
  outside.start(key, descents[1]);
  Trie::run_all(loop.window(), descents);
  EXPECT_FALSE(loop.has_ended(descents[0], key));
  EXPECT_FALSE(outside.has_ended(descents[1], key));
  EXPECT_FALSE(loop.last());
}

}  // namespace trie_test
}  // namespace pando::zone

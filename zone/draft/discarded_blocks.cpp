#include "zone/draft/discarded_blocks.h"

#include <algorithm>

#include "zone/draft/draft.h"
#include "zone/record/record_codec.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// Moves the references of the first list to `stack`, and releases the list.
Status take_discarded(shm::Transaction& transaction, std::uint32_t& lists,
                      std::vector<std::uint32_t>& stack) {
  const auto* list = transaction.window().at(shm::Ref<DiscardedStack>{lists});
  const std::size_t octets = list == nullptr ? 0 : DiscardedStack::octets(list->count);
  if (list == nullptr || transaction.window().room_after(list) < octets)
    return fail(Errc::kCorrupt, "list of discarded data is damaged");
  stack.assign(list->refs(), list->refs() + list->count);
  const std::uint32_t older = list->older;
  transaction.release(shm::Ref<>{lists}, octets);
  lists = older;
  return {};
}

/// Releases the topmost block, and puts the blocks below it on the stack.
Status dismantle_block(shm::Transaction& transaction, std::vector<std::uint32_t>& stack) {
  const std::uint32_t ref = stack.back();
  stack.pop_back();
  LeafBlock leaf;
  const Trie trie(transaction.window(), ref, LeafKind::kRecord);
  if (const Branch* branch = trie.branch_at(ref, leaf)) {
    stack.insert(stack.end(), branch->children(), branch->children() + branch->count());
    transaction.release(shm::Ref<>{ref}, Branch::octets(branch->count()));
  } else if (leaf) {
    release_record(transaction, ref);
  }
  return {};
}

}  // namespace

Result<std::uint32_t> write_discarded(shm::Transaction& transaction,
                                      const std::vector<std::uint32_t>& refs, std::uint32_t older) {
  auto ref = transaction.allocate(DiscardedStack::octets(refs.size()));
  if (!ref) return pass(ref);
  auto* list = transaction.writable(ref->as<DiscardedStack>());
  *list = {static_cast<std::uint32_t>(refs.size()), older};
  std::copy(refs.begin(), refs.end(), list->refs());
  return ref->units;
}

Result<bool> dismantle_discarded(Draft& draft, std::size_t blocks) {
  DraftCore& core = draft.core();
  shm::Transaction& transaction = core.data();
  if (!core.root()) return true;
  const auto* before = transaction.window().at(core.root().as<RootData>());
  if (before == nullptr || before->discarded == 0) return true;
  transaction.use_reserve();
  auto root = core.writable_root();
  if (!root) return pass(root);
  std::vector<std::uint32_t> stack;
  std::uint32_t lists = (*root)->discarded;
  for (; blocks > 0 && (!stack.empty() || lists != 0); --blocks) {
    auto status = stack.empty() ? take_discarded(transaction, lists, stack)
                                : dismantle_block(transaction, stack);
    if (!status) return pass(status);
  }
  if (!stack.empty()) {
    auto list = write_discarded(transaction, stack, lists);
    if (!list) return pass(list);
    lists = *list;
  }
  (*root)->discarded = lists;
  return lists == 0;
}

}  // namespace pando::zone

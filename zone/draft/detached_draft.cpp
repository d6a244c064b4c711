#include "zone/draft/detached_draft.h"

#include <algorithm>
#include <cstring>

#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// Compares all fields but the settings, which live in the store's table and stay the present
/// version's.
bool same_data(ZoneEntry a, const ZoneEntry& b) noexcept {
  a.settings_hash = b.settings_hash;
  a.side_index = b.side_index;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

DetachedDraft::DetachedDraft(shm::Store& store, const shm::VersionInfo& base, dns::NameView apex)
    : apex_(apex),
      base_(store.window(), base.root, base.number),
      data_(store.begin_private()),
      scratch_(store.begin_private()),
      draft_(data_, scratch_, base.root, base.number + 1) {
  // Only a few blocks for a while: `data_` decides whether there is room.
  scratch_.use_reserve();
}

bool DetachedDraft::fits(const StoreView& now) const noexcept {
  const ZoneEntry* began = base_.zone_at(apex_).entry_;
  const ZoneEntry* here = now.zone_at(apex_).entry_;
  return began != nullptr && here != nullptr && same_data(*began, *here);
}

/// A draft puts the lists of blocks that it discards before those already there.
std::vector<std::uint32_t> DetachedDraft::discarded() const {
  const shm::Window window = scratch_.window();
  const std::uint32_t before = base_.root_ == nullptr ? 0 : base_.root_->discarded;
  std::vector<std::uint32_t> refs;
  for (std::uint32_t at = draft_.view().root_->discarded; at != before;) {
    const auto* list = window.at(shm::Ref<DiscardedStack>{at});
    if (list == nullptr) break;
    refs.insert(refs.end(), list->refs(), list->refs() + list->count);
    at = list->older;
  }
  return refs;
}

Status DetachedDraft::adopt(shm::Transaction& transaction, Draft& into) {
  if (!fits(into.view())) return fail(Errc::kExists, "zone moved");
  const ZoneEntry& began = *base_.zone_at(apex_).entry_;
  DraftCore& core = into.core();
  const ZoneEntry& here = *core.entry_at(apex_);
  ZoneEntry entry = *draft_.core().entry_at(apex_);
  if (same_data(entry, here)) return {};
  if (entry.data_version != began.data_version) core.mark_changed(entry);
  entry.settings_hash = here.settings_hash;
  entry.side_index = here.side_index;
  transaction.absorb(std::move(data_));
  auto root = core.writable_root();
  if (!root) return pass(root);
  const std::uint64_t total = (*root)->history_bytes + entry.history_bytes;
  (*root)->history_bytes = total - std::min(total, began.history_bytes);
  // Modulo 2^n, so that a decrease works, too.
  const RootData& made = *draft_.view().root_;
  (*root)->snapshot_losses += made.snapshot_losses - base_.root_->snapshot_losses;
  (*root)->archives += made.archives - base_.root_->archives;
  if (const auto refs = discarded(); !refs.empty())
    if (auto put = core.discard_blocks(refs); !put) return put;
  return core.put_entry(entry, apex_);
}

}  // namespace pando::zone

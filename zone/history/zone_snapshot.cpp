#include "zone/history/zone_snapshot.h"

#include <algorithm>
#include <cstring>

#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

static_assert(kMaxSnapshotLabel == SnapshotEntry::kLabelOctets, "a label fits its entry");

bool may_be_in_label(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

/// Null unless the whole list can be read.
const SnapshotList* list_at(const shm::Window& window, std::uint32_t ref) noexcept {
  const auto* list = window.at(shm::Ref<SnapshotList>{ref});
  const bool whole = list != nullptr && list->count <= kMaxSnapshots &&
                     window.room_after(list) >= SnapshotList::octets(list->count);
  return whole ? list : nullptr;
}

}  // namespace

Status check_label(std::string_view label) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (label.empty() || label.size() > kMaxSnapshotLabel)
    return fail(Errc::kInvalid, "a label has 1 to {} characters", kMaxSnapshotLabel);
  if (!std::all_of(label.begin(), label.end(), may_be_in_label))
    return fail(Errc::kInvalid, "a label has letters, digits, '.', '_' and '-'");
  if (std::all_of(label.begin(), label.end(), is_digit))
    return fail(Errc::kInvalid, "'{}' would be a serial: a label has more than digits", label);
  return {};
}

std::string_view to_text(ZoneSnapshot::State state) noexcept {
  constexpr std::string_view kTexts[] = {"held", "the change history ended",
                                         "more has changed since than limits.snapshots allows",
                                         "low space in the store"};
  const auto number = static_cast<std::size_t>(state);  // damage may be in the store
  return number < std::size(kTexts) ? kTexts[number] : "not known";
}

std::vector<ZoneSnapshot> snapshots_of(const ZoneView& zone) {
  if (!zone) return {};
  return read_snapshots(zone.window_, zone.entry_->snapshots);
}

const ZoneSnapshot* find_snapshot(const std::vector<ZoneSnapshot>& snapshots,
                                  std::string_view label) noexcept {
  const auto found = std::find_if(snapshots.begin(), snapshots.end(),
                                  [&](const ZoneSnapshot& one) { return one.label == label; });
  return found == snapshots.end() ? nullptr : &*found;
}

ZoneView data_of(const ZoneView& zone, const ZoneSnapshot& version) {
  if (!zone || !version.held()) return {};
  if (version.archive == 0) return zone;
  const auto* entry = zone.window_.at(shm::Ref<ZoneEntry>{version.archive});
  if (entry == nullptr || zone.window_.room_after(entry) < entry->octets()) return {};
  ZoneView view = zone;
  view.entry_ = entry;
  return view.apex() == zone.apex() ? view : ZoneView();
}

std::vector<ZoneSnapshot> read_snapshots(const shm::Window& window, std::uint32_t ref) {
  std::vector<ZoneSnapshot> snapshots;
  const SnapshotList* list = ref == 0 ? nullptr : list_at(window, ref);
  if (list == nullptr) return snapshots;
  for (const SnapshotEntry* entry = list->entries(); entry < list->entries() + list->count;
       ++entry) {
    const auto length = std::min<std::size_t>(entry->label_octets, kMaxSnapshotLabel);
    snapshots.push_back({std::string(entry->label, length),
                         {entry->serial},
                         entry->taken,
                         entry->records,
                         static_cast<ZoneSnapshot::State>(entry->state),
                         entry->archive});
  }
  return snapshots;
}

Result<std::uint32_t> write_snapshots(shm::Transaction& transaction,
                                      const std::vector<ZoneSnapshot>& snapshots) {
  if (snapshots.empty()) return 0U;
  auto ref = transaction.allocate(SnapshotList::octets(snapshots.size()));
  if (!ref) return pass(ref);
  auto* list = transaction.writable(ref->as<SnapshotList>());
  *list = {static_cast<std::uint32_t>(snapshots.size()), 0};
  SnapshotEntry* entry = list->entries();
  for (const ZoneSnapshot& one : snapshots) {
    *entry = {one.archive,
              one.serial.value,
              one.taken,
              one.records,
              static_cast<std::uint8_t>(one.state),
              static_cast<std::uint8_t>(one.label.size()),
              {}};
    std::memcpy(entry++->label, one.label.data(), one.label.size());
  }
  return ref->units;
}

void release_snapshot_list(shm::Transaction& transaction, std::uint32_t ref) {
  const SnapshotList* list = ref == 0 ? nullptr : list_at(transaction.window(), ref);
  if (list != nullptr) transaction.release(shm::Ref<>{ref}, SnapshotList::octets(list->count));
}

}  // namespace pando::zone

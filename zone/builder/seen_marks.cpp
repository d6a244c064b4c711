#include "zone/builder/seen_marks.h"

namespace pando::zone {

void SeenMarks::Region::tidy() {
  if (is_tidy) return;
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
  is_tidy = true;
}

SeenMarks::Region& SeenMarks::region_for(std::uint32_t ref) {
  const std::uint32_t region = ref / kUnits;
  if (region >= regions_.size()) regions_.resize(region + std::size_t{1});
  if (regions_[region] == nullptr) regions_[region] = std::make_unique<Region>();
  return *regions_[region];
}

void SeenMarks::mark_name(std::uint32_t ref) {
  region_for(ref).names[ref % kUnits / 64] |= std::uint64_t{1} << (ref % 64);
}

bool SeenMarks::has_name(std::uint32_t ref) const noexcept {
  const Region* region = region_at(ref);
  return region != nullptr && (region->names[ref % kUnits / 64] >> (ref % 64) & 1) != 0;
}

void SeenMarks::mark(std::uint32_t ref, std::uint32_t record) {
  Region& region = region_for(ref);
  const std::size_t room = region.records.capacity();
  if (region.records.size() == room) region.records.reserve(room + room / 4 + kMoreRoom);
  region.records.push_back(mark_of(ref, record));
  region.is_tidy = false;
  if (region.records.size() < region.tidy_at) return;
  region.tidy();
  region.tidy_at = std::max(kFirstTidy, 2 * region.records.size());
}

bool SeenMarks::has_any(std::uint32_t ref, std::uint32_t first, std::uint32_t end) const {
  const Region* region = region_at(ref);
  end = std::min(end, kMaxRecords);  // no record beyond kMaxRecords is marked
  if (region == nullptr || first >= end) return false;
  const std::uint32_t low = mark_of(ref, first);
  const std::uint32_t high = mark_of(ref, end - 1);
  return std::any_of(region->records.begin(), region->records.end(),
                     [&](std::uint32_t mark) { return low <= mark && mark <= high; });
}

std::pair<SeenMarks::Marks, SeenMarks::Marks> SeenMarks::marks_of(Region& region,
                                                                  std::uint32_t ref) {
  region.tidy();
  return {std::lower_bound(region.records.cbegin(), region.records.cend(), mark_of(ref, 0)),
          std::upper_bound(region.records.cbegin(), region.records.cend(),
                           mark_of(ref, kMaxRecords - 1))};
}

bool SeenMarks::has_all(std::uint32_t ref, std::uint32_t records) {
  if (has_name(ref)) return true;
  Region* region = region_at(ref);
  if (region == nullptr) return false;
  const auto [begin, end] = marks_of(*region, ref);
  return static_cast<std::uint64_t>(end - begin) == records;
}

bool SeenMarks::has_some(std::uint32_t ref) {
  if (has_name(ref)) return true;
  Region* region = region_at(ref);
  if (region == nullptr) return false;
  const auto [begin, end] = marks_of(*region, ref);
  return begin != end;
}

std::uint64_t SeenMarks::octets() const noexcept {
  std::uint64_t octets = regions_.capacity() * sizeof(regions_[0]);
  for (const auto& region : regions_)
    if (region != nullptr)
      octets += sizeof(Region) + region->records.capacity() * sizeof(std::uint32_t);
  return octets;
}

}  // namespace pando::zone

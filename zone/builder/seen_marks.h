#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pando::zone {

/// The records of a pinned version that have been seen, in a small part of their memory in the
/// store. A name whose records have all been seen is one bit, found by the reference to its block.
/// In other names each seen record takes four bytes, beside those of its neighbours in the store.
///
///     region of 64 KiB ─▶ | a bit for each unit | unit, number of the record … |
///
/// `record` is the place of a record in its name: sets by type, each with its RDATAs and then its
/// RRSIGs, as in the block.
class SeenMarks {
 public:
  static constexpr std::uint32_t kMaxRecords = std::uint32_t{1} << 19;  ///< of one name

  void mark_name(std::uint32_t ref);
  [[nodiscard]] bool has_name(std::uint32_t ref) const noexcept;
  /// `record` is below kMaxRecords. Marking a record twice has no further effect.
  void mark(std::uint32_t ref, std::uint32_t record);
  /// Whether a record from `first` up to `end` (excluded) was marked one by one.
  [[nodiscard]] bool has_any(std::uint32_t ref, std::uint32_t first, std::uint32_t end) const;
  /// Whether the name was marked, or all its `records` records were.
  [[nodiscard]] bool has_all(std::uint32_t ref, std::uint32_t records);
  /// Whether the name was marked, or one of its records.
  [[nodiscard]] bool has_some(std::uint32_t ref);
  /// Calls `visit(record)` for the records that were marked one by one, ascending.
  template <class Visit>
  void for_each(std::uint32_t ref, Visit&& visit);
  /// Approximate memory of the marks in bytes.
  [[nodiscard]] std::uint64_t octets() const noexcept;

 private:
  static constexpr unsigned kUnitBits = 13;  // 64 KiB in units of 8 bytes
  static constexpr std::uint32_t kUnits = std::uint32_t{1} << kUnitBits;
  static constexpr unsigned kRecordBits = 32 - kUnitBits;
  static_assert(kMaxRecords == std::uint32_t{1} << kRecordBits, "a mark is 32 bits");
  static constexpr std::size_t kFirstTidy = 1024;
  static constexpr std::size_t kMoreRoom = 64;  // records, beside a quarter: doubling wastes more

  struct Region {
    std::array<std::uint64_t, kUnits / 64> names{};
    std::vector<std::uint32_t> records;  // unit, then number
    // size at which duplicates are removed, so that repeated records take no more memory
    std::size_t tidy_at = kFirstTidy;
    bool is_tidy = true;  // sorted, each once
    void tidy();
  };
  using Marks = std::vector<std::uint32_t>::const_iterator;

  [[nodiscard]] static std::uint32_t mark_of(std::uint32_t ref, std::uint32_t record) noexcept {
    return (ref % kUnits) << kRecordBits | record;
  }
  Region& region_for(std::uint32_t ref);
  [[nodiscard]] Region* region_at(std::uint32_t ref) const noexcept {
    const std::uint32_t region = ref / kUnits;
    return region < regions_.size() ? regions_[region].get() : nullptr;
  }
  /// The sorted marks of one name in a region.
  static std::pair<Marks, Marks> marks_of(Region& region, std::uint32_t ref);

  std::vector<std::unique_ptr<Region>> regions_;
};

template <class Visit>
void SeenMarks::for_each(std::uint32_t ref, Visit&& visit) {
  Region* region = region_at(ref);
  if (region == nullptr) return;
  const auto [begin, end] = marks_of(*region, ref);
  for (auto mark = begin; mark != end; ++mark) visit(*mark % kMaxRecords);
}

}  // namespace pando::zone

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pando::worker {

/// Where a key may be in a table; its hash is taken once per query.
struct AnswerPlace {
  static constexpr std::size_t kSets = 2048;
  std::uint32_t set;
  std::uint32_t tag;

  [[nodiscard]] static AnswerPlace of_hash(std::uint64_t hash) noexcept {
    return {static_cast<std::uint32_t>(hash >> 32 & (kSets - 1)),
            static_cast<std::uint32_t>(hash) | 1U};
  }
};

/// When all entries of a table together exceed this size, all are dropped: those in use soon come
/// back.
constexpr std::size_t kAnswerTableBytes = std::size_t{2} << 20;

/// A table of bounded size for parts of answers, one per worker. What is rarely asked for (`wants`)
/// displaces nothing. An entry belongs to one state of a zone's data, so a change of the zone needs
/// no clean-up. `Entry` has `zone` (ZoneView::side_index()), `data_version`
/// (ZoneView::data_version()) and `octets()`, its memory.
template <class Entry>
class AnswerTable {
 public:
  /// The entry at `place` for which `is_same` is true, or null; valid until the next store().
  template <class IsSame>
  [[nodiscard]] const Entry* find(AnswerPlace place, IsSame is_same) const noexcept {
    if (sets_.empty()) return nullptr;
    const Set& set = sets_[place.set];
    unsigned same = 0;
    for (std::size_t way = 0; way < kWays; ++way)
      same |= static_cast<unsigned>(set.tags[way] == place.tag) << way;
    for (; same != 0; same &= same - 1) {
      const Entry& entry = *set.entries[static_cast<std::size_t>(std::countr_zero(same))];
      if (is_same(entry)) return &entry;
    }
    return nullptr;
  }

  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(AnswerPlace place) noexcept {
    if (sets_.empty()) sets_.resize(AnswerPlace::kSets);
    Set& set = sets_[place.set];
    // The entry exists but did not fit the query, or the answer cannot be kept.
    if (std::ranges::find(set.tags, place.tag) != set.tags.end()) return false;
    return std::exchange(set.missed, place.tag) == place.tag;
  }

  /// Puts the entry into an empty way of its set, or in place of another one.
  void store(AnswerPlace place, std::unique_ptr<Entry> entry) {
    if (sets_.empty() || bytes_ + entry->octets() > kAnswerTableBytes) {
      sets_.clear();
      sets_.resize(AnswerPlace::kSets);
      bytes_ = 0;
    }
    Set& set = sets_[place.set];
    const std::size_t victim = victim_in(set, place, *entry);
    if (set.entries[victim]) bytes_ -= set.entries[victim]->octets();
    bytes_ += entry->octets();
    set.tags[victim] = place.tag;
    set.entries[victim] = std::move(entry);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all entries

 private:
  // A root server's 1,500 delegations, plain and with DO, fill a third of the places.
  static constexpr std::size_t kWays = 4;

  struct Set {
    std::array<std::uint32_t, kWays> tags{};  // 0 = empty
    std::uint32_t missed = 0;                 // tag of the last miss
    std::array<std::unique_ptr<Entry>, kWays> entries;
  };

  /// An empty way, else one of the zone's former state, else any.
  static std::size_t victim_in(const Set& set, AnswerPlace place, const Entry& entry) noexcept {
    std::size_t victim = place.tag / 2 % kWays;
    for (std::size_t way = 0; way < kWays; ++way) {
      const Entry* old = set.entries[way].get();
      const bool is_current =
          old != nullptr && (old->zone != entry.zone || old->data_version == entry.data_version);
      if (is_current) continue;
      victim = way;
      if (old == nullptr) break;
    }
    return victim;
  }

  std::vector<Set> sets_;  // allocated at the first miss
  std::size_t bytes_ = 0;  // of all entries
};

}  // namespace pando::worker

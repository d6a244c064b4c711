#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace pando::worker {

/// Where a key may be in a table; its hash is taken once per query.
struct AnswerPlace {
  static constexpr std::size_t kSets = 2048;
  std::uint32_t set;
  std::uint16_t tag;  ///< never 0

  [[nodiscard]] static AnswerPlace of_hash(std::uint64_t hash) noexcept {
    return {static_cast<std::uint32_t>(hash >> 32 & (kSets - 1)),
            static_cast<std::uint16_t>(hash | 1U)};
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
    if (tags_.empty()) return nullptr;
    const auto same = tags_[place.set].same(place.tag);
    for (std::size_t half = 0; half < same.size(); ++half) {
      for (std::uint64_t left = same[half]; left != 0;) {
        const auto at = static_cast<std::size_t>(std::countr_zero(left)) / 16;
        left &= ~(std::uint64_t{0xFFFF} << (16 * at));
        const std::size_t way = 4 * half + at;
        if (way == kWays) break;  // the last miss
        const Entry& entry = *entries_[place.set][way];
        if (is_same(entry)) return &entry;
      }
    }
    return nullptr;
  }

  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(AnswerPlace place) noexcept {
    if (tags_.empty()) allocate();
    Tags& tags = tags_[place.set];
    // The entry exists but did not fit the query, or the answer cannot be kept.
    if (std::ranges::find(tags.of, place.tag) != tags.of.end()) return false;
    return std::exchange(tags.missed, place.tag) == place.tag;
  }

  /// Puts the entry into an empty way of its set, or in place of another one.
  void store(AnswerPlace place, std::unique_ptr<Entry> entry) {
    if (tags_.empty() || bytes_ + entry->octets() > kAnswerTableBytes) allocate();
    Ways& ways = entries_[place.set];
    const std::size_t victim = victim_in(ways, place, *entry);
    if (ways[victim]) bytes_ -= ways[victim]->octets();
    bytes_ += entry->octets();
    tags_[place.set].of[victim] = place.tag;
    ways[victim] = std::move(entry);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all entries

 private:
  // A root server's 1,500 delegations, plain and with DO, fill a fifth of the places.
  static constexpr std::size_t kWays = 7;

  /// The tags of a set: a question that is not kept reads only these. All sets' take 32 kB.
  struct alignas(16) Tags {
    std::array<std::uint16_t, kWays> of{};  // 0 = empty
    std::uint16_t missed = 0;               // tag of the last miss

    /// For each of the eight tags 16 bits, all set where it equals `tag`; four tags a word, the
    /// first one lowest.
    [[nodiscard]] std::array<std::uint64_t, 2> same(std::uint16_t tag) const noexcept {
      static_assert(std::endian::native == std::endian::little, "the first tag is the lowest");
      using Eight = std::uint16_t __attribute__((vector_size(16)));
      Eight all;
      std::memcpy(&all, this, sizeof all);
      const auto are_same = Eight(all == tag);
      std::array<std::uint64_t, 2> halves;
      std::memcpy(halves.data(), &are_same, sizeof are_same);
      return halves;
    }
  };
  using Ways = std::array<std::unique_ptr<Entry>, kWays>;

  /// Empties the table.
  void allocate() {
    // Tags come last: without them the table counts as empty.
    tags_.clear();
    entries_.clear();
    entries_.resize(AnswerPlace::kSets);
    tags_.resize(AnswerPlace::kSets);
    bytes_ = 0;
  }

  /// An empty way, else one of the zone's former state, else any.
  static std::size_t victim_in(const Ways& ways, AnswerPlace place, const Entry& entry) noexcept {
    std::size_t victim = place.tag / 2 % kWays;
    for (std::size_t way = 0; way < kWays; ++way) {
      const Entry* old = ways[way].get();
      const bool is_current =
          old != nullptr && (old->zone != entry.zone || old->data_version == entry.data_version);
      if (is_current) continue;
      victim = way;
      if (old == nullptr) break;
    }
    return victim;
  }

  std::vector<Tags> tags_;  // allocated at the first miss, as entries_
  std::vector<Ways> entries_;
  std::size_t bytes_ = 0;  // of all entries
};

}  // namespace pando::worker

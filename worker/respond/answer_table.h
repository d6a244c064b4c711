#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "zone/read/fetch.h"

namespace pando::worker {

/// Where a key may be in a table; its hash is taken once per query.
struct AnswerPlace {
  static constexpr std::size_t kSets = 2048;
  std::uint16_t set = 0;
  std::uint16_t tag = 0;  ///< 0: nowhere

  [[nodiscard]] static AnswerPlace of_hash(std::uint64_t hash) noexcept {
    return {static_cast<std::uint16_t>(hash >> 32 & (kSets - 1)),
            static_cast<std::uint16_t>(hash | 1U)};
  }
};

/// When all entries of a table together exceed this size, all are dropped: those in use soon come
/// back.
constexpr std::size_t kAnswerTableBytes = std::size_t{2} << 20;

/// A table of bounded size for parts of answers, one per worker. What is rarely asked for (`wants`)
/// displaces nothing. An entry belongs to one state of a zone's data, so a change of the zone needs
/// no clean-up. `Head` has `zone` (ZoneView::side_index()) and `data_version`
/// (ZoneView::data_version()).
///
/// An entry is one block of memory: a head, and octets right after it. A table's memory is seldom
/// in the processor's caches, and each part that only another part leads to would be waited for.
template <class Head>
class AnswerTable {
 public:
  static_assert(std::is_trivially_copyable_v<Head> && alignof(Head) <= 8);

  /// The octets after the head of an entry; they begin at an address that 8 divides.
  [[nodiscard]] static const std::uint8_t* behind(const Head& head) noexcept {
    return reinterpret_cast<const std::uint8_t*>(&head + 1);
  }

  /// The entry at `place` for which `is_same` is true, or null; valid until the next store().
  template <class IsSame>
  [[nodiscard]] Head* find(AnswerPlace place, IsSame is_same) noexcept {
    Head* found = nullptr;
    each_way(place, [&](std::size_t way) {
      Head* const head = head_of(sets_[place.set].blocks[way]);
      if (is_same(*head)) found = head;
      return found == nullptr;
    });
    return found;
  }
  template <class IsSame>
  [[nodiscard]] const Head* find(AnswerPlace place, IsSame is_same) const noexcept {
    return const_cast<AnswerTable*>(this)->find(place, is_same);
  }

  /// Forgets the entry that find() gave for `place`. Its memory is used for the next one there.
  void drop(AnswerPlace place, const Head& entry) noexcept {
    each_way(place, [&](std::size_t way) {
      const bool is_entry = head_of(sets_[place.set].blocks[way]) == &entry;
      if (is_entry) tags_[place.set].of[way] = 0;
      return !is_entry;
    });
  }

  /// Prefetches the memory that find() reads first.
  void fetch(AnswerPlace place) const noexcept {
    if (tags_.empty()) return;
    zone::fetch(&tags_[place.set]);
    zone::fetch(&sets_[place.set]);
  }
  /// Prefetches the entry that may be at `place`, some time after fetch().
  void fetch_entry(AnswerPlace place) const noexcept {
    each_way(place, [&](std::size_t way) {
      const Set& set = sets_[place.set];
      const Line* line = set.blocks[way].get();
#pragma GCC unroll 4
      for (std::size_t left = set.lines[way]; left > 0; --left) zone::fetch(line++);
      return false;
    });
  }

  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(AnswerPlace place) noexcept {
    if (tags_.empty()) allocate();
    Tags& tags = tags_[place.set];
    // The entry exists but did not fit the query, or the answer cannot be cached.
    if (std::ranges::find(tags.of, place.tag) != tags.of.end()) return false;
    return std::exchange(tags.missed, place.tag) == place.tag;
  }

  /// Largest entry, in octets; about four times as large as any answer that is cached.
  static constexpr std::size_t kMaxEntryOctets = 255 * std::size_t{64};

  /// Puts an entry of a head and octets, given in parts, into an empty way of its set, or in place
  /// of another one.
  void store(AnswerPlace place, const Head& head, std::initializer_list<ByteView> parts) {
    std::size_t octets = sizeof(Head);
    for (const ByteView part : parts) octets += part.size();
    PANDO_ASSERT(octets <= kMaxEntryOctets);
    const std::size_t lines = (octets + sizeof(Line) - 1) / sizeof(Line);
    if (tags_.empty() || bytes_ + lines * sizeof(Line) > kAnswerTableBytes) allocate();
    auto block = std::make_unique_for_overwrite<Line[]>(lines);
    auto* out = reinterpret_cast<std::uint8_t*>(block.get());
    std::memcpy(out, &head, sizeof head);
    out += sizeof head;
    for (const ByteView part : parts) out = std::copy(part.begin(), part.end(), out);
    Set& set = sets_[place.set];
    const std::size_t victim = victim_in(place, head);
    bytes_ += (lines - set.lines[victim]) * sizeof(Line);
    tags_[place.set].of[victim] = place.tag;
    set.lines[victim] = static_cast<std::uint8_t>(lines);
    set.blocks[victim] = std::move(block);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all entries

 private:
  // A root server's 1,500 delegations, plain and with DO, fill a fifth of the places.
  static constexpr std::size_t kWays = 7;

  /// Octets that the processor fetches at once.
  struct alignas(64) Line {
    std::array<std::uint8_t, 64> octets;
  };
  using Block = std::unique_ptr<Line[]>;

  /// The tags of a set: a question without an entry reads only these. All sets' take 32 kB.
  struct alignas(16) Tags {
    std::array<std::uint16_t, kWays> of{};  // 0 = empty
    std::uint16_t missed = 0;               // tag of the last miss

    /// For each way an octet, all bits set where its tag equals `tag`; the first one is lowest.
    [[nodiscard]] std::uint64_t same(std::uint16_t tag) const noexcept {
      static_assert(std::endian::native == std::endian::little, "the first tag is the lowest");
      using Eight = std::uint16_t __attribute__((vector_size(16)));
      using EightOctets = std::uint8_t __attribute__((vector_size(8)));
      Eight all;
      std::memcpy(&all, this, sizeof all);
      const auto are_same = __builtin_convertvector(Eight(all == tag), EightOctets);
      std::uint64_t octets;
      std::memcpy(&octets, &are_same, sizeof are_same);
      return octets & (~std::uint64_t{0} >> (64 - 8 * kWays));  // without that of the last miss
    }
  };
  struct alignas(64) Set {
    std::array<Block, kWays> blocks;
    std::array<std::uint8_t, kWays> lines{};  // of each block
  };

  /// Calls `visit(way)` for the ways whose tag is that of `place`, until it returns false.
  template <class Visit>
  void each_way(AnswerPlace place, Visit visit) const noexcept {
    if (tags_.empty()) return;
    for (std::uint64_t left = tags_[place.set].same(place.tag); left != 0;) {
      const auto way = static_cast<std::size_t>(std::countr_zero(left)) / 8;
      left &= ~(std::uint64_t{0xFF} << (8 * way));
      if (!visit(way)) return;
    }
  }
  static Head* head_of(const Block& block) noexcept { return reinterpret_cast<Head*>(block.get()); }

  /// Empties the table.
  void allocate() {
    // Tags come last: without them the table counts as empty.
    tags_.clear();
    sets_.clear();
    sets_.resize(AnswerPlace::kSets);
    tags_.resize(AnswerPlace::kSets);
    bytes_ = 0;
  }

  /// An empty way, else one of the zone's former state, else any.
  std::size_t victim_in(AnswerPlace place, const Head& head) const noexcept {
    std::size_t victim = place.tag / 2 % kWays;
    for (std::size_t way = 0; way < kWays; ++way) {
      if (tags_[place.set].of[way] == 0) return way;
      const Head* const old = head_of(sets_[place.set].blocks[way]);
      if (old->zone == head.zone && old->data_version != head.data_version) victim = way;
    }
    return victim;
  }

  std::vector<Tags> tags_;  // allocated at the first miss, as sets_
  std::vector<Set> sets_;
  std::size_t bytes_ = 0;  // of all entries
};

}  // namespace pando::worker

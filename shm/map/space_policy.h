#pragma once

#include <cstdint>

#include "shm/map/reserve.h"

namespace pando::shm {

/// Counts the chunks in use, and decides which steps may take more. Pure arithmetic: the pool calls
/// it under its lock, and gives out copies.
///
/// The quota is the configured one, or less where the machine has less memory. So a full machine is
/// a full store: reserve, low space and compaction begin before the last chunk is gone.
class SpacePolicy {
 public:
  /// `quota`: chunks that may be in use. `limit`: bound of the chunk numbers, which may be above
  /// the quota.
  SpacePolicy(std::uint32_t quota, std::uint32_t limit) noexcept;

  /// The space for deletes and compaction in a store that started above its limit, or without room
  /// for deletes. There, space freed by one delete is not available to the next, so this space must
  /// always suffice.
  [[nodiscard]] static std::uint32_t allowance(std::uint32_t quota) noexcept;
  /// To be called when all chunks of an attached store are counted; `filled` of them have content.
  void admit(std::uint32_t filled) noexcept;

  /// The machine has memory for `chunks` chunks, those in use included.
  void machine_has(std::uint32_t chunks) noexcept;
  /// The machine refused memory for one more chunk; `spare` free chunks have some.
  void machine_refused(std::uint32_t spare) noexcept;
  /// The machine gave memory again.
  void machine_gave() noexcept { refused_ = false; }
  [[nodiscard]] bool is_refused() const noexcept { return refused_; }
  /// Chunks that may be in use now.
  [[nodiscard]] std::uint32_t quota() const noexcept { return quota_; }
  /// Whether the machine has less than the configured quota.
  [[nodiscard]] bool is_bound_by_machine() const noexcept { return quota_ < configured_; }

  void count_taken() noexcept;
  void count_freed() noexcept;
  void count_waiting() noexcept { ++waiting_; }
  void count_waited() noexcept { --waiting_; }

  [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::uint32_t peak_in_use() const noexcept { return peak_in_use_; }
  /// Chunks in use that only readers of old versions need.
  [[nodiscard]] std::uint32_t waiting() const noexcept { return waiting_; }
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }
  /// The most chunks that any step may take: the quota, or more in a store that started too full.
  [[nodiscard]] std::uint32_t ceiling() const noexcept { return ceiling_; }

  /// Whether a step of kind `use` can take `more` chunks and leave its part of the reserve.
  [[nodiscard]] bool leaves(std::uint32_t more, Reserve use) const noexcept;
  /// Less than a sixteenth of the quota is free, or no more than the reserve.
  [[nodiscard]] bool low_space() const noexcept { return is_low_with(in_use_); }
  /// Low space that would remain if all waiting chunks were free.
  [[nodiscard]] bool low_space_without_pins() const noexcept {
    return is_low_with(in_use_ - waiting_);
  }
  /// Less than an eighth of the quota is free: spared chunks are given up.
  [[nodiscard]] bool is_crowded() const noexcept;
  /// See Transaction::can_afford().
  [[nodiscard]] bool can_afford(std::uint64_t bytes, Reserve use) const noexcept;

  /// Number of free chunks whose memory is not returned, so that deletes and compaction work when
  /// the machine has none left: the reserve of a store that is full with the present use.
  [[nodiscard]] std::uint32_t cushion() const noexcept;
  /// Number of chunks that get memory in one step, when `spare` free chunks have memory already.
  [[nodiscard]] std::uint32_t growth(std::uint32_t spare) const noexcept;
  /// Number of free chunks that may keep their memory.
  [[nodiscard]] std::uint32_t most_spare() const noexcept;

  /// Bytes that compaction may write, with `open_rest` bytes left in the open chunk. Compaction
  /// takes neither the last chunk nor the rest of that chunk once a root block has taken it.
  [[nodiscard]] std::uint64_t room_to_copy(std::uint32_t open_rest) const noexcept;
  /// Bytes that a walk through all data must give back to be worth it, with `room` for copies.
  [[nodiscard]] std::uint64_t least_gain(std::uint64_t room) const noexcept;

 private:
  [[nodiscard]] bool is_low_with(std::uint32_t in_use) const noexcept;
  [[nodiscard]] std::uint32_t growth_step() const noexcept;

  std::uint32_t configured_;
  std::uint32_t quota_;
  std::uint32_t limit_;
  std::uint32_t reserve_;
  // Deletes and compaction get more in a store that started without room for them: `beyond_` chunks
  // above the present use.
  std::uint32_t ceiling_;
  std::uint32_t beyond_ = 0;
  std::uint32_t in_use_ = 0;
  std::uint32_t peak_in_use_ = 0;
  std::uint32_t waiting_ = 0;
  bool refused_ = false;
};

}  // namespace pando::shm

#pragma once

#include <cstdint>
#include <vector>

#include "shm/map/ref.h"
#include "zone/audit/audit.h"

namespace pando::zone {

using UsageField = std::uint64_t Usage::*;

/// Counts the blocks that a walk over the store meets, by content and by chunk, and bounds the
/// walk: damage may lead to the same blocks again and again.
class BlockTally {
 public:
  /// Bytes between two calls of AuditProgress: about a millisecond.
  static constexpr std::uint64_t kTellEvery = std::uint64_t{1} << 20;

  explicit BlockTally(shm::Window window, AuditProgress progress = {});

  /// Counts a block of `octets` as `kind`. False: it does not lie in the store, or more blocks were
  /// met than the store can have.
  bool count(std::uint32_t ref, std::size_t octets, UsageField kind);
  /// More blocks may come.
  [[nodiscard]] bool has_room() const noexcept { return left_ > 0; }
  /// Bytes of blocks met, rounded up as the store's allocator does.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return met_; }
  /// Counts `octets` of blocks that were met as `from` as another kind.
  void move(std::uint64_t octets, UsageField from, UsageField to) noexcept {
    usage_.*from -= octets;
    usage_.*to += octets;
  }

  [[nodiscard]] const Usage& usage() const noexcept { return usage_; }
  /// Bytes of blocks in each chunk.
  [[nodiscard]] const std::vector<std::uint32_t>& chunks() const noexcept { return chunks_; }

 private:
  void count_in_chunks(std::uint64_t at, std::uint64_t bytes);

  shm::Window window_;
  AuditProgress progress_;
  std::uint64_t left_;      // upper bound of blocks still to meet
  std::uint64_t met_ = 0;   // bytes of blocks met
  std::uint64_t told_ = 0;  // bytes of `met_` that were reported
  Usage usage_;
  std::vector<std::uint32_t> chunks_;
};

}  // namespace pando::zone

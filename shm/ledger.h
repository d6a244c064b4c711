#pragma once

#include <cstdint>
#include <vector>

namespace pando::shm {

/// The effects of one transaction on one chunk.
struct LedgerEntry {
  static constexpr std::uint32_t kNotTaken = UINT32_MAX;

  std::uint32_t chunk = 0;
  std::uint32_t fresh_from = kNotTaken;  ///< bytes of the chunk that were in use when it was taken
  std::int64_t delta = 0;                ///< live bytes added minus released
  bool run = false;                      ///< part of a block of several chunks
  bool checked = false;

  [[nodiscard]] bool taken() const noexcept { return fresh_from != kNotTaken; }
};

/// The chunks that a transaction touched. A small update touches three or four; a zone of 10 GB
/// touches 160,000. So the ledger is a list that is searched backwards while it is short, and gets
/// a hash index once it is long.
class Ledger {
 public:
  LedgerEntry& at(std::uint32_t chunk) {
    if (LedgerEntry* known = find(chunk)) return *known;
    entries_.emplace_back().chunk = chunk;
    if (entries_.size() > kListed) index_last();
    return entries_.back();
  }
  [[nodiscard]] LedgerEntry* find(std::uint32_t chunk) noexcept {
    return const_cast<LedgerEntry*>(static_cast<const Ledger*>(this)->find(chunk));
  }
  [[nodiscard]] const LedgerEntry* find(std::uint32_t chunk) const noexcept {
    return entries_.size() <= kListed ? find_listed(chunk) : find_indexed(chunk);
  }
  [[nodiscard]] std::vector<LedgerEntry>& entries() noexcept { return entries_; }
  [[nodiscard]] const std::vector<LedgerEntry>& entries() const noexcept { return entries_; }

 private:
  static constexpr std::size_t kListed = 8;

  [[nodiscard]] const LedgerEntry* find_listed(std::uint32_t chunk) const noexcept {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
      if (entry->chunk == chunk) return &*entry;
    return nullptr;
  }
  [[nodiscard]] const LedgerEntry* find_indexed(std::uint32_t chunk) const noexcept {
    for (std::size_t at = place(chunk); index_[at] != 0; at = (at + 1) & (index_.size() - 1))
      if (entries_[index_[at] - 1].chunk == chunk) return &entries_[index_[at] - 1];
    return nullptr;
  }
  [[nodiscard]] std::size_t place(std::uint32_t chunk) const noexcept {
    return (chunk * 0x9E3779B97F4A7C15U >> 32) & (index_.size() - 1);
  }
  void index_last() {
    if (index_.size() < entries_.size() * 2) {
      index_.assign(entries_.size() * 4 < 64 ? 64 : std::bit_ceil(entries_.size() * 4), 0);
      for (std::size_t i = 0; i < entries_.size(); ++i) index_entry(i);
    } else {
      index_entry(entries_.size() - 1);
    }
  }
  void index_entry(std::size_t i) noexcept {
    std::size_t at = place(entries_[i].chunk);
    while (index_[at] != 0) at = (at + 1) & (index_.size() - 1);
    index_[at] = static_cast<std::uint32_t>(i + 1);
  }

  std::vector<LedgerEntry> entries_;
  std::vector<std::uint32_t> index_;  // position in entries_ + 1; 0 = empty; a power of two
};

}  // namespace pando::shm

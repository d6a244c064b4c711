#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

/// Counters by key in shared memory: one writer, any number of readers, in bounded memory. A row
/// never changes its key, so its counters never decrease. Memory of zeros is an empty table.
namespace pando::shm {

/// One key with its counters. The writer alone stores; all loads and stores of counters are
/// relaxed. The key is stored last, with release, so a reader that finds it finds whole counters.
/// A crash before that store leaves an empty row.
template <std::size_t kCounters>
struct CountRow {
  std::atomic<std::uint64_t> key;  // 0 = empty
  std::array<std::atomic<std::uint64_t>, kCounters> counters;
};

/// Rows that are tried for a key: bounds the work at a full table, and in damaged memory.
inline constexpr std::size_t kCountRowTries = 32;

/// The row of `key`, which is not 0; nullptr if the table has none. `rows`: a power of two of them.
template <class Row>
[[nodiscard]] Row* find_count_row(std::span<Row> rows, std::uint64_t key) noexcept {
  for (std::size_t i = 0; i < std::min(kCountRowTries, rows.size()); ++i) {
    Row& row = rows[(key + i) & (rows.size() - 1)];
    const std::uint64_t found = row.key.load(std::memory_order_acquire);
    if (found == key) return &row;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

/// For the writer: the row of `key`, made if there is room; nullptr where there is none.
template <class Row>
[[nodiscard]] Row* take_count_row(std::span<Row> rows, std::uint64_t key) noexcept {
  for (std::size_t i = 0; i < std::min(kCountRowTries, rows.size()); ++i) {
    Row& row = rows[(key + i) & (rows.size() - 1)];
    const std::uint64_t found = row.key.load(std::memory_order_relaxed);
    if (found == key) return &row;
    if (found != 0) continue;
    row.key.store(key, std::memory_order_release);
    return &row;
  }
  return nullptr;
}

/// For the writer, which is the only one: no locked instruction is needed.
template <class Row>
void count_in_row(Row& row, std::size_t counter) noexcept {
  auto& place = row.counters[counter];
  place.store(place.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace pando::shm

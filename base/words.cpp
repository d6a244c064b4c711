#include "base/words.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace pando {

namespace {

constexpr std::size_t kLongest = 64;
using Row = std::array<std::size_t, kLongest + 1>;

/// The number of edits between two words of at most kLongest characters.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<Row, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    Row& row = rows[i % 3];
    const Row& before = rows[(i + 2) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], rows[(i + 1) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  if (word.size() > kLongest) return best;
  std::size_t least = word.size() / 2 + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    if (const std::size_t edits = distance(word, candidate); edits < least) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}

}  // namespace pando

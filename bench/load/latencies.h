#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace pando::bench {

/// The value below which this share (0 to 1) of `values` lies; sorts them. 0 when there are none.
inline double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

/// Appends all values as they are in memory to the file that the environment variable LATENCIES
/// names, if it does: percentiles of several runs together cannot be had from those of each.
inline void keep(const std::vector<double>& values) {
  const char* path = std::getenv("LATENCIES");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "ab");
  if (file == nullptr ||
      std::fwrite(values.data(), sizeof(double), values.size(), file) != values.size())
    std::perror(path);
  if (file != nullptr) (void)std::fclose(file);
}

}  // namespace pando::bench

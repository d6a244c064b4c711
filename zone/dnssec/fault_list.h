#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pando::zone {

/// Faults of a zone in the order of its names, although several threads find them. Counts all, and
/// keeps the lines of the first ones.
class FaultList {
 public:
  static constexpr std::size_t kMaxLines = 20;  // a fault is often one of all names

  /// `place`: ascending with the names.
  void add(std::uint64_t place, std::string line) {
    ++count_;
    if (lines_.size() >= 2 * kMaxLines) shorten();
    lines_.emplace_back(place, std::move(line));
  }
  void add_all(FaultList&& other) {
    const std::uint64_t count = count_ + other.count_;
    for (auto& [place, line] : other.lines_) add(place, std::move(line));
    count_ = count;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::vector<std::string> take_lines() {
    shorten();
    std::vector<std::string> texts;
    for (auto& [place, line] : lines_) texts.push_back(std::move(line));
    return texts;
  }

 private:
  void shorten() {
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (lines_.size() > kMaxLines) lines_.resize(kMaxLines);
  }
  std::vector<std::pair<std::uint64_t, std::string>> lines_;
  std::uint64_t count_ = 0;
};

}  // namespace pando::zone

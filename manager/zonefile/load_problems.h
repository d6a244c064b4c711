#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "dns/name.h"

namespace pando::manager {

/// Which zones' files could not be loaded, and of the first ones why. A zone has a place, its index
/// in the store's side table, which may become another zone's when it has left; so four bytes for
/// each place up to the last with a problem say whose it is. Lives on the commit thread.
class LoadProblems {
 public:
  explicit LoadProblems(std::size_t most_texts = kMostTexts) : most_texts_(most_texts) {}

  void put(dns::NameView zone, std::uint32_t place, const std::string& text);
  void remove(dns::NameView zone, std::uint32_t place);
  /// So that nobody needs to look for a zone's place.
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool has(dns::NameView zone, std::uint32_t place) const;
  /// One line, for people; empty: none. Where no text was kept it says how to get one.
  [[nodiscard]] std::string text(dns::NameView zone, std::uint32_t place) const;

 private:
  static constexpr std::size_t kMostTexts = 10'000;  // a few MB

  std::size_t most_texts_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> marks_;  // of the zone's name, by place; 0 = none
  std::unordered_map<std::uint32_t, std::string> texts_;
};

}  // namespace pando::manager

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "dns/name.h"

namespace pando::manager {

/// Zones whose files could not be loaded, with the reasons of the first `most_texts` zones. A zone
/// is identified by its index in the store's side table ("place"). A place can pass to another
/// zone, so a 32-bit mark of the name is kept for each place up to the last problem. Lives on the
/// commit thread.
class LoadProblems {
 public:
  explicit LoadProblems(std::size_t most_texts = kMaxTexts) : most_texts_(most_texts) {}

  void put(dns::NameView zone, std::uint32_t place, const std::string& text);
  void remove(dns::NameView zone, std::uint32_t place);
  /// Lets callers skip the search for a zone's place.
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool has(dns::NameView zone, std::uint32_t place) const;
  /// The problem in one line for the operator; empty: no problem. Without a stored text, the line
  /// names the command that gives the reason.
  [[nodiscard]] std::string text(dns::NameView zone, std::uint32_t place) const;

 private:
  static constexpr std::size_t kMaxTexts = 10'000;  // a few MB

  std::size_t most_texts_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> marks_;  // hash of the zone's name, by place; 0 = no problem
  std::unordered_map<std::uint32_t, std::string> texts_;
};

}  // namespace pando::manager

#include "manager/zonefile/load_problems.h"

#include "dns/folded_key.h"

namespace pando::manager {

namespace {

/// Hash of the zone's name, never 0. On a hash collision, a zone that takes over another zone's
/// place shows the old problem until its own file was checked.
std::uint32_t mark_of(dns::NameView zone) {
  return static_cast<std::uint32_t>(std::hash<std::string>()(dns::folded_key(zone))) | 1U;
}

}  // namespace

void LoadProblems::put(dns::NameView zone, std::uint32_t place, const std::string& text) {
  if (marks_.size() <= place) marks_.resize(place + std::size_t{1});
  if (marks_[place] == 0) ++count_;
  marks_[place] = mark_of(zone);
  texts_.erase(place);
  if (texts_.size() < most_texts_ && !text.empty()) texts_.emplace(place, text);
}

void LoadProblems::remove(dns::NameView zone, std::uint32_t place) {
  if (!has(zone, place)) return;
  marks_[place] = 0;
  --count_;
  texts_.erase(place);
}

bool LoadProblems::has(dns::NameView zone, std::uint32_t place) const {
  return place < marks_.size() && marks_[place] != 0 && marks_[place] == mark_of(zone);
}

std::string LoadProblems::text(dns::NameView zone, std::uint32_t place) const {
  if (!has(zone, place)) return {};
  const auto found = texts_.find(place);
  return found != texts_.end() ? found->second
                               : "its file could not be loaded: 'pandoctl zone check' says why";
}

}  // namespace pando::manager

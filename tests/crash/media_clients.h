#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/crash/media_faults.h"

namespace pando::manager::testing {

/// The numbers of the updates that a zone has: each update adds a name of its own.
using Numbers = std::set<int>;

/// A zone as it is served.
struct ServedZone {
  std::string name;
  std::uint32_t serial = 0;
  Numbers numbers{};
};

/// The clients' knowledge of the zones. Clients may never see the loss of an acknowledged update of
/// which an intact copy is left, nor a serial that stands for two contents.
class MediaClients {
 public:
  /// Whether a copy has the zone's update at this position in the journal.
  using IsIntact = std::function<bool(const std::string& zone, std::uint64_t position)>;

  MediaClients(MediaFaults::Counts& counts, IsIntact is_intact)
      : counts_(counts), is_intact_(std::move(is_intact)) {}

  void acknowledge(const std::string& zone, int number, std::uint64_t position) {
    zones_[zone].acknowledged[number] = position;
  }
  /// The store is a new one, with whatever the copies have.
  void store_is_new() { complete_.clear(); }
  void zone_left(const std::string& zone) { complete_.erase(zone); }
  /// The zone's serial may go back, for once, for this reason.
  void may_go_back(const std::string& zone, const std::string& why) { may_go_back_[zone] = why; }
  /// Nothing has the zone's updates any more. Returns their number.
  std::size_t forget(const std::string& zone) {
    const std::size_t forgotten = zones_[zone].acknowledged.size();
    zones_[zone].acknowledged.clear();
    return forgotten;
  }
  /// Copies without the zone's destroyed updates have taken the place of all others.
  void forget_destroyed(const std::string& zone) {
    counts_["updates lost with their last copy"] +=
        std::erase_if(zones_[zone].acknowledged, [&](const auto& update) {
          return !is_intact_(zone, update.second);
        });
  }

  /// The zone has each intact update, and each update that it was served with before.
  void check_updates(const ServedZone& served, const std::string& said) {
    const bool was_complete = !complete_.insert(served.name).second;
    const auto& published = zones_[served.name].published;
    if (!published.empty() && served.serial > published.rbegin()->first)
      ++counts_["serials raised for a doubt"];
    auto& acknowledged = zones_[served.name].acknowledged;
    for (const auto& [number, position] : acknowledged)
      EXPECT_TRUE(served.numbers.contains(number) ||
                  !(was_complete || is_intact_(served.name, position)))
          << served.name << " lacks update " << number << " at position " << position << said;
    // An update that was lost with its last copy is forgotten; all others must stay.
    counts_["updates lost with their last copy"] += std::erase_if(
        acknowledged, [&](const auto& update) { return !served.numbers.contains(update.first); });
  }

  /// The serial has no two contents, and does not go back.
  void check_serial(const ServedZone& served, const std::string& said) {
    auto& published = zones_[served.name].published;
    if (const auto why = may_go_back_.extract(served.name)) {
      const auto same = published.find(served.serial);
      const bool is_other = same != published.end() && same->second != served.numbers;
      const bool goes_back = is_other || published.upper_bound(served.serial) != published.end();
      counts_[why.mapped()] += goes_back ? 1 : 0;
      published.erase(published.lower_bound(served.serial), published.end());
    }
    const auto [known, is_new] = published.try_emplace(served.serial, served.numbers);
    EXPECT_TRUE(is_new || known->second == served.numbers)
        << "serial " << served.serial << " of " << served.name << " stands for other data" << said;
    EXPECT_EQ(std::next(known), published.end())
        << "serial " << served.serial << " of " << served.name << " is behind" << said;
  }

 private:
  struct Zone {
    std::map<int, std::uint64_t> acknowledged;   // number → position in the journal
    std::map<std::uint32_t, Numbers> published;  // serial → contents
  };

  MediaFaults::Counts& counts_;
  IsIntact is_intact_;
  std::map<std::string, Zone> zones_;
  std::set<std::string> complete_;  // zones that were served and checked in this store
  std::map<std::string, std::string> may_go_back_;  // zones, and why
};

}  // namespace pando::manager::testing

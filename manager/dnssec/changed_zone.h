#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dns/name.h"
#include "manager/dnssec/touched_names.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// What is wrong with the zone that an update would leave; none = nothing.
using Fault = std::optional<std::string>;

struct CanonicalOrder {
  bool operator()(dns::NameView a, dns::NameView b) const noexcept {
    return compare_canonical(a, b) < 0;
  }
  using is_transparent = void;
};
using NameSet = std::set<dns::Name, CanonicalOrder>;

/// Finds, from one name on, the first that counts, and remembers where each one that was passed
/// over led to: a run of names that an update takes away is walked once, not once for each of them.
class Shortcuts {
 public:
  /// `step` leads from a name to the next, none at the end; `counts` must always say the same.
  template <class Step, class Counts>
  std::optional<dns::Name> find(std::optional<dns::Name> at, Step&& step, Counts&& counts) {
    std::vector<dns::Name> passed;
    while (at && !counts(*at)) {
      if (const auto known = ends_.find(*at); known != ends_.end()) {
        at = known->second;
        break;
      }
      passed.push_back(*at);
      at = step(passed.back());
    }
    for (const dns::Name& name : passed) ends_.emplace(name, at);
    return at;
  }

 private:
  std::map<dns::Name, std::optional<dns::Name>, CanonicalOrder> ends_;
};

/// A zone as an update would leave it: a version of the store and, over it, the names that the
/// update changes. Nothing here walks the zone: what is read is bounded by a number of looks, and
/// what was found after they ran out does not count (see exhausted()).
class ChangedZone {
 public:
  using Node = TouchedNames::Node;
  using RRset = TouchedNames::RRset;
  using RRsets = TouchedNames::RRsets;
  using Tree = zone::ZoneView::Tree;
  using ChangedNodes = std::map<dns::Name, const Node*, CanonicalOrder>;

  /// RFC 4035 §2.2, §2.3: what the zone has at a name is authoritative, or a delegation of which
  /// only DS and NSEC are, or stands below a delegation or a DNAME and is not.
  enum class Place : std::uint8_t { kAuthoritative, kCut, kOccluded };

  /// Looks at names and hashes that one update may cost: 20 to 30 for each name that comes or goes,
  /// and a microsecond each. Of names without signatures a message of 64 KiB deletes 3,600.
  static constexpr std::size_t kMaxLooks = 150'000;

  /// `overlay` must outlive this, and may no longer change but by what is read here.
  ChangedZone(const zone::ZoneView& before, TouchedNames& overlay, std::size_t looks = kMaxLooks);

  [[nodiscard]] dns::NameView apex() const noexcept { return before_.apex(); }
  [[nodiscard]] const zone::ZoneView& before() const noexcept { return before_; }
  /// The names at which anything differs.
  [[nodiscard]] const ChangedNodes& changed() const noexcept { return changed_; }
  /// The names whose part in signatures and denial may differ: those that are changed() but for
  /// owners of NSEC3 records alone, and all that is below a delegation or DNAME that comes or goes.
  [[nodiscard]] const NameSet& affected() const noexcept { return affected_; }

  const Node& at(dns::NameView name);
  Place place_now(dns::NameView name) { return place_of(name, &Node::now); }
  Place place_before(dns::NameView name) { return place_of(name, &Node::before); }

  /// The nearest owner before or behind `name`; none at the end. The apex is before all names.
  std::optional<dns::Name> next(Tree tree, dns::NameView name);
  std::optional<dns::Name> previous(Tree tree, dns::NameView name);
  std::optional<dns::Name> last(Tree tree);

  /// Takes `looks` from what is left; false when it was not there.
  bool look(std::size_t looks = 1) noexcept;
  [[nodiscard]] bool exhausted() const noexcept { return exhausted_; }

  /// Types that make a name exist: all but NSEC, NSEC3 and RRSIG.
  [[nodiscard]] static std::vector<dns::RRType> own_types(const RRsets& rrsets);
  [[nodiscard]] static const RRset* find(const RRsets& rrsets, dns::RRType type) noexcept;
  /// RDATA of the RRSIGs that cover `type`.
  [[nodiscard]] static std::vector<ByteView> signatures(const RRsets& rrsets, dns::RRType type);

 private:
  [[nodiscard]] bool is_barrier(dns::NameView name, const RRsets& rrsets) const noexcept;
  [[nodiscard]] static bool is_in(Tree tree, const RRsets& rrsets) noexcept;
  void find_affected();
  Place place_of(dns::NameView name, RRsets Node::* when);
  enum class Direction : std::uint8_t { kForward, kBackward };
  std::optional<dns::Name> unchanged_from(Tree tree, zone::RecordView record, Direction direction);
  /// What the update leaves or puts into a tree, without the apex.
  [[nodiscard]] const NameSet& present(Tree tree) const noexcept {
    return present_[tree == Tree::kNsec3 ? 1 : 0];
  }

  zone::ZoneView before_;
  TouchedNames& overlay_;
  ChangedNodes changed_;
  std::array<NameSet, 2> present_;      // changed names by tree
  std::array<Shortcuts, 4> unchanged_;  // by tree and direction
  NameSet affected_;
  std::size_t looks_;
  bool exhausted_ = false;
};

}  // namespace pando::manager

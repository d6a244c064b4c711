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

/// The fault of the zone that an update would leave; nullopt = no fault.
using Fault = std::optional<std::string>;

using NameSet = std::set<dns::Name, dns::CanonicalLess>;

/// Finds the next name that counts, and caches the result for each skipped name. A run of names
/// that an update removes is walked once, not once per name.
class Shortcuts {
 public:
  /// `step` leads from a name to the next (nullopt at the end). `counts` must always give the same
  /// result for a name.
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
  std::map<dns::Name, std::optional<dns::Name>, dns::CanonicalLess> ends_;
};

/// The zone as an update would leave it: a version of the store with the update's changed names
/// over it. No operation walks the whole zone: a limit of looks bounds the reads. Results after the
/// limit are invalid (see exhausted()).
class ChangedZone {
 public:
  using Node = TouchedNames::Node;
  using RRset = TouchedNames::RRset;
  using RRsets = TouchedNames::RRsets;
  using Tree = zone::ZoneView::Tree;
  using ChangedNodes = std::map<dns::Name, const Node*, dns::CanonicalLess>;

  /// Status of a name's data (RFC 4035 §2.2, §2.3). All of it is authoritative, or only DS and NSEC
  /// at a delegation, or nothing below a delegation or DNAME.
  enum class Place : std::uint8_t { kAuthoritative, kCut, kOccluded };

  /// Limit of looks (reads of names, and hashes) per update. Each name that comes or goes takes 20
  /// to 30 looks of about a microsecond each. A message of 64 KiB can delete 3,600 names without
  /// signatures.
  static constexpr std::size_t kMaxLooks = 150'000;

  /// `touched` must outlive the object, and must not change except by reads of this object.
  ChangedZone(const zone::ZoneView& before, TouchedNames& touched, std::size_t looks = kMaxLooks);

  [[nodiscard]] dns::NameView apex() const noexcept { return before_.apex(); }
  [[nodiscard]] const zone::ZoneView& before() const noexcept { return before_; }
  /// Names with any difference.
  [[nodiscard]] const ChangedNodes& changed() const noexcept { return changed_; }
  /// Names whose signatures or denial may differ: the changed() names, except owners of NSEC3
  /// records alone. All names below a delegation or DNAME that comes or goes are included.
  [[nodiscard]] const NameSet& affected() const noexcept { return affected_; }

  const Node& at(dns::NameView name);
  Place place_now(dns::NameView name) { return place_of(name, &Node::now); }
  Place place_before(dns::NameView name) { return place_of(name, &Node::before); }

  /// The nearest owner after `name` (next), before `name` (previous), or at the tree's end (last);
  /// nullopt if none. The apex sorts before all names.
  std::optional<dns::Name> next(Tree tree, dns::NameView name);
  std::optional<dns::Name> previous(Tree tree, dns::NameView name);
  std::optional<dns::Name> last(Tree tree);

  /// Uses up `looks`; false if fewer are left.
  bool look(std::size_t looks = 1) noexcept;
  [[nodiscard]] bool exhausted() const noexcept { return exhausted_; }

  /// Types that make a name exist: all except NSEC, NSEC3 and RRSIG.
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
  /// Changed names that are in the tree after the update, without the apex.
  [[nodiscard]] const NameSet& present(Tree tree) const noexcept {
    return present_[tree == Tree::kNsec3 ? 1 : 0];
  }

  zone::ZoneView before_;
  TouchedNames& touched_;
  ChangedNodes changed_;
  std::array<NameSet, 2> present_;      // changed names by tree
  std::array<Shortcuts, 4> unchanged_;  // by tree and direction
  NameSet affected_;
  std::size_t looks_;
  bool exhausted_ = false;
};

}  // namespace pando::manager

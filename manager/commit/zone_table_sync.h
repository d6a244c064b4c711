#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/refused_zones.h"
#include "manager/commit/runtime.h"
#include "manager/commit/space_search.h"

namespace pando::manager {

/// Names of some zones, in canonical order, each once.
using ZoneNames = std::shared_ptr<const std::vector<dns::Name>>;
[[nodiscard]] ZoneNames make_zone_names(std::vector<dns::Name> names);

/// Which entries of the store's side table belong to zones.
struct SideIndexes {
  std::vector<bool> used;
  std::uint32_t first = 0;  ///< every entry before this one is in use
};

/// Brings the store's list of zones and their settings in line with the configuration. The work is
/// sliced, since a million zones must not hold up the commit thread.
///
/// New zones start unloaded. The journal records each removal, with its time, and keeps the zone's
/// earlier records (RemovedZones). The server's settings come last, so their presence proves one
/// finished sync.
///
/// A full store still takes every change that fits. A new zone without space is left out, and a
/// zone to be removed without space stays. A zone whose new settings do not fit keeps the old ones.
/// No such zone holds back the others.
class ZoneTableSync : public std::enable_shared_from_this<ZoneTableSync> {
 public:
  /// Zones visited in one step of the commit thread; other requests come between. A step takes some
  /// 100 µs, and a millisecond when all its zones get settings of their own.
  static constexpr std::size_t kSlice = 128;

  struct Counts {
    std::uint64_t added = 0;
    std::uint64_t removed = 0;
    std::uint64_t changed = 0;
    std::uint64_t loaded = 0;    ///< zones that stay and have data; of run() alone
    std::uint64_t unloaded = 0;  ///< zones that had data and were removed
    SideIndexes sides;           ///< without an error: for run_for()
    /// By index of a zone's side table entry: the zone is among `added` or `changed`.
    std::vector<bool> counted;
    /// With an error: everything is in line except zones that lacked space.
    bool but_for_some = false;
  };
  /// kFull: the text has the number of zones that lacked space, and the name of the first one.
  using Done = std::function<void(const Status&, Counts&&)>;

  /// Runs to the end on its own; `done` is called on the commit thread.
  static void run(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done);
  /// The same, when the configuration differs from the last one in these zones alone: other zones
  /// are not visited. `sides`: those of the last comparison.
  static void run_for(shm::Store& store, Committer& committer, RuntimePtr runtime, ZoneNames only,
                      SideIndexes sides, Done done);

 private:
  struct Removal;
  struct Putting;
  class Candidates;

  ZoneTableSync(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done);
  [[nodiscard]] std::size_t zone_count() const noexcept;
  [[nodiscard]] config::ZoneRef zone_at(std::size_t number) const noexcept;
  void submit(std::function<Status(Stage&)> stage, std::function<void(const Status&)> done);
  bool try_alone(const Error& error);
  void finish(const Status& status);

  void remove_next();
  void removed(const Removal& slice);
  void not_removed(const Removal& slice, const Error& error);
  Status remove_slice(zone::Draft& draft, Removal& slice);
  bool add_to_slice(const zone::ZoneView& zone, Removal& slice);
  void keep(const zone::ZoneView& zone, Removal& slice);
  bool walks_again();
  void put_fewer(std::size_t zones, const Error& error);

  void begin_slice();
  void put_next();
  void put(const Putting& slice);
  void go_on_behind(const Putting& slice);
  void not_put(const Putting& slice, const Error& error);
  Status put_slice(zone::Draft& draft, Putting& slice);
  Status put_known(zone::Draft& draft, Putting& slice, const config::ZoneRef& zone,
                   const zone::ZoneView& live);
  Status put_new(zone::Draft& draft, Putting& slice, const config::ZoneRef& zone);
  void put_server_settings_and_finish(const Error& error);
  Status put_server_settings(zone::Draft& draft) const;
  const zone::EncodedSettings& settings_of(const config::ZoneOptions* options);
  void clear_side(std::uint32_t index);
  void clear_times(std::uint32_t index);
  bool was_secondary(const zone::ZoneView& zone);

  shm::Store& store_;
  Committer& committer_;
  RuntimePtr runtime_;
  Done done_;
  ZoneNames only_;                     // null: all zones
  std::vector<std::uint32_t> places_;  // of the named zones in the configuration's table
  Counts counts_;
  bool alone_ = false;  // requests share no version with others, whose records could fail them
  SpaceSearch room_;    // for the zones to remove, then for those to add
  SpaceRefusals refused_;

  dns::Name after_;  // removal: the last zone visited
  bool started_ = false;
  unsigned walks_ = 0;         // finished walks over all zones
  std::uint64_t removed_ = 0;  // zones removed by those walks
  bool noting_ = true;         // removals are journalled

  std::size_t next_zone_ = 0;  // next zone to put: number for zone_at()
  std::size_t slice_end_ = 0;  // end of the slice of next_zone_
  std::map<const config::ZoneOptions*, zone::EncodedSettings> compiled_;
  std::map<std::uint64_t, bool> secondary_;  // by settings tag: is the zone a secondary?
};

}  // namespace pando::manager

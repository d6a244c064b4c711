#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/commit/space_search.h"

namespace pando::manager {

/// Brings the store's list of zones and their settings in line with the configuration, in slices: a
/// million zones must not hold up the commit thread. Zones that are new start unloaded; that a zone
/// has left is in the journal, so that one of its name that comes later inherits no updates. The
/// server's settings come last: a store that has some was brought in line at least once.
///
/// In a full store what has room is done all the same: a new zone that finds none is left out, one
/// that is to go and finds none stays, one whose changed settings find none is served as it was,
/// and none of these holds back the others.
class ZoneTableSync : public std::enable_shared_from_this<ZoneTableSync> {
 public:
  struct Counts {
    std::uint64_t added = 0;
    std::uint64_t removed = 0;
    std::uint64_t changed = 0;
    std::uint64_t loaded = 0;  ///< zones that stay and have data
    /// With an error: all is in line but for zones that there was no room for.
    bool but_for_some = false;
  };
  /// kFull: how many zones there was no room for, with the name of the first one.
  using Done = std::function<void(const Status&, const Counts&)>;

  /// Runs to the end on its own; `done` on the commit thread.
  static void run(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done);

 private:
  /// Zones that there was no room for.
  struct Refused {
    std::uint64_t zones = 0;
    dns::Name first;
    std::string reason;
    void add(dns::NameView zone, const std::string& why);
    void add(const Refused& more);
    [[nodiscard]] std::string text(std::string_view what) const;
  };
  struct Removal;
  struct Putting;

  ZoneTableSync(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done);
  void submit(std::function<Status(Stage&)> stage, std::function<void(const Status&)> done);
  bool try_alone(const Error& error);
  void finish(const Status& status);

  void remove_next();
  void removed(const Removal& slice);
  void not_removed(const Removal& slice, const Error& error);
  Status remove_slice(zone::Draft& draft, Removal& slice);
  bool look_at(const zone::ZoneView& zone, Removal& slice);
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
  bool was_secondary(const zone::ZoneView& zone);

  shm::Store& store_;
  Committer& committer_;
  RuntimePtr runtime_;
  Done done_;
  Counts counts_;
  bool alone_ = false;   // steps share no version with others, whose records could fail them
  SpaceSearch room_;     // for those to remove, then for those to add
  std::string no_room_;  // what was said when it was found to lack
  Refused kept_;         // zones that were to be removed
  Refused left_out_;     // zones that were to be added
  Refused unfit_;        // zones whose settings find no room

  dns::Name after_;  // removal: the last zone looked at
  bool started_ = false;
  unsigned walks_ = 0;         // over all zones, to the end
  std::uint64_t removed_ = 0;  // by those
  bool noting_ = true;         // the journal is told which zones have left
  std::vector<bool> used_;     // side table entries of the zones that stay

  std::size_t next_zone_ = 0;    // putting: index in the configuration's table
  std::size_t slice_end_ = 0;    // of the slice that next_zone_ is in
  std::uint32_t next_side_ = 0;  // no side table entry before it is free
  std::map<const config::ZoneOptions*, zone::EncodedSettings> compiled_;
  std::map<std::uint64_t, bool> secondary_;  // whether zones with settings of this tag are
};

}  // namespace pando::manager

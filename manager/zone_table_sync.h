#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "manager/committer.h"
#include "manager/runtime.h"

namespace pando::manager {

/// Brings the store's list of zones and their settings in line with the configuration, in slices: a
/// million zones must not hold up the commit thread. Zones that are new start unloaded; that a zone
/// has left is in the journal, so that one of its name that comes later inherits no updates. The
/// server's settings come last: a store that has some was brought in line at least once.
class ZoneTableSync : public std::enable_shared_from_this<ZoneTableSync> {
 public:
  struct Counts {
    std::uint64_t added = 0;
    std::uint64_t removed = 0;
    std::uint64_t changed = 0;
    std::uint64_t loaded = 0;  ///< zones that stay and have data
  };
  using Done = std::function<void(const Status&, const Counts&)>;

  /// Runs to the end on its own; `done` on the commit thread.
  static void run(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done);

 private:
  ZoneTableSync(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done);
  struct Slice;
  void remove_next();
  void put_next();
  void not_removed(const Slice& slice, const Error& error);
  void not_put(const Status& status);
  void finish(const Status& status);
  Status remove_slice(zone::Draft& draft, Slice& slice);
  Status put_slice(zone::Draft& draft, Slice& slice);
  Status put_server_settings(zone::Draft& draft) const;
  const zone::EncodedSettings& settings_of(const config::ZoneOptions* options);
  std::uint32_t free_side_index();
  void clear_side(std::uint32_t index);
  bool was_secondary(const zone::ZoneView& zone);

  shm::Store& store_;
  Committer& committer_;
  RuntimePtr runtime_;
  Done done_;
  Counts counts_;
  dns::Name after_;  // removal: the last zone looked at
  bool started_ = false;
  bool noting_ = true;         // the journal is told which zones have left
  std::size_t next_zone_ = 0;  // putting: index in the configuration's table
  std::vector<bool> used_;     // side table entries
  std::uint32_t side_hint_ = 0;
  std::map<const config::ZoneOptions*, zone::EncodedSettings> compiled_;
  std::map<std::uint64_t, bool> secondary_;  // whether zones with settings of this tag are
};

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "dns/name.h"
#include "ipc/control_results.h"
#include "manager/commit/committer.h"

namespace pando::manager {

/// Snapshots of zones for rollback (zone/history/zone_snapshot.h): takes, deletes and lists them,
/// and reports lost ones. Lives on the commit thread.
class ZoneSnapshots {
 public:
  /// Both references outlive the object.
  ZoneSnapshots(asio::io_context& io, Committer& committer) noexcept
      : io_(io), committer_(committer) {}

  /// `now` is seconds since 1970. Errors are those of zone::Draft::take_snapshot(), and kInvalid
  /// for a zone that could not be rolled back (check_rollback).
  void take(const dns::Name& zone, const std::string& label, std::uint64_t now,
            const zone::DataLimits& limits, std::function<void(Result<dns::Serial>)> done);
  /// kNotFound.
  void forget(const dns::Name& zone, const std::string& label, const zone::DataLimits& limits,
              std::function<void(const Status&)> done);

  /// The snapshots of one zone; kNotFound without such a zone.
  [[nodiscard]] Result<ipc::SnapshotListResult> list(const dns::Name& zone) const;
  /// The snapshots of the zones after `after` (null: of all zones), about `rows` of them.
  [[nodiscard]] ipc::SnapshotListResult list_behind(const dns::Name* after, std::size_t rows) const;

  /// To be called after a publication: logs each lost snapshot once per process. A million zones
  /// are searched in slices.
  void tell_losses();

 private:
  void look_for_losses();
  void tell_losses_of(const zone::ZoneView& zone);

  asio::io_context& io_;
  Committer& committer_;
  std::uint32_t losses_ = 0;  // count of losses already reported or being searched for
  bool looking_ = false;
  bool look_again_ = false;                                 // more snapshots were lost meanwhile
  std::optional<dns::Name> looked_;                         // searched up to this zone
  std::set<std::pair<std::string, std::string>> reported_;  // zone and label of reported losses
};

}  // namespace pando::manager

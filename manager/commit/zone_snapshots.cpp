#include "manager/commit/zone_snapshots.h"

#include <asio/post.hpp>
#include <memory>

#include "ipc/log.h"
#include "manager/commit/rollback.h"
#include "manager/support/withheld_data.h"
#include "zone/history/zone_snapshot.h"

namespace pando::manager {

namespace {

/// Zones per page of a list: a million zones without snapshots must not hold up the commit thread.
constexpr std::size_t kZonesPerPage = 10'000;
/// Zones per slice of a search for losses, after a publication: a fraction of a millisecond.
constexpr std::size_t kZonesPerSlice = 1000;

void add_rows(const zone::ZoneView& zone, std::vector<ipc::SnapshotRow>& rows) {
  if (!zone.has_snapshots()) return;
  const std::string name = to_text(zone.apex());
  for (const zone::ZoneSnapshot& one : zone::snapshots_of(zone))
    rows.push_back({name, one.label, one.serial.value, one.taken, one.records,
                    one.held() ? std::string() : std::string(zone::to_text(one.state))});
}

}  // namespace

void ZoneSnapshots::take(const dns::Name& zone, const std::string& label, std::uint64_t now,
                         const zone::DataLimits& limits,
                         std::function<void(Result<dns::Serial>)> done) {
  if (is_withheld_label(label))
    return done(fail(Errc::kInvalid, "'{}' is a label of data that wait for the journal", label));
  auto serial = std::make_shared<dns::Serial>();
  const auto step = [=](zone::Draft& draft) -> Status {
    const zone::ZoneView view = draft.view().zone_at(zone);
    if (view && view.loaded()) {
      if (auto fine = check_rollback(view); !fine) return fine;
      *serial = view.serial();
    }
    return draft.take_snapshot(zone, label, now, limits);
  };
  committer_.edit(step, [zone, label, serial, done = std::move(done)](const Status& status) {
    if (!status) return done(pass(status));
    log::info("zone_snapshot_taken", "zone", to_text(zone), "snapshot", label, "serial",
              serial->value);
    done(*serial);
  });
}

void ZoneSnapshots::forget(const dns::Name& zone, const std::string& label,
                           const zone::DataLimits& limits,
                           std::function<void(const Status&)> done) {
  const auto step = [=](zone::Draft& draft) { return draft.drop_snapshot(zone, label, limits); };
  committer_.edit(
      step,
      [this, zone, label, done = std::move(done)](const Status& status) {
        if (status) {
          reported_.erase({to_text(zone.folded()), label});
          log::info("zone_snapshot_deleted", "zone", to_text(zone), "snapshot", label);
        }
        done(status);
      },
      shm::Reserve::kHalf);
}

Result<ipc::SnapshotListResult> ZoneSnapshots::list(const dns::Name& zone) const {
  const zone::ZoneView view = committer_.current().zone_at(zone);
  if (!view) return fail(Errc::kNotFound, "no zone {}", to_text(zone));
  ipc::SnapshotListResult result;
  add_rows(view, result.snapshots);
  return result;
}

ipc::SnapshotListResult ZoneSnapshots::list_behind(const dns::Name* after, std::size_t rows) const {
  ipc::SnapshotListResult result;
  zone::ZoneWalk walk(committer_.current());
  if (after != nullptr) walk.seek_after(*after);
  for (std::size_t zones = 0; const zone::ZoneView zone = walk.next(); ++zones) {
    add_rows(zone, result.snapshots);
    if (result.snapshots.size() < rows && zones < kZonesPerPage) continue;
    result.next = to_text(zone.apex());
    break;
  }
  return result;
}

/// The count of losses changes seldom. Then all zones are searched, since any zone may be affected.
void ZoneSnapshots::tell_losses() {
  const std::uint32_t losses = committer_.current().snapshot_losses();
  if (losses == losses_) return;
  losses_ = losses;
  look_again_ = looking_;
  if (!std::exchange(looking_, true)) look_for_losses();
}

/// Continues behind `looked_`.
void ZoneSnapshots::look_for_losses() {
  zone::ZoneWalk walk(committer_.current());
  if (looked_) walk.seek_after(*looked_);
  zone::ZoneView zone = walk.next();
  for (std::size_t zones = 0; zone && zones < kZonesPerSlice; zone = walk.next(), ++zones) {
    tell_losses_of(zone);
    looked_ = dns::Name(zone.apex());
  }
  if (!zone) {
    looked_.reset();
    looking_ = std::exchange(look_again_, false);
  }
  if (looking_) asio::post(io_, [this] { look_for_losses(); });
}

void ZoneSnapshots::tell_losses_of(const zone::ZoneView& zone) {
  if (!zone.has_snapshots()) return;
  for (const zone::ZoneSnapshot& one : zone::snapshots_of(zone)) {
    std::pair<std::string, std::string> key{to_text(dns::Name(zone.apex()).folded()), one.label};
    if (one.held())
      reported_.erase(key);  // a new snapshot of this label was taken
    else if (reported_.insert(std::move(key)).second)
      log::error("zone_snapshot_lost", "zone", to_text(zone.apex()), "snapshot", one.label,
                 "serial", one.serial.value, "reason", zone::to_text(one.state));
  }
}

}  // namespace pando::manager

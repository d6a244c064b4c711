#include "manager/server/service_start.h"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <memory>
#include <utility>

#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/commit/zone_table_sync.h"
#include "manager/launch/adopted_worker.h"
#include "manager/start/startup.h"
#include "manager/tls/tls_processes.h"
#include "manager/start/zone_lists.h"
#include "manager/systemd/readiness.h"
#include "manager/workers/worker_pool.h"

namespace pando::manager {

namespace {

/// A zone whose file failed, or whose program hangs, must not delay the readiness of the server.
std::string loaded_text(std::uint64_t loaded, std::uint64_t zones, std::uint64_t being_judged) {
  const std::string judged =
      being_judged == 0 ? "" : fmt::format(", {} being judged", being_judged);
  if (loaded >= zones) return "all zones loaded" + judged;
  return fmt::format("{} of {} zones loaded{}", loaded, zones, judged);
}

/// Whether a zone is still to be loaded, of which another store may have the data.
bool lacks_data(const OpenedData& data, const zone::StoreView& view) {
  if (!data.serves_first && !data.restored) return true;
  zone::ZoneWalk walk(view);
  while (const zone::ZoneView zone = walk.next())
    if (!zone.loaded()) return true;
  return false;
}

}  // namespace

ServiceStart::ServiceStart(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
                           PreviousStore& previous_store, const Host& host, Calls calls)
    : io_(io),
      pool_(pool),
      parts_(parts),
      previous_store_(previous_store),
      host_(host),
      calls_(std::move(calls)) {}

/// A live store is served immediately, as it is, and the zone lists are read then. The same holds
/// for a store from an image of this configuration. Any other store gets its list of zones first,
/// so that zones still loading answer SERVFAIL rather than REFUSED.
void ServiceStart::begin() {
  parts_.services.upkeep->start();
  may_start_ = parts_.data.serves_first;
  keep_previous_store();
  if (parts_.data.serves_first) {
    if (!wait_for_zones_) start_workers();
    parts_.readiness.announce(parts_.data.restored ? "serving what the store was made from"
                                                   : "serving the live store");
  }
  if (parts_.lists.has_unread()) return parts_.lists.read_later(parts_.configuration.runtime);
  bring_in_line();
}

/// Workers that outlived the last manager have all zones. Those of another build go when ours have
/// all zones, too. Those of this build get our store then.
void ServiceStart::keep_previous_store() {
  wait_for_zones_ = parts_.workers.has_previous_layout_workers();
  const WorkerSearch search{parts_.configuration.runtime->settings.server.run_directory,
                            host_.worker_uid};
  const bool may_differ = wait_for_zones_ || may_read_another_store(*parts_.data.slots, search);
  const bool lacks = may_differ && lacks_data(parts_.data, parts_.services.committer->current());
  if (lacks) parts_.workers.keep_previous_store();
  if (lacks || wait_for_zones_) previous_store_.keep();
}

void ServiceStart::leave_previous_store() {
  start_awaited_workers();
  parts_.workers.leave_previous_store();
}

void ServiceStart::previous_layout_ended() { start_awaited_workers(); }

void ServiceStart::start_awaited_workers() {
  if (std::exchange(wait_for_zones_, false) && may_start_) start_workers();
}

void ServiceStart::start_workers() {
  wait_for_zones_ = false;
  if (auto started = parts_.workers.start(wanted_workers(parts_.configuration.runtime->settings));
      !started)
    log::error("listen_failed", "reason", started.error().text);
  parts_.tls.start();
  // Workers start before the image is read, as the reading takes the disk for itself.
  if (parts_.services.copying_image)
    parts_.services.copying_image->start([this](const Status& status) { image_copied(status); });
}

/// From here on the store is like a store without an image to copy.
void ServiceStart::image_copied(const Status& status) {
  if (!status) return calls_.image_damaged(status.error());
  // Destroyed later: the copying is our caller.
  asio::post(io_,
             [done = std::shared_ptr<ImageCopying>(std::move(parts_.services.copying_image))] {});
  parts_.workers.store_copied();
  parts_.zones.loads->release_copies();
  parts_.zones.signatures->release();
  if (parts_.services.checkpointer) parts_.services.checkpointer->resume();
  if (parts_.zones.loads->settled())
    configure_exports(parts_.services, parts_.zones, parts_.configuration.runtime);
}

void ServiceStart::lists_read(const RuntimePtr& complete) {
  parts_.configuration.runtime = complete;
  parts_.configuration.read_at = unix_seconds();
  ++parts_.configuration.reads;
  parts_.zones.updates->set_runtime(complete);
  parts_.lists.accept();
  bring_in_line();
}

/// Nobody brings the store in line: workers and reloads that wait for that go on.
void ServiceStart::lists_failed() {
  parts_.lists.refuse_updates();
  parts_.readiness.announce(ZoneLists::kNotRead);
  count_loaded();
  previous_store_.leave(ZoneLists::kNotRead);
  parts_.lists.run_waiting();
  calls_.allow_reloads();
}

/// Counts zones with data, as no comparison of the store's zones with the configuration does so.
void ServiceStart::count_loaded() {
  const zone::StoreView now = parts_.services.committer->current();
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(parts_.data.slots->pin_own(now.version()));
  asio::post(pool_, [this, now, pin = std::move(pin)]() mutable {
    std::uint64_t count = 0;
    zone::ZoneWalk walk(now);
    while (const zone::ZoneView zone = walk.next()) count += zone.loaded() ? 1 : 0;
    pin.reset();
    asio::post(io_, [this, count] {
      if (parts_.lists.state() == ZoneLists::State::kFailed) parts_.zones.loads->recounted(count);
    });
  });
}

void ServiceStart::bring_in_line() {
  parts_.zones.signing->configure(parts_.configuration.runtime);
  parts_.zones.notifier->configure(parts_.configuration.runtime);
  ZoneTableSync::run(*parts_.data.store, *parts_.services.committer, parts_.configuration.runtime,
                     [this](const Status& status, const ZoneTableSync::Counts& counts) {
                       in_line(status, counts.loaded);
                     });
}

void ServiceStart::in_line(const Status& status, std::uint64_t zones_with_data) {
  parts_.zones.loads->recounted(zones_with_data);
  if (!status) log::error("zone_table_failed", "reason", status.error().text);
  if (status && parts_.services.checkpointer)
    parts_.services.checkpointer->set_configuration(parts_.configuration.fingerprint);
  if (!std::exchange(may_start_, true) && !wait_for_zones_) start_workers();
  if (parts_.data.restored) parts_.readiness.announce("serving what the store was made from");
  parts_.zones.secondaries->configure(parts_.configuration.runtime);
  const auto history = make_history(*parts_.data.journal);
  parts_.zones.loads->load(
      parts_.configuration.runtime, history, [this, history](const ZoneFileLoads::Counts& counts) {
        previous_store_.loaded(counts.failed);
        parts_.zones.copies->keep_only(parts_.configuration.runtime);
        configure_exports(parts_.services, parts_.zones, parts_.configuration.runtime);
        parts_.zones.removed->look(parts_.configuration.runtime, history, [](std::uint64_t) {});
        if (counts.is_first) parts_.zones.notifier->tell_all();
        if (counts.is_first) parts_.services.journal_upkeep->examine();
        parts_.readiness.announce(loaded_text(parts_.zones.loads->loaded(),
                                              parts_.services.committer->current().zone_count(),
                                              counts.being_judged));
      });
  calls_.allow_reloads();
}

}  // namespace pando::manager

#include "manager/catalog/catalogs.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "base/unix_time.h"
#include "manager/start/zone_lists.h"

namespace pando::manager {

namespace {

CatalogConsumer::Calls calls_of_consumer(RunTimeZones& zones, Refresher& refresher) {
  CatalogConsumer::Calls calls;
  calls.update = [&zones](std::shared_ptr<CatalogUpdate> update,
                          const CatalogConsumer::Calls::Done& done) {
    zones.submit({.catalog = std::move(update)},
                 [done](const Result<ipc::ReloadResult>& result) { done(status_of(result)); });
  };
  calls.reset = [&refresher](const dns::Name& zone) {
    static_cast<void>(refresher.refresh_now(zone, Refresher::Take::kAny));
  };
  calls.now = coarse_seconds;
  calls.host_time = unix_seconds;
  calls.zone_commands = [&zones] { return zones.commands(); };
  return calls;
}

CatalogProducer::Calls calls_of_producer(RunTimeZones& zones, const ZoneLists& lists) {
  CatalogProducer::Calls calls;
  using Done = CatalogProducer::Calls::Done;
  calls.reread = [&zones](std::vector<dns::Name> catalogs, const Done& done) {
    const auto answered = [done](const Result<ipc::ReloadResult>& result) {
      if (!result) return done(pass(result));
      if (result->zones_failed == 0) return done({});
      done(fail(Errc::kInvalid, "its file was not taken: see zone status"));
    };
    zones.submit({.reread = std::move(catalogs)}, answered);
  };
  calls.complete = [&lists] { return lists.state() == ZoneLists::State::kRead; };
  return calls;
}

}  // namespace

Catalogs::Catalogs(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
                   RunTimeZones& zones)
    : consumer_(
          io, pool,
          {parts.configuration, *parts.data.store, *parts.data.slots, *parts.services.committer},
          calls_of_consumer(zones, *parts.zones.refresher)),
      producer_(io, pool, parts.configuration, calls_of_producer(zones, parts.lists)) {}

void Catalogs::start() {
  consumer_.start();
  producer_.start();
}

void Catalogs::stop() {
  consumer_.stop();
  producer_.stop();
}

}  // namespace pando::manager

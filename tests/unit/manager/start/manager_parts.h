#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/load.h"
#include "manager/journal/journal.h"
#include "manager/net/network.h"
#include "manager/start/reloader.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/start/zone_lists.h"
#include "manager/systemd/readiness.h"
#include "manager/tls/tls_certificates.h"
#include "manager/tls/tls_processes.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager::testing {

/// All parts of a manager, on tmpfs, with the configuration of a file. No process is started, no
/// socket opened and no timer runs; the test's thread is the commit thread.
class ManagerParts {
 public:
  /// See configure().
  explicit ManagerParts(const std::string& zones = "", const std::string& rest = "") {
    std::filesystem::create_directory(folder.path() + "/journal");
    configure(zones, rest);
    config::LoadResult loaded = config::load(path());
    EXPECT_TRUE(loaded.ok()) << loaded.error_text();
    configuration.path = path();
    configuration.runtime = make_runtime(std::move(loaded.settings)).value();
    open();
    make_store_services();
    make_zone_services();
    make_workers();
    reloader.emplace(io, pool, parts());
  }
  [[nodiscard]] ServerParts parts() {
    return {configuration, *data,    services, zone_services, *lists,
            listeners,     *workers, tls,      readiness,     certificates};
  }
  ~ManagerParts() {
    zone_services.loader->stop();
    zone_services.signatures->stop();
    zone_services.signing->stop();
    services.upkeep->stop();
    zone_services.exports->stop();
    zone_services.secondaries->stop();
    zone_services.refresher->stop();
    zone_services.notifier->stop();
    zone_services.forwarder->stop();
    services.road->stop();
    workers->abandon();
    network.stop();
    pool.join();
    journal_thread.join();
  }

  [[nodiscard]] std::string path() const { return folder.path() + "/pando.yaml"; }
  /// Writes the file anew. `zones`: the list's elements as lines; `rest`: other sections.
  void configure(const std::string& zones, const std::string& rest = "") {
    std::ofstream file(path());
    file << "server: {run-directory: ., workers: external}\n"
         << "store: {path: zones.store, journal: journal, size-limit: 64MiB, image: none}\n"
         << rest << (zones.empty() ? "" : "zones:\n" + zones);
  }
  /// A zone with its file, "NAME.zone"; `zone` without the final dot.
  static std::string primary(const std::string& zone) {
    return "  - {name: " + zone + ", file: " + zone + ".zone}\n";
  }
  void write_zone(const std::string& zone, std::uint32_t serial, const std::string& records = "") {
    std::ofstream(folder.path() + "/" + zone + ".zone")
        << fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300\n@ 3600 NS ns1\n", serial)
        << "ns1 3600 A 192.0.2.1\n"
        << records;
  }
  bool run_until(const std::function<bool()>& done) { return testing::run_until(io, done); }
  /// The result of a request that ends with a callback; `begin` gets a place for the result.
  template <class Value>
  Value await(const std::function<void(std::optional<Value>& place)>& begin) {
    std::optional<Value> place;
    begin(place);
    EXPECT_TRUE(run_until([&] { return place.has_value(); }));
    return std::move(*place);
  }
  Result<ipc::ReloadResult> reload() {
    return await<Result<ipc::ReloadResult>>([this](auto& place) {
      reloader->reload([&place](Result<ipc::ReloadResult> result) { place = std::move(result); });
    });
  }
  [[nodiscard]] zone::ZoneView zone(std::string_view text) {
    return services.committer->current().zone_at(name(text));
  }
  /// The zone's serial; 0: it has no data.
  [[nodiscard]] std::uint32_t serial(std::string_view text) {
    const zone::ZoneView found = zone(text);
    return found && found.loaded() ? found.serial().value : 0;
  }

  shm::test::Folder folder;
  Host host;
  CurrentConfiguration configuration;
  std::unique_ptr<OpenedData> data;
  asio::io_context io{1};
  JournalThread journal_thread;
  asio::thread_pool pool{2};
  StoreServices services;
  ZoneServices zone_services;
  std::optional<ZoneLists> lists;
  Listeners listeners{Listeners::Addresses{}};
  std::unique_ptr<WorkerPool> workers;
  systemd::Readiness readiness{
      {[] { return std::nullopt; }, [] { return std::string(); }, [](const std::string&) {}}};
  TlsProcesses tls{io, folder.path(), {}, {}};
  TlsCertificates certificates{io, pool, native_files(), {[] { return std::uint64_t{0}; }}};
  Network network;
  std::optional<Reloader> reloader;

 private:
  void open() {
    UnreadLists none;
    Startup startup(host, configuration, none,
                    {native_files(), {"", 64 << 10, std::chrono::milliseconds(0)}});
    data = shm::test::must(startup.open());
  }
  void make_store_services() {
    services.committer = std::make_unique<Committer>(io, *data->store, *data->journal,
                                                     journal_thread, Committer::Options{});
    services.snapshots = std::make_unique<ZoneSnapshots>(io, *services.committer);
    services.upkeep = std::make_unique<StoreUpkeep>(io, *data->store, *services.committer,
                                                    StoreUpkeep::Options{});
    services.journal_upkeep = std::make_unique<JournalUpkeep>(
        io, pool, journal_thread, native_files(), *data->journal, *services.committer, *data->slots,
        configuration.runtime->settings.store.journal_limit);
    services.road =
        std::make_unique<ChangeRoad>(io, network.builders(), *data->store, *data->slots,
                                          *services.committer, ChangeRoad::Options{});
  }
  void make_zone_services() {
    const std::string& journal = configuration.runtime->settings.store.journal;
    zone_services.frozen = std::make_unique<FrozenZones>(io, pool, native_files(), journal);
    zone_services.verifiers = std::make_unique<ZoneVerifiers>(ZoneVerifiers::Rights{});
    zone_services.signing = std::make_unique<SigningService>(
        SigningService::Parts{io, pool, network, native_files(), *data->store,
                              *data->slots, *services.committer, *services.road},
        SigningClock::sources_of_host([] { return std::uint64_t{1'800'000'000}; }),
        SigningService::Hooks{{[](const dns::Name&) {}, [](const dns::Name&) {}},
                              [](const dns::Name&) {}});
    zone_services.signatures = std::make_unique<SignatureWatch>(
        io, *data->store, *data->slots, *services.committer,
        [](const dns::Name&) { return config::SignaturePolicy{}; },
        SignatureWatch::Options{1, unix_seconds});
    zone_services.loader =
        std::make_unique<ZoneLoader>(io, pool, 1, *data->store, *data->slots, *services.committer,
                                     *services.road, configuration.runtime->limits);
    zone_services.copies = std::make_unique<ZoneCopies>(
        io, pool, native_files(), *services.committer, *data->slots, journal + "/secondary");
    zone_services.loads = std::make_unique<ZoneFileLoads>(
        *zone_services.loader, *zone_services.copies, *services.committer,
        [this](const dns::Name& secondary) { zone_services.secondaries->looked_at(secondary); });
    zone_services.exports = std::make_unique<ZoneExports>(
        io, pool, native_files(), *services.committer, *data->slots,
        [this] { return make_history(*data->journal); }, ZoneExports::Options{});
    zone_services.removed = std::make_unique<RemovedZones>(io, pool, *services.committer, journal);
    zone_services.refresher =
        std::make_unique<Refresher>(io, network, *data->store, *data->slots, *services.committer,
                                    *services.road, refresher_hooks());
    zone_services.secondaries = std::make_unique<SecondaryZones>(
        io, network, *zone_services.refresher, [this](const dns::Name& zone) {
          return services.committer->current().zone_at(zone).loaded();
        });
    zone_services.notifier =
        std::make_unique<Notifier>(io, network, *services.committer, Notifier::Options{},
                                   [](const IpAddress&) { return false; });
    make_update_services();
  }
  Refresher::Hooks refresher_hooks() {
    Refresher::Hooks hooks;
    hooks.may_change = [this](const dns::Name& zone) { return zone_services.frozen->check(zone); };
    return hooks;
  }
  void make_update_services() {
    zone_services.updates = std::make_unique<UpdateService>(
        *services.committer, *services.road, configuration.runtime, nullptr, [] { return std::uint64_t{1}; });
    zone_services.forwarder =
        std::make_unique<UpdateForwarder>(io, network, UpdateForwarder::Options{});
    zone_services.update_queue = std::make_unique<UpdateQueue>(
        io, [](ipc::Forward&&, const ForwardReply&) {},
        [](ipc::Forward&&, const ForwardReply&, std::string_view) {}, UpdateQueue::Limits{});
    lists.emplace(io, pool, *zone_services.update_queue, nullptr,
                  ZoneLists::Hooks{[](const RuntimePtr&) {}, [] {}});
  }
  void make_workers() {
    WorkerPoolOptions options;
    options.run_directory = folder.path();
    options.layout = zone::layout_fingerprint();
    options.external = true;
    options.worker_uid = ::geteuid();
    workers = shm::test::must(
        WorkerPool::open(io, std::move(options), *data->slots, listeners, nullptr, {}));
  }
};

}  // namespace pando::manager::testing

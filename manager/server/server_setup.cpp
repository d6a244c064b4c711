#include <algorithm>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/pause_point.h"
#include "base/steady_time.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "ipc/privileges.h"
#include "manager/control/http_user.h"
#include "manager/notify/seen_by_workers.h"
#include "manager/server/server.h"
#include "manager/start/log_options.h"
#include "manager/start/tls_configuration.h"
#include "manager/support/rate_limited_log.h"
#include "shm/slot_guard.h"

namespace pando::manager {

namespace {

/// Clients, and a worker that is not its own master, choose how many transfers end.
constexpr std::uint32_t kTransferLinesPerSecond = 1'000;
constexpr std::uint32_t kTransferLinesAtOnce = 10'000;

/// pando-http reads. It edits what its keys may edit: a fault in it must change nothing else.
ControlServer::Rights control_rights(std::uint32_t uid, const config::Settings& settings) {
  if (may_control(uid, settings.server.control_group)) return ControlServer::Rights::kAll;
  if (!settings.http) return ControlServer::Rights::kNone;
  const auto reader = ipc::user_id(settings.http->user);
  if (!reader || *reader != uid) return ControlServer::Rights::kNone;
  return settings.http->writes() ? ControlServer::Rights::kEdit : ControlServer::Rights::kRead;
}

}  // namespace

Server::Server(Options options, RuntimePtr runtime, Host host)
    : configuration_{std::move(options.config_path), std::move(runtime), options.configuration,
                     unix_seconds()},
      host_(std::move(host)),
      background_(usable_processors()) {
  workers_.binary = std::move(options.worker_binary);
}

Result<std::unique_ptr<Server>> Server::open(Options options, RuntimePtr runtime, Host host,
                                             UnreadLists lists, bool& bad_configuration) {
  std::unique_ptr<Server> server(
      new Server(std::move(options), std::move(runtime), std::move(host)));
  if (auto guarded = shm::install_slot_guard(); !guarded) return pass(guarded);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) server->signals_.add(number);
  Startup startup(server->host_, server->configuration_, lists, {});
  auto data = startup.open();
  if (!data) {
    bad_configuration = startup.lists_are_wrong();
    return pass(data);
  }
  server->data_ = std::move(*data);
  server->make_store_services();
  server->make_zone_services();
  server->make_update_services();
  server->make_lists(std::move(lists));
  if (auto opened = server->open_workers(); !opened) return pass(opened);
  if (auto opened = server->open_control(); !opened) return pass(opened);
  return server;
}

void Server::make_store_services() {
  if (data_->lent)
    services_.copying_image = std::make_unique<ImageCopying>(io_, std::move(*data_->lent));
  data_->lent.reset();
  services_.committer = std::make_unique<Committer>(io_, *data_->store, *data_->journal,
                                                    journal_thread_, Committer::Options{});
  services_.snapshots = std::make_unique<ZoneSnapshots>(io_, *services_.committer);
  services_.committer->on_published(
      [this](const PublishedVersion& version) { follow_up(version); });
  const config::StoreSettings& store = configuration_.runtime->settings.store;
  if (data_->image) {
    services_.checkpointer = std::make_unique<Checkpointer>(
        io_, *data_->store, *data_->slots, *data_->journal, std::move(data_->image),
        Checkpointer::Options{
            {std::chrono::milliseconds(store.checkpoint.interval), store.checkpoint.journal}});
    services_.checkpointer->set_pin(std::move(data_->image_pin));
    if (services_.copying_image) services_.checkpointer->hold();
  }
  network_ = std::make_unique<Network>();
  services_.upkeep = std::make_unique<StoreUpkeep>(io_, *data_->store, *services_.committer,
                                                   StoreUpkeep::Options{});
  services_.upkeep->set_history_total(configuration_.runtime->limits.history_total);
  services_.huge_pages =
      std::make_unique<HugePages>(io_, background_.pool(), *data_->store, HugePages::Options{});
  services_.heap_upkeep =
      std::make_unique<HeapUpkeep>(io_, background_.pool(), HeapUpkeep::Options{});
  services_.journal_upkeep = std::make_unique<JournalUpkeep>(
      io_, background_.pool(), journal_thread_, native_files(), *data_->journal,
      *services_.committer, *data_->slots, store.journal_limit);
  if (services_.checkpointer)
    services_.journal_upkeep->before_dropping([this](std::function<void()> resume) {
      services_.checkpointer->write_now([resume = std::move(resume)](const Status&) { resume(); });
    });
  services_.road =
      std::make_unique<ChangeRoad>(io_, network_->builders(), *data_->store, *data_->slots,
                                   *services_.committer, ChangeRoad::Options{});
  services_.upkeep->leave_alone(
      [this](dns::NameView apex) { return services_.road->at_work_on(apex); });
  services_.upkeep->yield_to([this] { return control_.reloader->is_under_way(); });
}

void Server::make_zone_services() {
  zones_.frozen = std::make_unique<FrozenZones>(io_, background_.pool(), native_files(),
                                                configuration_.runtime->settings.store.journal);
  if (auto loaded = zones_.frozen->load(); !loaded)
    log::error("frozen_zones_not_read", "reason", loaded.error().text, "effect",
               "no zone is frozen");
  zones_.signing = std::make_unique<SigningService>(
      SigningService::Parts{io_, background_.pool(), *network_, native_files(), *data_->store,
                            *data_->slots, *services_.committer, *services_.road},
      SigningClock::sources_of_host(unix_seconds),
      SigningService::Hooks{{[this](const dns::Name& zone) { zones_.updates->hold(zone); },
                             [this](const dns::Name& zone) { zones_.updates->release(zone); }},
                            [this](const dns::Name& zone) { load_again(zone); }});
  zones_.signatures = std::make_unique<SignatureWatch>(
      io_, *data_->store, *data_->slots, *services_.committer,
      [this](const dns::Name& zone) { return signature_policy(zone); },
      SignatureWatch::Options{usable_processors(), unix_seconds});
  zones_.signatures->start();
  if (services_.copying_image) zones_.signatures->hold();
  zones_.verifiers = std::make_unique<ZoneVerifiers>(
      ZoneVerifiers::Rights{host_.launcher ? &*host_.launcher : nullptr, host_.worker_user});
  zones_.loader = std::make_unique<ZoneLoader>(io_, background_.pool(), usable_processors(),
                                               *data_->store, *data_->slots, *services_.committer,
                                               *services_.road, configuration_.runtime->limits);
  zones_.copies = std::make_unique<ZoneCopies>(
      io_, background_.pool(), native_files(), *services_.committer, *data_->slots,
      configuration_.runtime->settings.store.journal + "/secondary",
      std::clamp<std::size_t>(usable_processors() / 2, 1, ZoneCopies::kMaxBatches));
  zones_.loads = std::make_unique<ZoneFileLoads>(
      *zones_.loader, *zones_.copies, *services_.committer,
      [this](const dns::Name& secondary) { zones_.secondaries->looked_at(secondary); });
  if (services_.copying_image) zones_.loads->hold_copies();
  zones_.loads->on_served([this](const dns::Name& zone) { zones_.signatures->served(zone); });
  zones_.loads->judge_by(
      [this](const config::ZoneOptions& options) { return zones_.verifiers->of(options); });
  zones_.exports = std::make_unique<ZoneExports>(
      io_, background_.pool(), native_files(), *services_.committer, *data_->slots,
      [this] { return make_history(*data_->journal); }, ZoneExports::Options{});
  zones_.removed =
      std::make_unique<RemovedZones>(io_, background_.pool(), *services_.committer,
                                     configuration_.runtime->settings.store.journal);
  zones_.refresher = std::make_unique<Refresher>(
      io_, *network_, *data_->store, *data_->slots, *services_.committer, *services_.road,
      Refresher::Hooks{
          [this](const zone::ZoneView& zone) { return zones_.signatures->is_verified(zone); },
          [this](const dns::Name& zone) { return zones_.frozen->check(zone); },
          [this](const dns::Name& zone) { return verifier_of(zone); },
          [this](const dns::Name& zone, ipc::ZoneCounter counter) {
            if (auto& counts = data_->zone_counts)
              counts->count(ipc::zone_count_key(zone), static_cast<std::size_t>(counter));
          }});
  zones_.secondaries = std::make_unique<SecondaryZones>(
      io_, *network_, *zones_.refresher, [this](const dns::Name& name) {
        const zone::ZoneView zone = services_.committer->current().zone_at(name);
        return zone && zone.loaded();
      });
  Notifier::Options notifying;
  notifying.queue.first_pause = static_cast<std::uint64_t>(
      shortened(std::chrono::milliseconds(notifying.queue.first_pause)).count());
  notifying.timeout = shortened(notifying.timeout);
  notifying.presence.probe_time = static_cast<std::uint64_t>(
      shortened(std::chrono::milliseconds(notifying.presence.probe_time)).count());
  zones_.notifier =
      std::make_unique<Notifier>(io_, *network_, *services_.committer, notifying,
                                 [&slots = *data_->slots](const IpAddress& address) {
                                   return seen_by_workers(slots, address);
                                 });
}

void Server::make_update_services() {
  zones_.updates = std::make_unique<UpdateService>(
      *services_.committer, *services_.road, configuration_.runtime,
      [this](const NotifyRequest& request) { zones_.secondaries->notified(request); },
      unix_milliseconds);
  zones_.forwarder = std::make_unique<UpdateForwarder>(io_, *network_, UpdateForwarder::Options{});
  zones_.updates->set_forwarder(zones_.forwarder.get());
  zones_.updates->set_frozen(zones_.frozen.get());
  if (data_->zone_counts) zones_.updates->set_zone_counts(&*data_->zone_counts);
  zones_.update_queue = std::make_unique<UpdateQueue>(
      io_,
      [this](ipc::Forward&& request, ForwardReply reply) {
        zones_.updates->handle(std::move(request), std::move(reply));
      },
      [this](ipc::Forward&& request, const ForwardReply& reply, std::string_view why) {
        zones_.updates->refuse(std::move(request), reply, why);
      },
      UpdateQueue::Limits{});
}

void Server::make_lists(UnreadLists lists) {
  ZoneLists::Hooks hooks;
  hooks.read = [this](const RuntimePtr& complete) { workers_.start->lists_read(complete); };
  hooks.failed = [this] { workers_.start->lists_failed(); };
  lists_ = std::make_unique<ZoneLists>(io_, background_.pool(), *zones_.update_queue,
                                       std::move(lists), std::move(hooks));
}

Status Server::open_workers() {
  const config::Settings& settings = configuration_.runtime->settings;
  WorkerPoolOptions options;
  options.run_directory = settings.server.run_directory;
  options.layout = zone::layout_fingerprint();
  options.worker_binary = workers_.binary;
  options.worker_user = host_.worker_user;
  options.worker_uid = host_.worker_uid;
  options.worker_group = host_.worker_group;
  options.external = settings.server.workers.mode == config::Workers::Mode::kExternal;
  options.cpu_affinity = settings.server.cpu_affinity;
  options.pin_time = settings.limits.pin_time;
  options.logging = worker_logging(settings.server.log);
  options.dnstap = dnstap_options(settings.server);
  options.query_log = query_log_options(settings.server);
  options.xdp = xdp_options(settings.server);
  const config::Server& server = settings.server;
  workers_.listeners =
      std::make_unique<Listeners>(Listeners::Addresses{server.listen, {}});
  auto of_tls = take_tls_sockets(host_.inherited, server.listen_tls);
  workers_.listeners->restore(std::move(host_.inherited));
  auto pool = WorkerPool::open(io_, std::move(options), *data_->slots, *workers_.listeners,
                               host_.launcher ? &*host_.launcher : nullptr, worker_hooks());
  if (!pool) return pass(pool);
  workers_.pool = std::move(*pool);
  if (auto opened = open_tls(std::move(of_tls)); !opened) return opened;
  PreviousStore::Options patience;
  patience.patience = shortened(patience.patience);
  workers_.previous_store = std::make_unique<PreviousStore>(
      io_, *data_->store,
      PreviousStore::Calls{[this] { return zones_.loads->loaded(); },
                           [this] { workers_.start->leave_previous_store(); },
                           [this] {
                             zones_.loads->load(configuration_.runtime,
                                                make_history(*data_->journal),
                                                [](const ZoneFileLoads::Counts&) {});
                           }},
      patience);
  workers_.pool->set_keys(configuration_.runtime->worker_keys);
  return {};
}

Status Server::open_tls(std::vector<systemd::InheritedDescriptor> sockets) {
  const config::Server& server = configuration_.runtime->settings.server;
  TlsProcesses::Rights rights{
      host_.launcher ? &*host_.launcher : nullptr,
      {workers_.binary, server.run_directory, host_.worker_user, tls_binary()},
      host_.worker_uid,
      host_.worker_group};
  workers_.tls = std::make_unique<TlsProcesses>(
      io_, server.run_directory, std::move(rights),
      TlsProcesses::Calls{
          [this](std::uint32_t worker, const ipc::TlsIntake& intake, Fd connection) {
            return workers_.pool->lend_tls(worker, intake, std::move(connection));
          },
          [this] { return workers_.pool->serving(); }});
  workers_.certificates = std::make_unique<TlsCertificates>(
      io_, background_.pool(), native_files(), TlsCertificates::Options{unix_seconds});
  workers_.certificates->on_change([this] {
    static_cast<void>(configure_tls(configuration_.runtime->settings, *workers_.certificates,
                                    *workers_.tls));
  });
  workers_.certificates->configure({configuration_.runtime, &configuration_.runtime->settings});
  return workers_.tls->open(std::move(sockets), server.listen_tls);
}

WorkerPool::Hooks Server::worker_hooks() {
  WorkerPool::Hooks hooks;
  hooks.forward = [this](std::uint32_t, ipc::Forward&& request, ForwardReply reply) {
    zones_.update_queue->submit(std::move(request), std::move(reply));
  };
  hooks.keyring = [this] {
    return std::shared_ptr<const dns::TsigKeyring>(configuration_.runtime,
                                                   &configuration_.runtime->keys);
  };
  BurstLimitedLog limit(kTransferLinesPerSecond, kTransferLinesAtOnce);
  hooks.transfer_finished = [limit](std::uint32_t slot,
                                    const ipc::TransferFinished& transfer) mutable {
    const auto left_out = limit.one_more(steady_milliseconds());
    if (!left_out) return;
    log::info("transfer_out", "zone", to_text(transfer.zone), "client", to_text(transfer.client),
              "transport", transfer.peer ? "tls" : "tcp", "identity",
              transfer.peer ? to_text(*transfer.peer) : "", "kind",
              transfer.incremental ? "ixfr" : "axfr", "complete",
              transfer.end == ipc::TransferEnd::kComplete, "reason", to_text(transfer.end),
              "serial", transfer.serial, "records", transfer.records, "bytes", transfer.bytes, "ms",
              transfer.milliseconds, "slot", slot, "left_out", *left_out);
  };
  hooks.current_version = [this] { return data_->store->current().number; };
  hooks.serving = [this](std::uint32_t slot) {
    lists_->worker_serves();
    workers_.tls->worker_serves(slot);
  };
  hooks.pins_cleared = [this] { services_.upkeep->reclaim(); };
  hooks.no_previous_layout_workers = [this] { workers_.start->previous_layout_ended(); };
  hooks.image = [this]() -> Result<shm::ImageFile> {
    return services_.copying_image ? services_.copying_image->lend() : shm::ImageFile();
  };
  return hooks;
}

Status Server::open_control() {
  workers_.pinned =
      std::make_unique<PinnedMemory>(*data_->store, *data_->slots, services_, *workers_.pool);
  const ServerParts parts{configuration_,      *data_,         services_, zones_, *lists_,
                          *workers_.listeners, *workers_.pool, *workers_.tls, readiness_,
                          *workers_.certificates};
  control_.reloader = std::make_unique<Reloader>(io_, background_.pool(), parts);
  workers_.start = std::make_unique<ServiceStart>(
      io_, background_.pool(), parts, *workers_.previous_store, host_,
      ServiceStart::Calls{[this](const Error& reason) { image_damaged(reason); },
                          [this] { control_.reloader->allow(); }});
  control_.run_time_zones = std::make_unique<RunTimeZones>(io_, background_.pool(), configuration_,
                                                           *control_.reloader);
  control_.catalogs =
      std::make_unique<Catalogs>(io_, background_.pool(), parts, *control_.run_time_zones);
  control_.commands = std::make_unique<ControlCommands>(
      io_, background_.pool(), parts, *control_.reloader, *control_.run_time_zones,
      *control_.catalogs,
      ControlCommands::Hooks{[this] { stop(); }, [this] { leave_workers(); }},
      configuration_.read_at);  // no reload yet: the start of the process
  auto control = ControlServer::open(
      io_, background_.pool(), configuration_.runtime->settings.server.run_directory,
      host_.control_group,
      {[this](std::uint32_t uid) { return control_rights(uid, configuration_.runtime->settings); },
       [this](ipc::ControlRequest& request) -> Status {
         const auto& http = configuration_.runtime->settings.http;
         if (http) return restrict_http_user(*http, request);
         return fail(Errc::kDenied, "the configuration has no section http any more");
       },
       [this](const ipc::ControlRequest& request, ControlServer::Reply reply) {
         control_.commands->run(request, reply);
       },
       [this](std::uint64_t number) { control_.commands->end_connection(number); }});
  if (!control) return pass(control);
  control_.socket = std::move(*control);
  control_.catalogs->start();
  return {};
}

}  // namespace pando::manager

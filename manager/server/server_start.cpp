#include <sched.h>

#include <asio/post.hpp>
#include <csignal>
#include <ctime>
#include <thread>

#include "ipc/log.h"
#include "manager/checkpoint/image_replay.h"
#include "manager/checkpoint/store_opening.h"
#include "manager/commit/zone_table_sync.h"
#include "manager/journal/journal_beginning.h"
#include "manager/journal/journal_identity.h"
#include "manager/server/server.h"
#include "manager/server/systemd.h"
#include "shm/slot_guard.h"

namespace pando::manager {

namespace {

std::uint64_t now_seconds() { return static_cast<std::uint64_t>(std::time(nullptr)); }

std::uint64_t now_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::uint32_t usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
}

void log_note(const JournalNote& note) {
  if (note.severe)
    log::error("journal", "text", note.text);
  else
    log::warning("journal", "text", note.text);
}

}  // namespace

Server::Server(Options options, RuntimePtr runtime, Host host, UnreadLists lists)
    : options_(std::move(options)),
      runtime_(std::move(runtime)),
      host_(std::move(host)),
      started_(now_seconds()),
      configured_(started_),
      background_(usable_processors() + 1),  // as the loader wants it
      lists_(std::move(lists)) {}

Result<std::unique_ptr<Server>> Server::open(Options options, RuntimePtr runtime, Host host,
                                             UnreadLists lists, bool& bad_configuration) {
  std::unique_ptr<Server> server(
      new Server(std::move(options), std::move(runtime), std::move(host), std::move(lists)));
  std::signal(SIGPIPE, SIG_IGN);
  // A file at the limit of its size is an error of write(2), as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  if (auto guarded = shm::install_slot_guard(); !guarded) return pass(guarded);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) server->signals_.add(number);
  if (auto opened = server->open_data(); !opened) {
    bad_configuration = server->lists_are_wrong_;
    return pass(opened);
  }
  server->make_parts();
  if (auto opened = server->open_workers(); !opened) return pass(opened);
  if (auto opened = server->open_control(); !opened) return pass(opened);
  return server;
}

namespace {

/// The store and the journal go together: with another journal, updates that only this store has
/// would be gone at the next host restart, and those of the journal would never come back.
Status name_owner(shm::StoreOptions& options, const std::string& journal) {
  auto identity = journal_identity(native_files(), journal);
  if (!identity) return pass(identity);
  options.owner = *identity;
  options.foreign = fmt::format(
      "this store.path belongs to the journal in another folder, not to store.journal {}; choose "
      "another path or remove it",
      journal);
  return {};
}

/// False: the store was new, and the process ended before it had the list of zones.
bool knows_zones(const shm::Store& store) {
  const shm::VersionInfo version = store.current();
  return !zone::StoreView(store.window(), version.root, version.number)
              .server_settings_bytes()
              .empty();
}

}  // namespace

/// Opens the image. True: what it has of zones and rules is what the configuration says, as far as
/// can be told without reading all of that: its files are those that the store was brought in line
/// with. An image from before the last reload has other zones and rules, perhaps.
bool Server::image_is_in_line() {
  if (!image_) return false;
  if (auto opened = image_->open(); !opened) {
    if (opened.error().code != Errc::kNotFound) refused_image_.refuse(opened.error());
    return false;
  }
  refused_image_.forgive();
  const std::uint64_t configuration = image_->index()->configuration;
  return configuration != 0 && configuration == options_.configuration;
}

/// Store, slots, journal, and what the journal has beyond the store.
Status Server::open_data() {
  const RuntimePtr known = runtime_;  // which read_lists_first() replaces
  const config::Settings& settings = known->settings;
  shm::StoreOptions options;
  options.path = settings.store.path;
  options.size_limit = settings.store.size_limit;
  options.layout = zone::layout_fingerprint();
  if (host_.store_group) options.group = *host_.store_group;
  if (auto named = name_owner(options, settings.store.journal); !named) return named;
  image_ = make_image(options);
  auto journal = Journal::open({settings.store.journal}, native_files(), log_note);
  if (!journal) return pass(journal);
  journal_.emplace(std::move(*journal));
  dump_ = find_dump(options);
  StoreSeeds seeds;
  if (dump_) seeds.dump = [this](shm::Store& empty) { return load_dump_into(empty); };
  // The image has given way to it by then, or cannot, and the operator meant the dump: beside the
  // first records of this journal it would be of no use any more.
  seeds.without_dump = [this] { return dump_failed_; };
  seeds.image = image_.get();
  seeds.image_refused = [this](const Error& why) { refused_image_.refuse(why); };
  // Before a later start finds a live store, and takes the image for one of that.
  seeds.begins_empty = [this] {
    if (image_) refused_image_.lose(*image_);
  };
  seeds.bring_up = [this](shm::Store& restored) { return bring_up(restored); };
  seeds.copy_first = settings.store.verify == config::Verify::kAlways;
  seeds.not_live = [this] {
    serves_first_ = image_is_in_line() && !dump_;
    return serves_first_ ? Status() : read_lists_first();
  };
  // The last manager may be dying: its locks go one after the other.
  auto store = retry_while_held(kKilledProcessTimeout, [&] { return open_store(options, seeds); });
  if (!store) return pass(store);
  store_.emplace(std::move(store->store));
  zones_missing_ = store->from != OpenedStore::From::kLive || !knows_zones(*store_);
  if (store->from != OpenedStore::From::kImage) serves_first_ = !zones_missing_;
  if (!serves_first_)  // live, but it never had a whole list; or the image was of no use
    if (auto read = read_lists_first(); !read) return read;
  dump_done(store->from);
  journal_->skip_to(store_->current().journal_position);
  auto slots = shm::SlotTable::open(settings.server.run_directory + "/slots", settings.store.path,
                                    options.layout);
  if (!slots) return pass(slots);
  slots_.emplace(std::move(*slots));
  if (auto taken = take_store(*store); !taken) return taken;
  // Serving does not depend on it: a disk that is full has other ways to say so.
  if (auto begun = begin_journal(*store_, *journal_); !begun)
    log::error("journal_not_begun", "reason", begun.error().text);
  return {};
}

/// A store from the image takes what the journal has behind it. From then on the two belong
/// together, and no copy of the image is to be taken under another journal.
Status Server::bring_up(shm::Store& restored) {
  auto done = replay_onto_image(restored, *journal_, native_files(), runtime_->limits, log_note);
  if (!done) return pass(done);
  return image_->take_over();
}

/// A store from a dump. What lies where the image does is not of it, and must not be taken for that
/// when there is a store of that name, by whichever start.
Status Server::load_dump_into(shm::Store& empty) {
  bool takes_over = false;
  auto done = dump_->bring_up(empty, *journal_, runtime_->limits, log_note, [this, &takes_over] {
    takes_over = true;
    return image_ ? refused_image_.give_way(*image_, dump_->header()) : Status();
  });
  if (!done && takes_over) dump_failed_ = done;
  if (done && image_) refused_image_.keep(*image_);
  return done;
}

std::unique_ptr<PlacedDump> Server::find_dump(const shm::StoreOptions& options) const {
  auto found = PlacedDump::find(native_files(), runtime_->settings.store.journal, options.owner);
  if (found) return std::move(*found);
  log::error("dump_not_used", "reason", found.error().text);
  return nullptr;
}

/// What it has is in the store now, or was there before. One that could not be used stays.
void Server::dump_done(OpenedStore::From from) {
  if (!dump_) return;
  const bool served =
      from == OpenedStore::From::kDump || (from == OpenedStore::From::kLive && dump_->is_own());
  Status removed;
  if (served) removed = dump_->remove();
  if (!removed) log::error("dump_not_removed", "reason", removed.error().text);
  if (from == OpenedStore::From::kLive && !served)
    log::warning("dump_not_used", "file", dump_->path(), "reason", "there is a live store");
  dump_.reset();
}

Status Server::take_store(OpenedStore& opened) {
  const OpenedStore::From from = opened.from;
  if (opened.lent) copying_image_ = std::make_unique<ImageCopying>(io_, std::move(*opened.lent));
  look_at_image(opened);
  store_->set_slots(&*slots_);
  if (zones_missing_) store_was_lost_ = journal_->last_position() > 0;
  // One that is live and has no list of zones has no zone's data either.
  if (from == OpenedStore::From::kLive && !zones_missing_)
    return replay_journal(*store_, *journal_, native_files(), log_note);
  restored_ = from == OpenedStore::From::kImage || from == OpenedStore::From::kDump;
  return restored_ ? Status() : first_version();
}

std::unique_ptr<Image> Server::make_image(const shm::StoreOptions& options) const {
  const std::string& path = runtime_->settings.store.image;
  if (path.empty()) return nullptr;
  const bool empty = !has_segments(native_files(), runtime_->settings.store.journal);
  return std::make_unique<Image>(native_files(),
                                 Image::Options{path, options.layout, options.owner, empty});
}

/// A live store needs no image, but for what it has to keep for it.
void Server::look_at_image(const OpenedStore& opened) {
  if (!image_) return;
  const OpenedStore::From from = opened.from;
  // What the image has of another line of versions is nothing to go on with.
  if (from != OpenedStore::From::kLive && from != OpenedStore::From::kImage) image_->forget();
  Status looked;
  if (from == OpenedStore::From::kLive) looked = image_->look(store_->line());
  // What an earlier try said of the image, before the store was there, is no reason any more.
  if (from == OpenedStore::From::kLive || from == OpenedStore::From::kImage)
    refused_image_.forgive();
  if (!looked && looked.error().code != Errc::kNotFound) refused_image_.refuse(looked.error());
  refused_image_.keep(*image_);
  if (!refused_image_.may_write()) return image_.reset();
  if (!opened.has_image_version) return image_->leave();
  // Before anything is reused that the image refers to.
  image_pin_ = Checkpointer::pin(*image_, *slots_);
}

/// A store that began empty holds nothing of the journal yet; zones are loaded with their part of
/// it, so its position is the journal's end from the start.
Status Server::first_version() {
  auto version =
      store_->publish(store_->begin(), store_->current().root, journal_->last_position());
  if (!version) return pass(version);
  return {};
}

void Server::make_parts() {
  committer_ =
      std::make_unique<Committer>(io_, *store_, *journal_, journal_thread_, Committer::Options{});
  snapshots_ = std::make_unique<ZoneSnapshots>(io_, *committer_);
  committer_->on_published([this](std::uint64_t version) { published(version); });
  committer_->on_zone_changed(
      [this](const dns::Name& zone, bool whole) { zone_changed(zone, whole); });
  const config::StoreSettings& store = runtime_->settings.store;
  if (image_) {
    checkpointer_ = std::make_unique<Checkpointer>(
        io_, *store_, *slots_, *journal_, std::move(image_),
        Checkpointer::Options{.interval = std::chrono::milliseconds(store.checkpoint.interval),
                              .journal_bytes = store.checkpoint.journal});
    checkpointer_->set_pin(std::move(image_pin_));
    if (copying_image_) checkpointer_->hold();
  }
  network_ = std::make_unique<Network>();
  upkeep_ = std::make_unique<StoreUpkeep>(io_, *store_, *committer_, StoreUpkeep::Options{});
  upkeep_->set_history_total(runtime_->limits.history_total);
  huge_pages_ = std::make_unique<HugePages>(io_, pool_, *store_, HugePages::Options{});
  heap_upkeep_ = std::make_unique<HeapUpkeep>(io_, pool_, HeapUpkeep::Options{});
  journal_upkeep_ =
      std::make_unique<JournalUpkeep>(io_, pool_, journal_thread_, native_files(), *journal_,
                                      *committer_, *slots_, store.journal_limit);
  if (checkpointer_)
    journal_upkeep_->before_dropping([this](std::function<void()> go_on) {
      checkpointer_->write_now([go_on = std::move(go_on)](const Status&) { go_on(); });
    });
  changes_ = std::make_unique<LargeChangesets>(io_, network_->builders(), *store_, *slots_,
                                               *committer_, LargeChangesets::Options{});
  upkeep_->leave_alone([this](dns::NameView apex) { return changes_->at_work_on(apex); });
  loader_ = std::make_unique<ZoneLoader>(io_, pool_, usable_processors(), *store_, *slots_,
                                         *committer_, *changes_, runtime_->limits);
  copies_ = std::make_unique<ZoneCopies>(io_, pool_, native_files(), *committer_, *slots_,
                                         runtime_->settings.store.journal + "/secondary");
  loads_ = std::make_unique<ZoneFileLoads>(
      *loader_, *copies_, *committer_,
      [this](const dns::Name& secondary) { secondaries_->looked_at(secondary); });
  if (copying_image_) loads_->hold_copies();
  exports_ = std::make_unique<ZoneExports>(
      io_, pool_, native_files(), *committer_, *slots_, [this] { return history(); },
      ZoneExports::Options{});
  committer_->on_journalled([this](const JournalEntry& entry) { exports_->journalled(entry); });
  visits_ = std::make_unique<Refresher>(
      io_, *network_, *store_, *slots_, *committer_, *changes_,
      [this](const dns::Name& zone, bool had_data) { zone_transferred(zone, had_data); });
  secondaries_ =
      std::make_unique<SecondaryZones>(io_, *network_, *visits_, [this](const dns::Name& name) {
        const zone::ZoneView zone = committer_->current().zone_at(name);
        return zone && zone.loaded();
      });
  notifier_ = std::make_unique<Notifier>(io_, *network_, *committer_, Notifier::Options{});
  service_ =
      std::make_unique<UpdateService>(*committer_, runtime_, secondaries_.get(), now_milliseconds);
  forwarder_ = std::make_unique<UpdateForwarder>(io_, *network_, UpdateForwarder::Options{});
  service_->set_forwarder(forwarder_.get());
  service_->set_large_changes(changes_.get());
  gate_ = std::make_unique<UpdateQueue>(
      io_,
      [this](ipc::Forward&& request, ForwardReply reply) {
        service_->handle(std::move(request), std::move(reply));
      },
      [this](ipc::Forward&& request, const ForwardReply& reply, std::string_view why) {
        service_->refuse(std::move(request), reply, why);
      },
      UpdateQueue::Limits{});
  const config::Server& server = runtime_->settings.server;
  listeners_ = std::make_unique<Listeners>(Listeners::Addresses{server.listen, server.listen_tls});
}

Status Server::open_workers() {
  const config::Settings& settings = runtime_->settings;
  WorkerPoolOptions options;
  options.run_directory = settings.server.run_directory;
  options.store_path = settings.store.path;
  options.layout = zone::layout_fingerprint();
  options.worker_binary = options_.worker_binary;
  options.worker_user = host_.worker_user;
  options.worker_uid = host_.worker_uid;
  options.external = settings.server.workers.mode == config::Workers::Mode::kExternal;
  options.cpu_affinity = settings.server.cpu_affinity;
  options.pin_time = settings.limits.pin_time;
  WorkerPool::Hooks hooks;
  hooks.forward = [this](std::uint32_t, ipc::Forward&& request, ForwardReply reply) {
    gate_->pass(std::move(request), std::move(reply));
  };
  hooks.keyring = [this] {
    return std::shared_ptr<const dns::TsigKeyring>(runtime_, &runtime_->keys);
  };
  hooks.transfer_finished = [](std::uint32_t slot, const ipc::TransferFinished& transfer) {
    log::info("transfer_out", "zone", to_text(transfer.zone), "client", to_text(transfer.client),
              "kind", transfer.incremental ? "ixfr" : "axfr", "complete", transfer.complete,
              "serial", transfer.serial, "records", transfer.records, "bytes", transfer.bytes, "ms",
              transfer.milliseconds, "slot", slot);
  };
  hooks.serving = [this](std::uint32_t) { lists_timer_.cancel(); };
  hooks.pins_cleared = [this] { upkeep_->reclaim(); };
  hooks.no_predecessors = [this] {
    if (workers_later_ && (serves_first_ || in_line_)) start_workers();
    workers_later_ = false;
  };
  hooks.image = [this]() -> Result<shm::ImageFile> {
    return copying_image_ ? copying_image_->lend() : shm::ImageFile();
  };
  auto pool = WorkerPool::open(io_, std::move(options), *slots_, *listeners_,
                               host_.launcher ? &*host_.launcher : nullptr, std::move(hooks));
  if (!pool) return pass(pool);
  workers_ = std::move(*pool);
  workers_->set_keys(runtime_->worker_keys);
  return {};
}

Status Server::open_control() {
  auto control = ControlServer::open(
      io_, runtime_->settings.server.run_directory,
      [this](std::uint32_t uid) {
        return may_control(uid, runtime_->settings.server.control_group);
      },
      [this](const ipc::ControlRequest& request, ControlServer::Reply reply) {
        this->control(request, reply);
      });
  if (!control) return pass(control);
  control_ = std::move(*control);
  return {};
}

std::uint32_t Server::worker_count() const {
  const config::Workers& workers = runtime_->settings.server.workers;
  return workers.mode == config::Workers::Mode::kFixed ? workers.count : usable_processors();
}

/// An attached store serves at once, as it is, and the zone lists are read then; so does one that
/// the image has of this configuration. Any other first gets its list of zones, so that zones still
/// loading answer SERVFAIL rather than REFUSED.
void Server::begin_serving() {
  upkeep_->start();
  // Workers of another build have all zones, and ours have to have them before these go.
  workers_later_ = workers_->has_predecessors();
  if (serves_first_) {
    if (!workers_later_) start_workers();
    announce(restored_ ? "serving what the store was made from" : "serving the live store");
  }
  if (lists_) return read_lists_later();
  bring_in_line();
}

void Server::start_workers() {
  workers_later_ = false;
  if (auto started = workers_->start(worker_count()); !started)
    log::error("listen_failed", "reason", started.error().text);
  // After the first answer has been made possible; reading the image takes all that the disk gives.
  if (copying_image_) copying_image_->start([this](const Status& status) { image_copied(status); });
}

/// The store is like any other from here on.
void Server::image_copied(const Status& status) {
  if (!status) return leave_damaged_image(status.error());
  // Not here: it is what calls.
  asio::post(io_, [done = std::shared_ptr<ImageCopying>(std::move(copying_image_))] {});
  workers_->store_settled();
  loads_->release_copies();
  if (checkpointer_) checkpointer_->go_on();
  if (loads_->settled()) configure_exports();
}

/// What a damaged image says is not to become a zone's file.
void Server::configure_exports() {
  if (!copying_image_) exports_->configure(runtime_);
}

void Server::bring_in_line() {
  notifier_->configure(runtime_);
  ZoneTableSync::run(*store_, *committer_, runtime_,
                     [this](const Status& status, const ZoneTableSync::Counts& counts) {
                       in_line(status, counts.loaded);
                     });
}

void Server::in_line(const Status& status, std::uint64_t zones_with_data) {
  loads_->recounted(zones_with_data);
  if (!status) log::error("zone_table_failed", "reason", status.error().text);
  if (status && checkpointer_) checkpointer_->set_configuration(options_.configuration);
  if (!serves_first_ && !workers_later_) start_workers();
  if (restored_) announce("serving what the store was made from");
  secondaries_->configure(runtime_);
  loads_->load(runtime_, history(), [this](const ZoneFileLoads::Counts& counts) {
    if (workers_later_) start_workers();
    copies_->keep_only(runtime_);
    configure_exports();
    if (zones_missing_) forget_zones();
    if (counts.is_first) notifier_->tell_all();
    announce("all zones loaded");
  });
  in_line_ = true;
  if (waiting_reload_) start_reload(std::exchange(waiting_reload_, nullptr));
}

/// READY=1 once: when the live store is served again, or when each zone of a new one is served or
/// has failed.
void Server::announce(std::string_view why) {
  if (std::exchange(announced_, true)) return;
  const zone::StoreView current = committer_->current();
  log::info("manager_ready", "reason", why, "zones", current.zone_count(), "version",
            current.version());
  systemd::ready(fmt::format("{} zones", current.zone_count()));
}

std::shared_ptr<HistorySource> Server::history() {
  return std::make_shared<HistorySource>(native_files(), *journal_, log_note);
}

/// Zones that left the configuration while the store was lost are found in the journal alone.
void Server::forget_zones() {
  asio::post(pool_, [this, runtime = runtime_, source = history(),
                     position = committer_->position()] {
    std::vector<dns::Name> names = source->any(position)->zone_names();
    std::erase_if(names, [&](const dns::Name& name) {
      return runtime->settings.zones.find(name).has_value();
    });
    if (!names.empty())
      asio::post(io_, [this, names = std::move(names)]() mutable { note_gone(std::move(names)); });
  });
}

void Server::note_gone(std::vector<dns::Name> names) {
  CommitRequest request;
  request.stage = [names = std::move(names)](Stage& stage) -> Status {
    for (const dns::Name& name : names)
      if (!stage.draft.snapshot().zone_at(name))  // not configured again meanwhile
        stage.journal.push_back({name, {}, {}, {}, RecordKind::kGone});
    return {};
  };
  request.done = [](const Result<std::uint64_t>& version) {
    if (!version) log::warning("updates_of_removed_zones_kept", "reason", version.error().text);
  };
  committer_->submit(std::move(request));
}

void Server::zone_transferred(const dns::Name& zone, bool had_data) {
  loads_->transferred(zone, had_data);
  const config::ZoneTable& zones = runtime_->settings.zones;
  // A zone without data may have had some before the store was lost.
  if (const auto index = zones.find(zone))
    copies_->write(zone, copies_->path_of(zones, *index), had_data || store_was_lost_);
}

void Server::published(std::uint64_t) {
  journal_upkeep_->check(loads_->under_way());
  snapshots_->tell_losses();
  if (loads_->settled() && !stopping_) check_pinned();
}

/// The files of a start are told with all zones, when they have been looked at.
void Server::zone_changed(const dns::Name& zone, bool whole) {
  if (!whole || loads_->settled()) notifier_->zone_changed(zone);
}

}  // namespace pando::manager

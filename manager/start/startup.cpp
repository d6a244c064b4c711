#include "manager/start/startup.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <utility>

#include "base/pause_point.h"
#include "ipc/log.h"
#include "manager/checkpoint/image_replay.h"
#include "manager/checkpoint/journal_beginning.h"
#include "manager/commit/next_version.h"
#include "manager/journal/journal_identity.h"
#include "manager/journal/journal_snapshot.h"
#include "manager/support/found_damage.h"
#include "shm/live_file.h"

namespace pando::manager {

namespace {

/// The copies of the identity outside of the journal. kNotFound: there is neither a live store nor
/// an image that could tell.
Result<shm::StoreOwner> identity_beside(Files& files, const shm::StoreOptions& options,
                                        const std::string& image_path) {
  auto known = shm::owner_of(options.path, options.layout);
  if (!known && known.error().code == Errc::kNotFound && !image_path.empty()) {
    const Image image(files, {image_path, options.layout, {}, false});
    if (auto head = image.head())
      known = head->owner;
    else if (head.error().code != Errc::kCorrupt)
      known = pass(head);
  }
  if (known && *known == shm::StoreOwner{})
    return fail(Errc::kNotFound, "a store without a journal");
  return known;
}

/// The identity of a journal whose own file is missing, damaged or unreadable. The journal's other
/// files prove theirs. Live store and image may belong to another journal, so they are asked only
/// if no file has one. `why`: the error, returned when something may know it later.
Result<shm::StoreOwner> known_identity(Files& files, const shm::StoreOptions& options,
                                       const config::StoreSettings& settings, const Error& why) {
  const bool is_lost = why.code == Errc::kCorrupt || why.code == Errc::kNotFound;
  std::string_view effect = "the identity in the journal's other files is used";
  auto known = identity_in_files(files, settings.journal);
  if (!known && known.error().code == Errc::kCorrupt) return known;
  const bool may_tell_later = !known && known.error().code != Errc::kNotFound;
  if (!known) {
    effect = "the identity in the store or the image is used";
    known = identity_beside(files, options, settings.image);
    if (!known && (may_tell_later || !is_lost || known.error().code != Errc::kNotFound))
      return pass(why);
  }
  if (!known) effect = "there is no store to go with, and the journal gets a new one";
  log::error("journal_identity_lost", "reason", why.text, "effect", effect);
  if (is_lost) found_damage().add(why.text);
  if (!known) return make_identity(files, settings.journal);
  if (is_lost && !may_tell_later)
    if (auto written = write_identity(files, settings.journal, *known); !written)
      log::error("journal_identity_lost", "reason", written.error().text);
  return known;
}

/// The store and the journal go together. With another journal, updates of this store alone would
/// be gone at the next host restart, and the journal's own updates would never come back.
Status name_owner(Files& files, shm::StoreOptions& options,
                  const config::StoreSettings& settings) {
  const std::string& journal = settings.journal;
  auto identity = journal_identity(files, journal);
  if (!identity) identity = known_identity(files, options, settings, identity.error());
  if (!identity) return pass(identity);
  options.owner = *identity;
  options.foreign = fmt::format(
      "this store.path belongs to the journal in another folder, not to store.journal {}; choose "
      "another path or remove it",
      journal);
  return {};
}

/// Whether the folder's file system is lost with the host.
bool is_in_memory(const std::string& folder) {
  struct statfs status{};
  if (::statfs(folder.c_str(), &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

zone::StoreView version_of(const shm::Store& store) {
  const shm::VersionInfo version = store.current();
  return {store.window(), version.root, version.number};
}

/// False: the store was new, and the process ended before the store had the list of zones.
bool knows_zones(const shm::Store& store) {
  return !version_of(store).server_settings_bytes().empty();
}

/// A store that cannot reach its limit seems far from full to the operator until it is full.
void warn_of_small_machine(const shm::Store& store, const std::string& path) {
  const shm::StoreStats stats = store.stats();
  if (stats.limit_bytes < stats.size_limit)
    log::warning("store_limited_by_machine", "path", path, "effective_limit", stats.limit_bytes,
                 "limit", stats.size_limit);
}

}  // namespace

Startup::Startup(const Host& host, CurrentConfiguration& configuration, UnreadLists& lists,
                 Disk disk)
    : host_(host),
      configuration_(configuration),
      lists_(lists),
      disk_(std::move(disk)) {}

Result<std::unique_ptr<OpenedData>> Startup::open() {
  const RuntimePtr known = configuration_.runtime;  // read_lists_first() replaces it
  const config::Settings& settings = known->settings;
  shm::StoreOptions options;
  options.path = settings.store.path;
  options.size_limit = settings.store.size_limit;
  options.layout = zone::layout_fingerprint();
  if (auto opened = open_journal(settings, options); !opened) return pass(opened);
  auto store = open_store_from_seeds(settings, options);
  if (!store) return pass(store);
  data_->store.emplace(std::move(store->store));
  warn_of_small_machine(*data_->store, settings.store.path);
  data_->zones_missing = store->from != OpenedStore::From::kLive || !knows_zones(*data_->store);
  if (store->from != OpenedStore::From::kImage) data_->serves_first = !data_->zones_missing;
  // The store is live without a whole list of zones, or the image was of no use.
  if (!data_->serves_first)
    if (auto read = read_lists_first(); !read) return pass(read);
  end_dump(store->from);
  data_->journal->store_is_at(data_->store->current().journal_position);
  if (auto opened = open_slots(settings, options); !opened) return pass(opened);
  if (auto taken = take_store(*store); !taken) return pass(taken);
  // Serving does not depend on the journal's beginning; a full disk is reported by other means.
  if (auto begun = begin_journal(*data_->store, *data_->journal); !begun)
    log::error("journal_not_begun", "reason", begun.error().text);
  return std::move(data_);
}

Status Startup::open_journal(const config::Settings& settings, shm::StoreOptions& options) {
  if (auto named = name_owner(disk_.files, options, settings.store); !named) return named;
  data_->image = make_image(settings.store, options);
  disk_.journal.directory = settings.store.journal;
  disk_.journal.identity = options.owner;
  disk_.journal.retry = shortened(disk_.journal.retry);
  auto journal = Journal::open(disk_.journal, disk_.files, log_note);
  if (!journal) return pass(journal);
  data_->journal.emplace(std::move(*journal));
  data_->journal_in_memory = is_in_memory(settings.store.journal);
  if (data_->journal_in_memory)
    log::warning("journal_in_memory", "path", settings.store.journal, "reason",
                 "the file system is memory: a host restart loses all updates");
  return {};
}

Result<OpenedStore> Startup::open_store_from_seeds(const config::Settings& settings,
                                                   const shm::StoreOptions& options) {
  dump_ = find_dump(settings.store, options);
  StoreSeeds seeds;
  if (dump_) seeds.dump = [this](shm::Store& empty) { return load_dump_into(empty); };
  // The image is already gone for the dump's sake, so the start stops rather than go on without the
  // dump: once this journal has records, the dump cannot be used any more.
  seeds.without_dump = [this] { return dump_failed_; };
  seeds.image = data_->image.get();
  seeds.image_not_used = [this](const Error& why) { data_->quarantined.mark_unused(why); };
  // A later start would find a live store, and take the image for an image of that store.
  seeds.begins_empty = [this] {
    if (data_->image) data_->quarantined.lose(*data_->image);
  };
  seeds.bring_up = [this](shm::Store& restored) { return bring_up(restored); };
  seeds.copy_first = settings.store.verify == config::Verify::kAlways;
  seeds.not_live = [this] {
    pass_over_damaged_end(*data_->journal);
    data_->serves_first = image_is_in_line() && !dump_;
    return data_->serves_first ? Status() : read_lists_first();
  };
  // The last manager may be dying: its locks go one after the other.
  return retry_while_held(kKilledProcessTimeout, [&] { return open_store(options, seeds); });
}

Status Startup::open_slots(const config::Settings& settings, const shm::StoreOptions& options) {
  auto slots = shm::SlotTable::open(settings.server.run_directory + "/slots", settings.store.path,
                                    options.layout);
  if (!slots) return pass(slots);
  data_->slots.emplace(std::move(*slots));
  open_zone_counts(settings);
  share_with_http(settings);
  return {};
}

/// Only where zones have metrics of their own. A manager without these counters serves, too.
void Startup::open_zone_counts(const config::Settings& settings) {
  const std::string directory = settings.server.run_directory + "/slots";
  if (!settings.http || settings.http->metrics_zones == 0)
    return shm::ZoneCounts::remove(directory);
  auto counts = shm::ZoneCounts::open(directory, settings.http->metrics_zones);
  if (counts)
    data_->zone_counts.emplace(std::move(*counts));
  else
    log::warning("zones_not_counted", "reason", counts.error().text);
}

/// pando-http reads the store and the workers' counters by itself. A manager that cannot let it
/// serves all the same.
void Startup::share_with_http(const config::Settings& settings) {
  if (!settings.http) return;
  Status shared = fail(Errc::kNotFound, "no user {}", settings.http->user);
  if (host_.http_group)
    shared = data_->slots->share_with(*host_.http_group, settings.store.path);
  if (shared && data_->zone_counts) shared = data_->zone_counts->share_with(*host_.http_group);
  if (!shared)
    log::warning("store_not_shared", "user", settings.http->user, "reason", shared.error().text);
}

/// A store without the list of zones cannot be served, so all zones are known before it is.
Status Startup::read_lists_first() {
  if (!lists_) return {};
  auto complete = with_lists(configuration_.runtime, std::exchange(lists_, nullptr));
  lists_are_wrong_ = !complete;
  if (!complete) return pass(complete);
  configuration_.runtime = std::move(*complete);
  return {};
}

/// Logs notes, and has the journal know that it lacks records.
NoteSink Startup::gap_sink() {
  return [this](const JournalNote& note) {
    log_note(note);
    if (note.missing_to != 0)
      data_->journal->report(JournalHealth::State::kBehind, note.text);
  };
}

std::unique_ptr<Image> Startup::make_image(const config::StoreSettings& settings,
                                           const shm::StoreOptions& options) const {
  if (settings.image.empty()) return nullptr;
  const bool empty = !has_segments(disk_.files, settings.journal);
  return std::make_unique<Image>(
      disk_.files, Image::Options{settings.image, options.layout, options.owner, empty});
}

std::unique_ptr<PlacedDump> Startup::find_dump(const config::StoreSettings& settings,
                                               const shm::StoreOptions& options) const {
  auto found = PlacedDump::find(disk_.files, settings.journal, options.owner);
  if (found) return std::move(*found);
  log::error("dump_not_used", "reason", found.error().text);
  return nullptr;
}

/// Opens the image. True: the image's zones and rules are those of the configuration, as far as can
/// be told without reading all of it. The fingerprint of the configuration's files decides, since
/// an image from before the last reload may have other zones and rules.
bool Startup::image_is_in_line() {
  if (!data_->image) return false;
  if (auto opened = data_->image->open(); !opened) {
    if (opened.error().code != Errc::kNotFound) data_->quarantined.mark_unused(opened.error());
    return false;
  }
  data_->quarantined.mark_used();
  const std::uint64_t configuration = data_->image->index()->configuration;
  return configuration != 0 && configuration == configuration_.fingerprint;
}

/// A store from the image takes the journal's records after the image. From then on the two belong
/// together, and no copy of the image may be taken under another journal.
Status Startup::bring_up(shm::Store& restored) {
  auto done = replay_onto_image(restored, *data_->journal, disk_.files,
                                configuration_.runtime->limits, gap_sink());
  if (!done) return pass(done);
  return data_->image->take_over();
}

/// An image that lies beside a dump has nothing to do with the new store. No later start may take
/// it for an image of that store.
Status Startup::load_dump_into(shm::Store& empty) {
  bool takes_over = false;
  auto done = dump_->bring_up(
      empty, *data_->journal, configuration_.runtime->limits, log_note, [this, &takes_over] {
        takes_over = true;
        return data_->image ? data_->quarantined.clear_for_dump(*data_->image, dump_->header())
                            : Status();
      });
  if (!done && takes_over) dump_failed_ = done;
  if (done && data_->image) data_->quarantined.quarantine_if_good(*data_->image);
  return done;
}

/// Removes a dump whose data the store has now, or had before. An unusable dump stays.
void Startup::end_dump(OpenedStore::From from) {
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

Status Startup::take_store(OpenedStore& opened) {
  const OpenedStore::From from = opened.from;
  data_->lent = std::move(opened.lent);
  look_at_image(opened);
  data_->store->set_slots(&*data_->slots);
  if (data_->zones_missing) data_->store_was_lost = data_->journal->last_position() > 0;
  // A live store without a list of zones has no zone's data either.
  if (from == OpenedStore::From::kLive && !data_->zones_missing) return replay_onto_live_store();
  data_->restored = from == OpenedStore::From::kImage || from == OpenedStore::From::kDump;
  return data_->restored ? Status() : publish_first_version();
}

/// A live store is served even if the journal cannot be read.
Status Startup::replay_onto_live_store() {
  Journal& journal = *data_->journal;
  if (journal.health().is_unreadable()) {
    tell_what_store_has();
    return {};
  }
  auto replayed = replay_journal(*data_->store, journal, disk_.files, gap_sink());
  // A segment that turns out to be damaged is put aside when the journal is read again.
  const bool is_fault = !replayed && (replayed.error().code == Errc::kIo ||
                                      replayed.error().code == Errc::kCorrupt);
  if (!is_fault) return replayed;
  log::error("journal", "text", replayed.error().text);
  tell_what_store_has();
  journal.report(JournalHealth::State::kUnreadable, replayed.error().text);
  return {};
}

/// A live store has everything that was acknowledged, unless it was itself made beside a journal
/// that could not be read: zones that wait have their updates in the unread part alone. Neither may
/// that part be voided then, nor may a snapshot of the store take its place.
void Startup::tell_what_store_has() {
  if (!zone_without_data(version_of(*data_->store)))
    data_->journal->store_is_at(data_->store->current().journal_position, true);
}

/// A live store needs the image only for the chunks that the image's version holds.
void Startup::look_at_image(const OpenedStore& opened) {
  if (!data_->image) return;
  Image& image = *data_->image;
  QuarantinedImage& quarantined = data_->quarantined;
  const bool live = opened.from == OpenedStore::From::kLive;
  const bool from_image = opened.from == OpenedStore::From::kImage;
  // An image of another lineage is nothing to go on with.
  if (!live && !from_image) image.forget();
  Status looked;
  if (live) looked = image.look(data_->store->lineage());
  // Clear the failure that this start recorded before the store existed.
  if (live || from_image) quarantined.mark_used();
  if (!looked && looked.error().code != Errc::kNotFound) quarantined.mark_unused(looked.error());
  quarantined.quarantine_if_good(image);
  if (!quarantined.may_write()) return data_->image.reset();
  if (!opened.has_image_version) return image.leave();
  // The pin comes before anything is reused that the image refers to.
  data_->image_pin = Checkpointer::pin(image, *data_->slots);
}

/// A store that began empty has applied nothing of the journal. Each zone is loaded together with
/// its part of the journal, so the store's position is the journal's end from the start.
Status Startup::publish_first_version() {
  return recover_position(*data_->store, data_->journal->last_position());
}

}  // namespace pando::manager

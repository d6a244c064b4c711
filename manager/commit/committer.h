#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "manager/commit/commit_request.h"
#include "manager/commit/pending_records.h"
#include "manager/journal/journal.h"
#include "manager/support/loop_mailbox.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// The one door to the store; also keeps additions out of the store's reserve (shm/map/reserve.h).
///
/// Requests queue. A group of requests is staged into one draft, and its records are appended to
/// the journal and synced. Then the version is published, and only then are the requests answered.
/// While a group syncs in the journal's thread, the next one queues.
///
/// Everything but the sync runs on the commit thread, the one thread of `io`. Control and the
/// supervision of workers run there, too, so that thread never waits for the disk.
class Committer {
 public:
  struct Options {
    std::size_t max_group = 256;  ///< bounds the time that one group keeps the commit thread busy
    std::chrono::milliseconds retry_pending{10'000};  ///< see PendingRecords
  };
  struct Counters {
    std::uint64_t versions = 0;
    std::uint64_t requests = 0;
    std::uint64_t failed = 0;
    std::uint64_t store_bytes = 0;  ///< fresh blocks of all versions
    std::uint64_t gone = 0;         ///< journal records of zones that left or were purged
  };

  /// All references outlive the committer. `journal` is written in `journal_thread` alone.
  Committer(asio::io_context& io, shm::Store& store, Journal& journal,
            JournalThread& journal_thread, Options options);
  ~Committer();

  void submit(CommitRequest request);

  /// Computes a changeset from the draft, which has the effects of earlier group members.
  using Compute = std::function<Result<zone::Changeset>(const zone::StoreView&)>;
  using Applied = std::function<void(Result<zone::Applied>)>;
  void apply(Compute compute, const zone::DataLimits& limits, Applied done);
  /// Stages the changeset of `compute`, for requests other than apply()'s. A step that changes
  /// nothing adds no journal record; kIo while the journal's end is not durable (check_end).
  Result<zone::Applied> stage_changeset(Stage& stage, const Compute& compute,
                                        const zone::DataLimits& limits) const;

  /// Appends the record of `kind` (kChangeset or kTransfer) for an applied changeset. A zone's
  /// first record is preceded by its merge base: from that the next host restart sees whether the
  /// file was edited.
  void journal_changeset(Stage& stage, const zone::Applied& applied, RecordKind kind) const;
  /// Whether the journal has the zone's merge base.
  [[nodiscard]] bool has_merge_base(const dns::Name& zone) const;

  using Finished = std::function<void(const Status&)>;
  /// Puts a whole zone sent by a primary, built in `built_in`, a pool thread's transaction. When
  /// the zone replaces data, a journal record tells that earlier updates are gone with those data.
  /// A journal that cannot be written does not stop the zone.
  void put_zone(const dns::Name& apex, std::shared_ptr<zone::BuiltZone> built,
                shm::Transaction&& built_in, const zone::ZoneFileInfo& source, Finished done);
  /// The same with conditions, each of which may be empty. `check` sees the zone just before;
  /// `note` adds journal records from the zone just after.
  struct ZonePut {
    dns::Name apex;
    std::shared_ptr<zone::BuiltZone> built;
    shm::Transaction built_in;
    zone::ZoneFileInfo source;
    std::function<Status(const zone::ZoneView& before)> check;
    std::function<void(std::vector<JournalEntry>&, const zone::ZoneView& after)> note;
  };
  void put_zone(ZonePut put, Finished done);
  /// Puts many zones that had no data, built in one transaction, in one version or not at all.
  /// kExists: a zone has data by now, or is not configured any more.
  struct NewZones {
    struct Zone {
      dns::Name apex;
      std::shared_ptr<zone::BuiltZone> built;
      zone::ZoneFileInfo source;
    };
    std::vector<Zone> zones;
    shm::Transaction built_in;
  };
  void put_new_zones(NewZones zones, Finished done);
  /// To be called after a request of submit() put a zone that had no data.
  void new_zone_put(const dns::Name& apex);
  /// To be called after a zone sent whole by a primary was applied as a changeset. As after
  /// put_zone(), a journal record tells that earlier updates are gone.
  void zone_replaced(const dns::Name& apex);
  /// Keeps journal records of a zone that was just put, when the journal could not be written.
  void add_pending(const dns::Name& apex, std::vector<JournalEntry> records) {
    pending_.add(apex, std::move(records));
  }
  /// Tries again to make the journal's end durable, after a start that failed to
  /// (check_end()). To be called periodically. Each update tries again, too; no-op
  /// updates are refused until then.
  void secure_journal();
  /// Makes an edit that needs no journal record, since the zone files and the configuration repeat
  /// it: settings, removals and the like. An edit that adds nothing may `use` the store's reserve.
  void edit(std::function<Status(zone::Draft&)> step, Finished done,
            shm::Reserve use = shm::Reserve::kKept);

  /// Called after each publication, before the requests are answered.
  void on_published(std::function<void(std::uint64_t version)> hook) {
    published_hook_ = std::move(hook);
  }
  /// Called after each publication for each zone whose data changed. `whole`: the zone was put as a
  /// whole, not by a changeset.
  void on_zone_changed(std::function<void(const dns::Name& zone, bool whole)> hook) {
    zone_hook_ = std::move(hook);
  }
  /// Called for each record of a group after its publication, in order.
  void on_journalled(std::function<void(const JournalEntry&)> hook) {
    journalled_hook_ = std::move(hook);
  }
  /// Called when a group is put together; may add one step of upkeep (compaction).
  void on_idle_room(std::function<std::optional<CommitRequest>()> hook) {
    upkeep_hook_ = std::move(hook);
  }

  [[nodiscard]] bool busy() const noexcept;  ///< a request is staged or queued
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// The version readers see now.
  [[nodiscard]] zone::StoreView current() const;
  /// Journal position up to which the published version contains everything.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  struct Group;
  using GroupPtr = std::shared_ptr<Group>;
  void schedule();
  void run_next();
  std::vector<CommitRequest> take_group();
  void stage_group(Group& group);
  Status stage_one(Group& group, CommitRequest& request, bool alone);
  void write_journal(std::shared_ptr<Group> group);
  void journalled(const GroupPtr& group, Result<std::uint64_t> position);
  void publish(const GroupPtr& published, std::uint64_t position);
  void abandon(const GroupPtr& group, const Error& error);
  void fail_group(Group& group, const Error& error);
  void answer(Group& group, std::uint64_t version);
  void retry_singly(Group& group);
  void update_merge_bases(const Group& group);
  void report_changes(const Group& group) const;
  void reach_end();
  void forget_merge_base(const dns::Name& apex);
  void journal_whole_transfer(const dns::Name& apex, dns::Serial serial);

  asio::io_context& io_;
  LoopMailbox& mailbox_;
  shm::Store& store_;
  Journal& journal_;
  JournalThread& journal_thread_;
  Options options_;
  std::deque<CommitRequest> queue_;
  std::size_t singly_ = 0;  ///< this many requests at the front become groups of one
  bool scheduled_ = false;
  bool in_flight_ = false;
  bool securing_ = false;
  std::uint64_t position_;
  Counters counters_;
  std::unordered_set<std::string> merge_bases_;  ///< folded names of zones whose merge base the
                                                 ///< journal has
  PendingRecords pending_;
  std::function<void(std::uint64_t)> published_hook_;
  std::function<void(const dns::Name&, bool)> zone_hook_;
  std::function<void(const JournalEntry&)> journalled_hook_;
  std::function<std::optional<CommitRequest>()> upkeep_hook_;
};

}  // namespace pando::manager

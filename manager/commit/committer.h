#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "manager/journal/journal.h"
#include "manager/journal/journal_thread.h"
#include "shm/store.h"
#include "zone/build/draft.h"

namespace pando::manager {

/// What a request sees while its group is put together.
struct Stage {
  shm::Transaction& transaction;
  zone::Draft& draft;
  std::vector<JournalEntry>& journal;  ///< append what must be durable before it is published
  bool alone = false;                  ///< nothing else is in the group
  /// Committer::source_noted() of the zone; set in other threads, which cannot ask.
  std::optional<bool> source_noted{};
  /// How far the step may have gone into the store's reserve when it is done: the committer looks.
  shm::Reserve reserve = shm::Reserve::kKept;

  /// Room that only some may take, for a step that is alone: in a group others would take it too.
  void use_reserve(shm::Reserve use) {
    if (!alone) return;
    reserve = use;
    transaction.use_reserve(use);
  }
  /// The same, if the step takes out as many records as it brings in.
  void use_reserve_for(std::size_t removed, std::size_t added) {
    if (added <= removed) use_reserve(shm::Reserve::kHalf);
  }
};

/// One step towards the next version. `stage` may be called more than once (when a group is put
/// together again after the store was full); `done` is called exactly once, on the commit thread,
/// with the version that contains the step or with the reason why there is none: kFull, the store
/// has no room for it; kIo, the journal cannot be written, for this step or another one of its
/// group; or what `stage` said.
struct CommitRequest {
  enum class Kind : std::uint8_t {
    kGroup,  ///< may share a version with others
    kAlone,  ///< stages things that cannot be staged twice: a version of its own
  };
  std::function<Status(Stage&)> stage;
  std::function<void(const Result<std::uint64_t>& version)> done;
  Kind kind = Kind::kGroup;
};

/// The one door to the store, and the one that keeps the store's reserve (shm/reserve.h) from what
/// is added. Requests queue; a group of them is staged into one draft, its
/// differences are journalled and synced, the version is published, and only then are the requests
/// answered. While a group syncs in the journal's thread, the next one queues.
///
/// Everything but the sync runs on the commit thread: the one thread of `io`. The sync of a request
/// that is alone does, too, while the disk is quick: two changes of thread cost more than that.
class Committer {
 public:
  struct Options {
    std::size_t max_group = 256;  ///< bounds the stretch that the commit thread is busy at once
    std::chrono::milliseconds note_again{10'000};  ///< see add_pending()
    /// The commit thread syncs itself when the last `quick_syncs` took no longer than this each.
    std::chrono::microseconds quick_sync{2'000};
    unsigned quick_syncs = 4;
  };
  struct Counters {
    std::uint64_t versions = 0;
    std::uint64_t requests = 0;
    std::uint64_t failed = 0;
    std::uint64_t synced_here = 0;  ///< groups whose sync the commit thread did itself
    std::uint64_t store_bytes = 0;  ///< of the fresh blocks of all versions
  };

  /// All references outlive the committer. `journal` is used in `journal_thread`, and on the commit
  /// thread while that is idle.
  Committer(asio::io_context& io, shm::Store& store, Journal& journal,
            JournalThread& journal_thread, Options options);
  ~Committer();

  void submit(CommitRequest request);

  /// A difference computed from the draft, so that it sees the effects of earlier group members.
  using Compute = std::function<Result<zone::Changeset>(const zone::StoreView&)>;
  using Applied = std::function<void(Result<zone::Applied>)>;
  void apply(Compute compute, const zone::DataLimits& limits, Applied done);
  /// The step that apply() takes, for those that stage it otherwise. When nothing changes it is not
  /// in the journal either.
  Result<zone::Applied> stage_difference(Stage& stage, const Compute& compute,
                                         const zone::DataLimits& limits) const;

  /// For steps that apply differences themselves: appends the record of `kind` (kDelta or
  /// kTransfer) that `applied` needs. A zone's first one says which file it stands beside: with
  /// that the next host restart can tell whether the file was edited.
  void note_difference(Stage& stage, const zone::Applied& applied, RecordKind kind) const;
  /// The journal says which file the zone stands beside.
  [[nodiscard]] bool source_noted(const dns::Name& zone) const;

  using Finished = std::function<void(const Status&)>;
  /// Puts a zone that a primary sent, built in `built_in` (a pool thread's transaction). When it
  /// took the place of other data, the journal is told that what was there is gone with it; a
  /// journal that cannot be written does not stop the zone.
  void put_zone(const dns::Name& apex, std::shared_ptr<zone::ZoneBuilder::Built> built,
                shm::Transaction&& built_in, const zone::ZoneFileInfo& source, Finished done);
  /// The same with conditions: `check` (may be empty) sees the zone as it is just before, `note`
  /// (may be empty) gives the records to journal with the zone as it is just after.
  struct ZonePut {
    dns::Name apex;
    std::shared_ptr<zone::ZoneBuilder::Built> built;
    shm::Transaction built_in;
    zone::ZoneFileInfo source;
    std::function<Status(const zone::ZoneView& before)> check;
    std::function<void(std::vector<JournalEntry>&, const zone::ZoneView& after)> note;
  };
  void put_zone(ZonePut put, Finished done);
  /// Many zones that had no data, built in one transaction: all of them in one version, or none.
  /// kExists: one of them has data by now, or is not configured any more.
  struct NewZones {
    struct Zone {
      dns::Name apex;
      std::shared_ptr<zone::ZoneBuilder::Built> built;
      zone::ZoneFileInfo source;
    };
    std::vector<Zone> zones;
    shm::Transaction built_in;
  };
  void put_new_zones(NewZones zones, Finished done);
  /// A primary has sent the zone whole, and it was brought in as a difference. What was there
  /// before is gone with it, as after put_zone(): the journal is told so.
  void zone_replaced(const dns::Name& apex);
  /// What a zone that was just put, and has no later records, has to say in the journal, which
  /// could not be written then: it goes before the zone's next record, and is tried again by
  /// itself. A zone that is put anew or has gone owes nothing.
  void add_pending(const dns::Name& apex, std::vector<JournalEntry> notes);
  /// To be called every now and then: tries again to make the end of a journal durable that could
  /// not be at the start (Journal::is_secured()). Each update tries again, too;
  /// those that would change nothing are refused until then.
  void secure_journal();
  /// Settings, removals and the like: what the zone files and the configuration say anyway. What
  /// adds nothing may `use` the store's reserve.
  void edit(std::function<Status(zone::Draft&)> step, Finished done,
            shm::Reserve use = shm::Reserve::kKept);

  /// Called after each publication, before the requests are answered.
  void on_published(std::function<void(std::uint64_t version)> hook);
  /// Called after each publication for each zone whose data changed. `whole`: it was put as a
  /// whole, not by a difference.
  void on_zone_changed(std::function<void(const dns::Name& zone, bool whole)> hook);
  /// Called for each record of a group after its publication, in order.
  void on_journalled(std::function<void(const JournalEntry&)> hook);
  /// Called when a group is being put together: may add one step of upkeep (compaction).
  void on_idle_room(std::function<std::optional<CommitRequest>()> hook);

  [[nodiscard]] bool busy() const noexcept;  ///< something is staged or queued
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// The version readers see now.
  [[nodiscard]] zone::StoreView current() const;
  /// Position up to which the published version contains everything.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  struct Group;
  void schedule();
  void run_next();
  std::vector<CommitRequest> take_group();
  void stage_group(Group& group);
  Status stage_one(Group& group, CommitRequest& request, bool alone);
  [[nodiscard]] bool syncs_here(const Group& group) const;
  Result<std::uint64_t> append(Group& group);
  void write_journal(std::shared_ptr<Group> group);
  void journalled(const std::shared_ptr<Group>& group, Result<std::uint64_t> position);
  void publish(Group& group, std::uint64_t position);
  void fail_group(Group& group, const Error& error);
  void answer(Group& group, std::uint64_t version);
  void retry_singly(Group& group);
  void note_sources(const Group& group);
  void tell_changes(const Group& group) const;
  void add_owed_notes(Group& group) const;
  void flush_pending();
  void stage_owed_notes(Stage& stage);
  void note_whole_transfer(const dns::Name& apex, dns::Serial serial);

  asio::io_context& io_;
  shm::Store& store_;
  Journal& journal_;
  JournalThread& journal_thread_;
  Options options_;
  std::deque<CommitRequest> queue_;
  std::size_t singly_ = 0;  ///< so many requests at the front are to be groups of one
  bool scheduled_ = false;
  bool in_flight_ = false;
  bool securing_ = false;
  unsigned quick_in_a_row_ = 0;  ///< syncs; of whoever uses the journal
  std::uint64_t position_;
  Counters counters_;
  std::unordered_set<std::string> sources_;  ///< zones (folded) whose file the journal names
  std::unordered_map<std::string, std::vector<JournalEntry>> pending_;  ///< notes by zone (folded)
  asio::steady_timer pending_timer_;
  std::function<void(std::uint64_t)> published_hook_;
  std::function<void(const dns::Name&, bool)> zone_hook_;
  std::function<void(const JournalEntry&)> journalled_hook_;
  std::function<std::optional<CommitRequest>()> upkeep_hook_;
};

}  // namespace pando::manager

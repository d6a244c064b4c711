#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "manager/change/change_list.h"
#include "manager/change/first_transfers.h"
#include "manager/change/update_holds.h"
#include "manager/change/zone_change.h"
#include "manager/change/zone_signers.h"
#include "manager/commit/committer.h"
#include "shm/slots.h"

namespace pando::manager {

/// The one road of zone data while the server runs. All sources hand their changes in here:
///
///     intake ─▶ compute ─▶ sign ─▶ judge ─▶ stage ─▶ journal ─▶ publish ─▶ follow up
///
/// - *intake*: submit(). Small changes without judges are computed when they are staged, and built
///   zones need no computing. Others wait for a place. A file's own data are judged before they are
///   merged with the zone, so that updates ask for no second verdict.
/// - *compute*: a builder thread computes the change from a pinned version, so that the commit
///   thread only exchanges the zone's data. A zone that was changed meanwhile, or moved by
///   compaction, is computed anew. After the third try the zone is changed on the commit thread.
///   That thread signs no large change, so a zone that is signed here has more tries, and then an
///   error. Only a few changes are computed at a time. Waiting changes pin no version and exclude
///   no zone from compaction.
/// - *sign*: a zone that this server signs (ZoneSigners) gets the signer's records. A changeset is
///   signed in the thread that computes it; a builder thread signs a built zone as a whole.
/// - *judge*: signatures and the zone's program (change_judgement.h), with the computed or built
///   zone, once. No place and no thread of the other changes is used meanwhile.
/// - *stage* (change_staging.h), *journal*, *publish*: in a version of the Committer.
/// - *follow up*: subscribers of Committer::on_published() learn what changed. Journal records that
///   come after the version, as those of a whole transfer, are written here.
///
/// The object lives on the commit thread.
class ChangeRoad {
 public:
  struct Options {
    /// Changes of up to this many records are made on the commit thread itself. A thousand records
    /// take about 3 ms, or 10 ms with the zone outside the processor's caches. The detour through a
    /// builder thread costs two thread changes and a version of its own.
    std::uint64_t max_on_commit_thread = 1000;
    int tries = 3;
    std::size_t max_computed = 2;  ///< limit of changes computed at a time
    /// Names of a changeset that are signed on the commit thread, some 10 ms. A builder thread
    /// signs more.
    std::size_t max_signed_names = 125;
  };
  struct Counters {
    std::uint64_t beside = 0;  ///< changes computed in a builder thread
    std::uint64_t again = 0;   ///< repetitions, see ZoneChange::again
  };

  /// All references outlive the object; `pool`, the builder threads, is joined before its
  /// destruction.
  ChangeRoad(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
             shm::SlotTable& slots, Committer& committer, Options options);
  ~ChangeRoad();
  ChangeRoad(const ChangeRoad&) = delete;
  ChangeRoad& operator=(const ChangeRoad&) = delete;

  /// `signers` outlive the object; without this call no zone is signed here.
  void sign_by(ZoneSigners& signers) noexcept { signers_ = &signers; }

  /// Has the updates of a zone wait when a change that is to be signed was computed in vain: signing
  /// takes long, so that a zone with steady updates would move each time.
  void hold_updates_by(UpdateHolds holds) { holds_ = std::move(holds); }

  /// Takes a change to the store. Requests submitted to the committer earlier are done earlier.
  void submit(ZoneChange change);
  using Together = std::function<void(const Result<std::vector<ChangeOutcome>>& outcomes)>;
  /// Makes the computed changes of several zones one version, or none of them. They are computed on
  /// the commit thread, without judges.
  void submit_together(std::vector<ZoneChange> changes, Together done);
  /// `refused`: zones with faults in their signatures, because of which none was put.
  using FileBatchDone =
      std::function<void(const Status& published, const std::vector<dns::Name>& refused)>;
  /// Puts many zones that had no data, built from files in one transaction, in one version or not
  /// at all. kExists: a zone has data by now, or is not configured any more. kInvalid: `refused`.
  void submit_file_batch(FileBatch zones, FileBatchDone done);

  /// The change of the zone whose present step began first; nullopt: none, or the process ends.
  [[nodiscard]] std::optional<ChangeUnderWay> under_way(dns::NameView zone) const;
  [[nodiscard]] std::uint64_t max_on_commit_thread() const noexcept {
    return options_.max_on_commit_thread;
  }
  /// Whether each change of the zone is signed, by keys that are too slow for the commit thread. A
  /// builder thread computes all of them.
  [[nodiscard]] bool signs_slowly(dns::NameView zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// True after stop(): changes submitted now are never done.
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  /// Cancels the computations under way. No change is made and no `done` called afterwards. Commit
  /// thread only.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }
  /// Whether a change of the zone is being computed: moving the zone's blocks would repeat the
  /// work.
  [[nodiscard]] bool at_work_on(dns::NameView zone) const noexcept;

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;
  struct JointChanges;
  struct FileBatchWork;
  void advance(const WorkPtr& work);
  void stage_together(const std::shared_ptr<FileBatchWork>& work);
  void finish_together(FileBatchWork& work, const Status& published);
  void start_waiting();
  void compute(const WorkPtr& work);
  void computed(const WorkPtr& work);
  void begin(const WorkPtr& work);
  void sign_built(const WorkPtr& work, Result<ZoneSignerPtr> signer);
  void judge_known(const WorkPtr& work);
  void judge(const WorkPtr& work);
  void run_judges(const Judges::Run& run, asio::thread_pool& pool, std::function<void()> work,
                  std::function<void()> then);
  void judged(const WorkPtr& work);
  void commit_computed(const WorkPtr& work);
  Status adopt(Work& work, Stage& stage);
  void commit_here(const WorkPtr& work);
  Status stage_here(Work& work, Stage& stage);
  [[nodiscard]] Result<ChangeSigner> signer_of(const dns::Name& zone) const;
  void put(const WorkPtr& work);
  void put_alone(const WorkPtr& work);
  void finish(const WorkPtr& work, const Result<std::uint64_t>& version);
  void record_after_version(Work& work);
  void journal_whole_transfer(const dns::Name& zone, dns::Serial serial);
  void leave_place(const WorkPtr& work);
  void again(const WorkPtr& work);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  Options options_;
  Counters counters_;
  ZoneSigners* signers_ = nullptr;
  UpdateHolds holds_;
  FirstTransfers first_transfers_;
  std::vector<WorkPtr> computing_;
  std::deque<WorkPtr> waiting_;
  ChangeList under_way_;
  std::atomic<bool> stopping_ = false;  // read by the builder threads
};

}  // namespace pando::manager

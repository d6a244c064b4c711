#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/support/load_progress.h"
#include "manager/zonefile/load_queue.h"
#include "manager/zonefile/load_task_threads.h"
#include "manager/zonefile/zone_replacement.h"
#include "shm/slots.h"

namespace pando::manager {

/// The steps of one zone from its file to the store:
///
///     check: read, compare, plan ────┬─▶ replace ─┬─▶ judge ─▶ stale? ─▶ stage ─▶ finished
///     (ZoneFileCheck, loader thread) └─▶ merge ───┘   (ChangeRoad)
///
/// A zone without data is put whole, with its updates from the journal (ZoneReplacement). A served
/// zone is compared with its file, and the edit is merged with the dynamic changes (zone_merge.h).
/// A zone that changes meanwhile, where that matters, is checked again, a few times at most.
///
/// Lives on the commit thread.
class ZoneLoadSteps {
 public:
  using Task = std::shared_ptr<LoadTask>;
  /// Called once for each task, after its last step.
  using Finished = std::function<void(const Task& task, LoadOutcome outcome)>;

  /// All references outlive the object. `queue` gave out the tasks.
  ZoneLoadSteps(asio::io_context& io, shm::Store& store, shm::SlotTable& slots,
                Committer& committer, ChangeRoad& road, LoadQueue& queue, LoadTaskThreads& threads,
                Finished finished);
  ZoneLoadSteps(const ZoneLoadSteps&) = delete;
  ZoneLoadSteps& operator=(const ZoneLoadSteps&) = delete;

  /// Limits of the history that merges may add.
  void set_limits(const zone::DataLimits& limits) { limits_ = limits; }
  /// Begins, or begins again. `finished` is not called before the return.
  void check(const Task& task);
  /// For the end of the process: nothing is put and nothing finishes any more, and the threads give
  /// up their work.
  void stop();
  /// Zones whose steps are under way, with how far their files are.
  [[nodiscard]] LoadsUnderWay& loads() noexcept { return loads_; }
  [[nodiscard]] const LoadsUnderWay& loads() const noexcept { return loads_; }

 private:
  void commit(const Task& task);
  bool may_put(LoadTask& task);
  void finish_or_check_again(const Task& task);
  void submit(const Task& task, ZoneChange change);
  void replace(const Task& task);
  void replaced(const Task& task, ZoneReplacement::Next next, const Status& committed);
  void serve(const Task& task);
  void merge(const Task& task);
  void merged(const Task& task, const zone::Applied& applied, const RecordChanges& overridden);

  asio::io_context& io_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Committer& committer_;
  ChangeRoad& road_;
  LoadQueue& queue_;
  LoadTaskThreads& threads_;
  Finished finished_;
  zone::DataLimits limits_;
  LoadsUnderWay loads_;
  bool stopped_ = false;
};

}  // namespace pando::manager

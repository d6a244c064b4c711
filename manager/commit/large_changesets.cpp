#include "manager/commit/large_changesets.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "zone/draft/detached_draft.h"

namespace pando::manager {

/// One change on its way, used by one thread at a time.
struct LargeChangesets::Work {
  ZoneChange change;
  int tries = 0;
  bool has_merge_base = false;
  bool moved = false;  // the zone has changed since the draft began
  // Declared after the pin, so that the draft is destroyed first: the draft reads pinned data.
  shm::SlotTable::OwnPin pin;
  std::unique_ptr<zone::DetachedDraft> draft;
  std::vector<JournalEntry> journal;
  Status staged;
  shm::Reserve reserve = shm::Reserve::kKept;  // see Stage::reserve

  /// Frees blocks and perhaps a hundred thousand records, which takes a while: in a pool thread.
  void let_go(asio::thread_pool& pool) {
    asio::post(pool, [stage = std::move(change.stage), draft = std::move(draft),
                      pin = std::move(pin), journal = std::move(journal)] {});
  }

  /// Frees the data of a failed try, since the next try needs as much again. Pool thread.
  void clear() {
    draft.reset();
    pin = {};
    journal = {};
  }

  /// Pool thread.
  void work_out() {
    Stage stage{draft->transaction(), draft->draft(), journal, true, has_merge_base};
    staged = change.stage(stage);
    reserve = stage.reserve;
    crash_point("change-worked-out");
  }
};

LargeChangesets::LargeChangesets(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
                                 shm::SlotTable& slots, Committer& committer, Options options)
    : io_(io),
      pool_(pool),
      store_(store),
      slots_(slots),
      committer_(committer),
      options_(options) {}

void LargeChangesets::submit(ZoneChange change) {
  auto work = std::make_shared<Work>();
  work->change = std::move(change);
  if (work->change.records <= options_.at_once) return change_here(work);
  ++counters_.beside;
  waiting_.push_back(std::move(work));
  start_waiting();
}

void LargeChangesets::start_waiting() {
  while (!stopping_ && !waiting_.empty() && working_.size() < options_.at_work) {
    working_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    work_out(working_.back());
  }
}

bool LargeChangesets::at_work_on(dns::NameView zone) const noexcept {
  return std::any_of(working_.begin(), working_.end(),
                     [&](const auto& work) { return work->change.zone.view() == zone; });
}

void LargeChangesets::work_out(const std::shared_ptr<Work>& work) {
  const shm::VersionInfo version = store_.current();
  ++work->tries;
  work->has_merge_base = committer_.has_merge_base(work->change.zone);
  work->pin = slots_.pin_own(version.number);
  work->draft = std::make_unique<zone::DetachedDraft>(store_, version, work->change.zone);
  work->draft->draft().give_up_when(&stopping_);
  asio::post(pool_, [this, work] {
    work->work_out();
    asio::post(io_, [this, work] { end(work); });
  });
}

/// A failed computation goes to the committer's queue, too: an earlier step there may make the
/// change possible.
void LargeChangesets::end(const std::shared_ptr<Work>& work) {
  if (stopping_) return;
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, work](Stage& stage) { return adopt(*work, stage); };
  request.done = [this, work](const Result<std::uint64_t>& version) { finish(work, version); };
  committer_.submit(std::move(request));
}

/// Exchanges the zone's data, if the draft began with the present ones. A change that did not fit
/// the old zone may fit the present one, so `moved` is checked before the error.
Status LargeChangesets::adopt(Work& work, Stage& stage) {
  if (work.change.check)
    if (auto ok = work.change.check(); !ok) return ok;
  work.moved = !work.draft->fits(stage.draft.view()) ||
               work.has_merge_base != committer_.has_merge_base(work.change.zone);
  if (work.moved) return fail(Errc::kExists, "zone moved");
  if (!work.staged) return work.staged;
  // The exchange takes a few more blocks. The committer checks the reserve afterwards, since other
  // transactions have taken space meanwhile.
  stage.transaction.use_reserve(shm::Reserve::kHalf);
  stage.reserve = work.reserve;
  if (auto adopted = work.draft->adopt(stage.transaction, stage.draft); !adopted) return adopted;
  stage.journal = std::move(work.journal);
  crash_point("change-adopted");
  return {};
}

void LargeChangesets::change_here(const std::shared_ptr<Work>& work) {
  CommitRequest request;
  // A step that fails half-way must leave no trace.
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [work](Stage& stage) -> Status {
    if (work->change.check)
      if (auto ok = work->change.check(); !ok) return ok;
    return work->change.stage(stage);
  };
  request.done = [this, work](const Result<std::uint64_t>& version) { finish(work, version); };
  committer_.submit(std::move(request));
}

void LargeChangesets::finish(const std::shared_ptr<Work>& work,
                             const Result<std::uint64_t>& version) {
  if (!version && std::exchange(work->moved, false)) {
    ++counters_.again;
    if (work->change.again) work->change.again();
    return again(work);
  }
  const auto done = std::move(work->change.done);
  if (work->tries == 0) return done(version);
  working_.erase(std::find(working_.begin(), working_.end(), work));
  start_waiting();
  done(version);
  work->let_go(pool_);
}

/// Tries again after the data of the last try have been freed.
void LargeChangesets::again(const std::shared_ptr<Work>& work) {
  asio::post(pool_, [this, work] {
    work->clear();
    asio::post(io_, [this, work] {
      if (stopping_) return;
      work->tries < options_.tries ? work_out(work) : change_here(work);
    });
  });
}

}  // namespace pando::manager

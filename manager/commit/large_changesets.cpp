#include "manager/commit/large_changesets.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "zone/build/detached_draft.h"

namespace pando::manager {

/// One change on its way. Touched by one thread at a time.
struct LargeChangesets::Work {
  ZoneChange change;
  int tries = 0;
  bool source_noted = false;
  bool moved = false;  // the zone, since the draft began
  // Behind the pin, so that it is dropped first: it reads what the pin holds.
  shm::SlotTable::OwnPin pin;
  std::unique_ptr<zone::DetachedDraft> draft;
  std::vector<JournalEntry> journal;
  Status staged;
  shm::Reserve reserve = shm::Reserve::kKept;  // as Stage has it

  /// What takes a while to be freed: blocks that go back to the store, a hundred thousand records.
  void let_go(asio::thread_pool& pool) {
    asio::post(pool, [stage = std::move(change.stage), draft = std::move(draft),
                      pin = std::move(pin), journal = std::move(journal)] {});
  }

  /// In a pool thread, of a try that was in vain: the next one needs as much again.
  void clear() {
    draft.reset();
    pin = {};
    journal = {};
  }

  /// In a pool thread.
  void work_out() {
    Stage stage{draft->transaction(), draft->draft(), journal, true, source_noted};
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
  work->source_noted = committer_.source_noted(work->change.zone);
  work->pin = slots_.pin_own(version.number);
  work->draft = std::make_unique<zone::DetachedDraft>(store_, version, work->change.zone);
  work->draft->draft().give_up_when(&stopping_);
  asio::post(pool_, [this, work] {
    work->work_out();
    asio::post(io_, [this, work] { end(work); });
  });
}

/// Also what cannot be done is a matter for the committer's queue: a step before it there may make
/// it possible.
void LargeChangesets::end(const std::shared_ptr<Work>& work) {
  if (stopping_) return;
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, work](Stage& stage) { return adopt(*work, stage); };
  request.done = [this, work](const Result<std::uint64_t>& version) { finish(work, version); };
  committer_.submit(std::move(request));
}

/// Exchanges the zone's data, if they are still those that the draft began with. What did not fit
/// a zone that has changed since may fit what it is now.
Status LargeChangesets::adopt(Work& work, Stage& stage) {
  if (work.change.check)
    if (auto ok = work.change.check(); !ok) return ok;
  work.moved = !work.draft->fits(stage.draft.snapshot()) ||
               work.source_noted != committer_.source_noted(work.change.zone);
  if (work.moved) return fail(Errc::kExists, "zone moved");
  if (!work.staged) return work.staged;
  // A few blocks more. Whether all leave enough is seen behind this, now that others have taken
  // room, too.
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

/// Once more, when what the last try made has been freed.
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

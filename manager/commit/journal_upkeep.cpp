#include "manager/commit/journal_upkeep.h"

#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/journal/journal_examination.h"
#include "manager/journal/journal_snapshot.h"

namespace pando::manager {

namespace {
constexpr std::chrono::seconds kPauseAfterFailure{60};
constexpr std::chrono::seconds kPauseBeforeHealing{10};
}  // namespace

/// One snapshot being made.
struct JournalUpkeep::Round {
  zone::StoreView version;
  shm::SlotTable::OwnPin pin;
  std::uint64_t position = 0;
  JournalFiles sealed;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

JournalUpkeep::JournalUpkeep(asio::io_context& io, asio::thread_pool& pool,
                             JournalThread& journal_thread, Files& files, Journal& journal,
                             Committer& committer, shm::SlotTable& slots, std::uint64_t limit)
    : io_(io),
      pool_(pool),
      journal_thread_(journal_thread),
      files_(files),
      journal_(journal),
      committer_(committer),
      slots_(slots),
      limit_(limit) {}

/// Begins past the limit, if the journal has grown by half since the last snapshot. Otherwise zones
/// larger than the limit would be written again and again.
void JournalUpkeep::check(bool blocked) {
  if (running_ || blocked || std::chrono::steady_clock::now() < pause_until_) return;
  const std::uint64_t bytes = journal_.total_bytes();
  const bool closes_gap = journal_.has_gap_to_close();
  if (closes_gap) log::warning("journal_gap", "reason", journal_.problem());
  const bool heals = closes_gap || !journal_.is_whole();
  if (!heals && std::exchange(is_examination_due_, false)) {
    running_ = true;
    return begin_examination();
  }
  if (!heals && (bytes <= limit_ || bytes < last_size_ + last_size_ / 2)) return;
  running_ = true;
  begin();
}

/// The files stay as they are meanwhile, since no round runs.
void JournalUpkeep::begin_examination() {
  asio::post(pool_, [this] {
    auto faults = examine_journal(files_, journal_.files());
    asio::post(io_, [this, faults = std::move(faults)] {
      running_ = false;
      unreadable_ = faults.unreadable;
      for (const std::string* text : {&faults.damage, &faults.unreadable})
        if (!text->empty()) log::error("journal", "text", *text);
      if (!faults.damage.empty()) journal_.set_lack(faults.damage);
    });
  });
}

std::string JournalUpkeep::problem() const {
  const std::string lack = journal_.files().lack;
  return lack.empty() ? unreadable_
                      : fmt::format("the journal lacks records, updates wait for its snapshot: {}",
                                    lack);
}

/// Between two groups the published version holds everything that the journal has. The seal
/// precedes the next group's records in the journal thread's queue.
void JournalUpkeep::begin() {
  auto round = std::make_shared<Round>();
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, round](Stage&) -> Status {
    round->version = committer_.current();
    round->pin = slots_.pin_own(round->version.version());
    round->position = committer_.position();
    journal_thread_.post([this, round] {
      journal_.seal();
      round->sealed = journal_.sealed_files();
      asio::post(pool_, [this, round] { write(round); });
    });
    return {};
  };
  request.done = [](const Result<std::uint64_t>&) {};
  committer_.submit(std::move(request));
}

void JournalUpkeep::write(const std::shared_ptr<Round>& round) {
  using Unreadable = JournalHistory::Unreadable;
  const auto unreadable = journal_.has_gap_to_close() ? Unreadable::kDamage : Unreadable::kProblem;
  auto path = write_snapshot(files_, journal_.directory(), round->sealed, round->version,
                             round->position, unreadable);
  if (!path) {
    asio::post(io_, [this, round, status = Status(pass(path))] { end(round, status); });
    return;
  }
  crash_point("journal-snapshot-synced");
  asio::post(io_, [this, round, path = *path] {
    if (!before_dropping_) return drop(round, path);
    before_dropping_([this, round, path] { drop(round, path); });
  });
}

void JournalUpkeep::drop(const std::shared_ptr<Round>& round, const std::string& path) {
  journal_thread_.post([this, round, path] {
    auto status = journal_.replace_by_snapshot(path, round->position, round->sealed);
    asio::post(io_, [this, round, status] { end(round, status); });
  });
}

void JournalUpkeep::end(const std::shared_ptr<Round>& round, const Status& status) {
  running_ = false;
  round->pin = {};
  last_size_ = journal_.total_bytes();
  const auto spent = std::chrono::steady_clock::now() - round->start;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(spent).count();
  if (status) {
    ++snapshots_;
    unreadable_.clear();
    log::info("journal_snapshot", "position", round->position, "bytes", last_size_, "ms", ms);
    return;
  }
  const bool is_whole = journal_.is_whole();
  pause_until_ = std::chrono::steady_clock::now() +
                 (is_whole ? kPauseAfterFailure : kPauseBeforeHealing);
  log::warning("journal_snapshot_failed", "reason", status.error().text, "bytes", last_size_);
}

}  // namespace pando::manager

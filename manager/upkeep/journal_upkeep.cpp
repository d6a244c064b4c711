#include "manager/upkeep/journal_upkeep.h"

#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "base/pause_point.h"
#include "base/steady_time.h"
#include "ipc/log.h"
#include "manager/journal/journal_examination.h"
#include "manager/journal/journal_snapshot.h"

namespace pando::manager {

namespace {
constexpr std::chrono::milliseconds kPauseAfterFailure{60'000};
}  // namespace

/// One snapshot being made.
struct JournalUpkeep::Round {
  bool closes_gap = false;  // an unreadable part counts as damage: `version` has all zones
  zone::StoreView version;
  shm::SlotTable::OwnPin pin;
  std::uint64_t position = 0;
  JournalFiles sealed;
  std::string unread;  // why a part of the journal could not be read for the snapshot
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

JournalUpkeep::JournalUpkeep(asio::io_context& io, asio::thread_pool& pool,
                             JournalThread& journal_thread, Files& files, Journal& journal,
                             Committer& committer, shm::SlotTable& slots, std::uint64_t limit,
                             std::chrono::milliseconds pause_before_healing)
    : io_(io),
      pool_(pool),
      journal_thread_(journal_thread),
      files_(files),
      journal_(journal),
      committer_(committer),
      slots_(slots),
      limit_(limit),
      pause_before_healing_(shortened(pause_before_healing)) {}

/// Begins past the limit, if the journal has grown by half since the last snapshot. Otherwise zones
/// larger than the limit would be written again and again. The pause after a failed snapshot does
/// not delay the examination that follows from it.
void JournalUpkeep::check(bool blocked) {
  if (running_ || blocked) return;
  const bool is_whole = journal_.health().state() == JournalHealth::State::kWhole;
  if (is_whole && std::exchange(is_examination_due_, false)) {
    running_ = true;
    return begin_examination();
  }
  if (std::chrono::steady_clock::now() < pause_until_) return;
  const std::uint64_t bytes = journal_.total_bytes();
  const bool closes_gap = can_close_gap(committer_.current());
  if (closes_gap) log::warning("journal_gap", "reason", problem());
  const bool heals = closes_gap || journal_.health().lacks_records();
  if (!heals && std::exchange(is_examination_due_, false)) {
    running_ = true;
    return begin_examination();
  }
  if (!heals && (bytes <= limit_ || bytes < last_size_ + last_size_ / 2)) return;
  running_ = true;
  begin();
}

/// A zone without data may have updates in the unread part alone. The store's zones are looked
/// through once in a while, as there may be many.
bool JournalUpkeep::can_close_gap(const zone::StoreView& version) {
  waiting_.clear();
  const JournalHealth health = journal_.health();
  if (!health.has_lasting_gap()) return false;
  const auto zone = zone_without_data(version);
  if (!zone) return health.has_gap_to_close();
  waiting_ = to_text(*zone);
  pause_until_ = std::chrono::steady_clock::now() + pause_before_healing_;
  return false;
}

/// The files stay as they are meanwhile, since no round runs.
void JournalUpkeep::begin_examination() {
  asio::post(pool_, [this] {
    auto faults = examine_journal(files_, journal_.files());
    asio::post(io_, [this, faults = std::move(faults)] {
      running_ = false;
      for (const std::string* text : {&faults.damage, &faults.unreadable})
        if (!text->empty()) log::error("journal", "text", *text);
      tell_faults(faults, journal_);
    });
  });
}

std::string JournalUpkeep::problem() const {
  const JournalHealth health = journal_.health();
  std::string text = health.refusal();
  if (text.empty() && health.lacks_records())
    text = fmt::format("the journal lacks records, updates wait for its snapshot: {}",
                       health.lack());
  if (!text.empty() && !waiting_.empty())
    text += fmt::format("; the store's zones cannot take its place, as zone {} has no data",
                        waiting_);
  return text;
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
    round->closes_gap = can_close_gap(round->version);
    journal_thread_.post([this, round] {
      journal_.seal();
      round->sealed = journal_.sealed_files();
      asio::post(pool_, [this, round] { write(round); });
    });
    return {};
  };
  committer_.submit(std::move(request));
}

void JournalUpkeep::write(const std::shared_ptr<Round>& round) {
  using Unreadable = JournalHistory::Unreadable;
  const auto unreadable = round->closes_gap ? Unreadable::kDamage : Unreadable::kProblem;
  auto path = write_snapshot(files_, journal_.directory(), round->sealed, round->version,
                             round->position, unreadable, &round->unread);
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
    const auto old = round->closes_gap ? Journal::Replaced::kKept : Journal::Replaced::kRemoved;
    auto status = journal_.replace_by_snapshot(path, round->position, round->sealed, old);
    asio::post(io_, [this, round, status] { end(round, status); });
  });
}

void JournalUpkeep::end(const std::shared_ptr<Round>& round, const Status& status) {
  running_ = false;
  round->pin = {};
  last_size_ = journal_.total_bytes();
  if (status) {
    ++snapshots_;
    log::info("journal_snapshot", "position", round->position, "bytes", last_size_, "ms",
              milliseconds_since(round->start));
    return;
  }
  const JournalHealth health = journal_.health();
  pause_until_ = std::chrono::steady_clock::now() +
                 (health.lacks_records() ? pause_before_healing_ : kPauseAfterFailure);
  log::warning("journal_snapshot_failed", "reason", status.error().text, "bytes", last_size_);
  if (round->unread.empty()) return;
  // Damage that was known before must not hide a part that cannot be read. Of a whole journal only
  // zones with records there are in doubt; an examination tells whether the part is still unread.
  if (health.state() == JournalHealth::State::kBehind)
    journal_.report(JournalHealth::State::kPartUnread, round->unread);
  else if (health.state() == JournalHealth::State::kWhole)
    examine();
}

}  // namespace pando::manager

#include "manager/checkpoint/checkpointer.h"

#include <algorithm>
#include <asio/post.hpp>

#include "base/crash_point.h"
#include "base/steady_time.h"
#include "ipc/log.h"
#include "manager/checkpoint/image_lending.h"
#include "manager/journal/journal.h"

namespace pando::manager {

namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t microseconds_since(Clock::time_point start) {
  const auto spent = std::chrono::floor<std::chrono::microseconds>(Clock::now() - start);
  return static_cast<std::uint64_t>(spent.count());
}

}  // namespace

/// One checkpoint.
struct Checkpointer::Run {
  shm::ImageCapture capture;
  shm::Window window;
  shm::SlotTable::OwnPin pin;
  std::vector<Done> done;
  Clock::time_point start = Clock::now();
  std::uint64_t configuration = 0;
};

Checkpointer::Checkpointer(asio::io_context& io, shm::Store& store, shm::SlotTable& slots,
                           Journal& journal, std::unique_ptr<Image> image, Options options)
    : io_(io),
      store_(store),
      slots_(slots),
      journal_(journal),
      image_(std::move(image)),
      bytes_per_second_(options.bytes_per_second),
      schedule_(options.limits, Clock::now()) {
  note_index();
}

Checkpointer::~Checkpointer() {
  abort();
  thread_.pool().join();
}

shm::SlotTable::OwnPin Checkpointer::pin(const Image& image, shm::SlotTable& slots) {
  return image.index() == nullptr ? shm::SlotTable::OwnPin()
                                  : slots.pin_own(image.index()->state.version);
}

void Checkpointer::note_index() {
  const ImageIndex* index = image_->index();
  version_ = index == nullptr ? 0 : index->state.version;
  position_ = index == nullptr ? 0 : index->state.journal_position;
  written_at_ = index == nullptr ? 0 : index->written;
  schedule_.on_image(index == nullptr ? 0 : index->configuration, journal_.total_bytes());
}

std::uint64_t Checkpointer::held_chunks() const {
  return version_ == 0 ? 0 : store_.chunks_held_by(version_);
}

/// Whether the image has the store's version, assuming that its index's head is true.
bool Checkpointer::has_current() const {
  return version_ != 0 && version_ == store_.current().number;
}

CheckpointSchedule::Facts Checkpointer::facts() const {
  return {Clock::now(), journal_.total_bytes(), held_chunks(), store_.stats().chunks_in_use,
          store_.low_space()};
}

bool Checkpointer::is_due(bool settled) const {
  if (has_current() && !schedule_.is_reconfigured()) return settled && image_->unproven();
  return schedule_.is_due(facts(), settled);
}

/// Not to be called while a checkpoint runs, when the background thread uses `image_`.
bool Checkpointer::must_wait() const {
  return schedule_.is_held() || (!hurry_ && schedule_.waits_for_workers(Clock::now()) &&
                                 image_->in_place() && is_lent(image_->chunks()));
}

void Checkpointer::check(bool settled) {
  if (running_ || hurry_ || must_wait()) return;
  if (!waiting_.empty()) return start();
  // An image must not be ahead of the durable journal.
  const Status durable = check_end(journal_);
  if (!durable || schedule_.is_paused(Clock::now())) {
    if (CheckpointSchedule::holds_too_much(facts()))
      let_go(durable ? problem_ : durable.error().text);
    return;
  }
  if (is_due(settled)) start();
}

/// A disk that stays full must not fill the store, too. The image is left as it is, and the next
/// one goes to a file of its own.
void Checkpointer::let_go(std::string_view reason) {
  log::warning("image_left", "image_version", version_, "reason", reason);
  image_->leave();
  durable_ = {};
}

void Checkpointer::write_now(Done done) {
  if (aborted_) return done(fail(Errc::kDenied, "the process is ending"));
  if (auto durable = check_end(journal_); !durable) return done(durable);
  if (!running_ && has_current() && !image_->unproven()) return done({});
  waiting_.push_back(std::move(done));
  if (!running_ && !must_wait()) start();
}

void Checkpointer::start() {
  if (has_current() && image_->unproven())
    prove();
  else
    begin();
}

/// Nothing needs to be written if the image after the head is sound. To find out means reading up
/// to 12 bytes for each chunk.
void Checkpointer::prove() {
  running_ = true;
  asio::post(thread_.pool(), [this] {
    const Status proven = image_->prove();
    asio::post(io_, [this, proven] { end_proof(proven); });
  });
}

void Checkpointer::end_proof(const Status& proven) {
  running_ = false;
  if (!proven && image_->unproven()) {
    problem_ = proven.error().text;
    schedule_.on_unreadable(Clock::now());
    return tell_waiting(proven);
  }
  if (!proven) {
    // An unusable image needs no pinned version.
    durable_ = {};
    note_index();
  }
  if (aborted_) return tell_waiting(fail(Errc::kDenied, "the process is ending"));
  if (has_current()) return tell_waiting({});
  if (!proven || !waiting_.empty()) begin();
}

void Checkpointer::begin() {
  running_ = true;
  if (std::exchange(untrusted_, false)) image_->mark_untrusted();
  // A worker may be reading chunks of the file that this checkpoint would overwrite.
  if (image_->in_place() && is_lent(image_->chunks())) let_go("it is mapped by a worker");
  auto run = std::make_shared<Run>();
  run->done = std::exchange(waiting_, {});
  run->pin = slots_.pin_own(store_.current().number);
  run->capture = store_.capture();
  run->window = store_.window();
  run->configuration = schedule_.configuration();
  counters_.longest_capture_us =
      std::max(counters_.longest_capture_us, microseconds_since(run->start));
  asio::post(thread_.pool(), [this, run] { write(run); });
}

void Checkpointer::write(const std::shared_ptr<Run>& run) {
  WriteRateLimiter pace(bytes_per_second_);
  auto written = image_->write(
      run->capture, run->window,
      [&](std::uint64_t bytes) {
        pace.keep(bytes, [this] { return aborted_ || hurry_; });
        return !aborted_;
      },
      run->configuration);
  crash_point("image-checkpointed");
  asio::post(io_, [this, run, written = std::move(written)] { end(run, written); });
}

void Checkpointer::end(const std::shared_ptr<Run>& run, const Result<Image::Written>& written) {
  running_ = false;
  const std::uint64_t ms = milliseconds_since(run->start);
  if (written) {
    schedule_.on_written(Clock::now());
    ++counters_.checkpoints;
    counters_.bytes += written->bytes;
    counters_.last_bytes = written->bytes;
    counters_.last_ms = ms;
    durable_ = std::move(run->pin);
    problem_.clear();
    has_quarantined_ = written->quarantined;
    note_index();
    log::info("checkpoint", "version", version_, "journal_position", position_, "chunks",
              written->chunks, "bytes", written->bytes, "anew", written->anew, "ms", ms);
  } else {
    ++counters_.failed;
    problem_ = written.error().text;
    if (!image_->in_place()) durable_ = {};
    schedule_.on_failed(Clock::now());
    log::error("checkpoint_failed", "reason", problem_, "image_version", version_);
  }
  for (const Done& done : std::exchange(run->done, {})) done(status_of(written));
  if (waiting_.empty()) return;
  if (!aborted_) return begin();
  tell_waiting(fail(Errc::kDenied, "the process is ending"));
}

void Checkpointer::tell_waiting(const Status& status) {
  for (const Done& done : std::exchange(waiting_, {})) done(status);
}

}  // namespace pando::manager

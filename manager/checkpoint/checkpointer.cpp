#include "manager/checkpoint/checkpointer.h"

#include <algorithm>
#include <asio/post.hpp>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/checkpoint/image_lending.h"
#include "manager/journal/journal_end.h"

namespace pando::manager {

namespace {

using Clock = std::chrono::steady_clock;

/// A checkpoint is due when the image holds back this many chunks, or this part of the store if
/// that is more.
constexpr std::uint64_t kLeastHeld = (std::uint64_t{32} << 20) / shm::kChunkBytes;
constexpr std::uint64_t kHeldPart = 8;
/// Multiple of that limit that is tolerated while checkpoints fail.
constexpr std::uint64_t kHeldFactor = 2;
/// Time in which live workers let go of an image.
constexpr std::chrono::seconds kWorkersLook{5};

template <class Unit>
std::uint64_t since(Clock::time_point start) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<Unit>(Clock::now() - start).count());
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
      options_(options) {
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

void Checkpointer::set_limits(std::chrono::milliseconds interval,
                              std::uint64_t journal_bytes) noexcept {
  options_.interval = interval;
  options_.journal_bytes = journal_bytes;
}

void Checkpointer::note_index() {
  journal_mark_ = journal_.total_bytes();
  const ImageIndex* index = image_->index();
  version_ = index == nullptr ? 0 : index->state.version;
  position_ = index == nullptr ? 0 : index->state.journal_position;
  written_at_ = index == nullptr ? 0 : index->written;
  saved_configuration_ = index == nullptr ? 0 : index->configuration;
}

std::uint64_t Checkpointer::held_chunks() const {
  return version_ == 0 ? 0 : store_.chunks_held_by(version_);
}

/// Bytes since the last checkpoint; a journal that was shortened since counts from its new start.
std::uint64_t Checkpointer::journalled() const {
  const std::uint64_t bytes = journal_.total_bytes();
  return bytes < journal_mark_ ? bytes : bytes - journal_mark_;
}

/// Whether the image has the store's version, assuming that its index's head is true.
bool Checkpointer::has_current() const {
  return version_ != 0 && version_ == store_.current().number;
}

bool Checkpointer::is_due(bool settled) const {
  // While the store is changed to another configuration, the old one is not worth a checkpoint.
  const bool reconfigured = configuration_ != 0 && configuration_ != saved_configuration_;
  if (has_current() && !reconfigured) return settled && image_->unproven();
  // After an image of an earlier process, blocks freed since then are unknown: all count as held.
  if (settled && (counters_.checkpoints == 0 || reconfigured)) return true;
  if (store_.low_space() && held_chunks() > 0) return true;
  if (Clock::now() - last_ >= options_.interval) return true;
  if (journalled() >= options_.journal_bytes) return true;
  return held_chunks() >= held_limit();
}

std::uint64_t Checkpointer::held_limit() const {
  return std::max(kLeastHeld, store_.stats().chunks_in_use / kHeldPart);
}

/// Not to be called while a checkpoint runs, when the background thread uses `image_`.
bool Checkpointer::must_wait() const {
  return held_ || (!hurry_ && Clock::now() < patient_until_ && image_->in_place() &&
                   is_lent(image_->chunks()));
}

void Checkpointer::check(bool settled) {
  if (running_ || hurry_ || must_wait()) return;
  if (!waiting_.empty()) return start();
  // An image must not be ahead of the durable journal.
  const Status durable = check_end(journal_);
  if (!durable || Clock::now() < pause_until_) {
    if (holds_too_much()) let_go(durable ? problem_ : durable.error().text);
    return;
  }
  if (is_due(settled)) start();
}

/// Whether the image's version must be let go, as long as no checkpoint can be made.
bool Checkpointer::holds_too_much() const {
  const std::uint64_t held = held_chunks();
  return held > kHeldFactor * held_limit() || (held > 0 && store_.low_space());
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

void Checkpointer::go_on() {
  held_ = false;
  // Workers turn from the image to the store at their next query, or their next look around.
  patient_until_ = Clock::now() + kWorkersLook;
}

void Checkpointer::start() {
  if (has_current() && image_->unproven())
    prove();
  else
    begin();
}

/// Nothing needs to be written if the image behind the head is sound. To find out means reading up
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
    pause_until_ = Clock::now() + options_.again;
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
  if (std::exchange(doubtful_, false)) image_->doubt();
  // A worker may be reading chunks of the file that this checkpoint would overwrite.
  if (image_->in_place() && is_lent(image_->chunks())) let_go("it is mapped by a worker");
  auto run = std::make_shared<Run>();
  run->done = std::exchange(waiting_, {});
  run->pin = slots_.pin_own(store_.current().number);
  run->capture = store_.capture();
  run->window = store_.window();
  run->configuration = configuration_;
  counters_.longest_capture_us =
      std::max(counters_.longest_capture_us, since<std::chrono::microseconds>(run->start));
  asio::post(thread_.pool(), [this, run] { write(run); });
}

void Checkpointer::write(const std::shared_ptr<Run>& run) {
  WriteRateLimiter pace(options_.bytes_per_second);
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
  last_ = Clock::now();
  const std::uint64_t ms = since<std::chrono::milliseconds>(run->start);
  if (written) {
    ++counters_.checkpoints;
    counters_.bytes += written->bytes;
    counters_.last_bytes = written->bytes;
    counters_.last_ms = ms;
    durable_ = std::move(run->pin);
    problem_.clear();
    refused_ = written->refused;
    note_index();
    log::info("checkpoint", "version", version_, "journal_position", position_, "chunks",
              written->chunks, "bytes", written->bytes, "anew", written->anew, "ms", ms);
  } else {
    ++counters_.failed;
    problem_ = written.error().text;
    if (!image_->in_place()) durable_ = {};
    pause_until_ = last_ + options_.again;
    log::error("checkpoint_failed", "reason", problem_, "image_version", version_);
  }
  for (const Done& done : std::exchange(run->done, {}))
    done(written ? Status() : Status(tl::unexpected<Error>(written.error())));
  if (waiting_.empty()) return;
  if (!aborted_) return begin();
  tell_waiting(fail(Errc::kDenied, "the process is ending"));
}

void Checkpointer::tell_waiting(const Status& status) {
  for (const Done& done : std::exchange(waiting_, {})) done(status);
}

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "manager/checkpoint/checkpoint_schedule.h"
#include "manager/checkpoint/image.h"
#include "manager/io/write_rate_limiter.h"
#include "manager/journal/journal.h"
#include "manager/support/background_threads.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Keeps the image close to the store, by checkpoints when CheckpointSchedule says so. The commit
/// thread captures and pins a version. A background thread writes the changes, paced, while updates
/// go on. The image's version stays pinned, see Image.
///
/// All methods on the commit thread.
class Checkpointer {
 public:
  struct Options {
    CheckpointSchedule::Limits limits{};
    std::uint64_t bytes_per_second = WriteRateLimiter::kBytesPerSecond;
  };
  struct Counters {
    std::uint64_t checkpoints = 0;
    std::uint64_t failed = 0;
    std::uint64_t bytes = 0;  ///< written by all checkpoints
    std::uint64_t last_bytes = 0;
    std::uint64_t last_ms = 0;
    std::uint64_t longest_capture_us = 0;  ///< the commit thread's part
  };
  using Done = std::function<void(const Status&)>;

  /// `image` is opened already, or begins anew. All references outlive the object.
  Checkpointer(asio::io_context& io, shm::Store& store, shm::SlotTable& slots, Journal& journal,
               std::unique_ptr<Image> image, Options options);
  ~Checkpointer();

  /// Pins the image's version. To be called before anything can be reclaimed.
  static shm::SlotTable::OwnPin pin(const Image& image, shm::SlotTable& slots);
  void set_pin(shm::SlotTable::OwnPin pin) { durable_ = std::move(pin); }

  void set_limits(std::chrono::milliseconds interval, std::uint64_t journal_bytes) noexcept {
    schedule_.set_limits(interval, journal_bytes);
  }
  /// Starts a checkpoint if one is due. `settled`: no zones are being loaded. An image of which
  /// look() read the head alone is then read to its end, and replaced if it is unusable.
  void check(bool settled);
  /// Requests a checkpoint of the present version, after a running one. No checkpoint is made when
  /// the image has that version.
  void write_now(Done done);
  /// The store now has all zones and rules of the configuration with this fingerprint. 0: the store
  /// is being changed to another configuration. A checkpoint with the new fingerprint follows once
  /// zones are settled.
  void set_configuration(std::uint64_t fingerprint) noexcept {
    schedule_.set_configuration(fingerprint);
  }
  /// The next checkpoint compares all chunks, since a copy captured the store
  /// (manager/checkpoint/store_copy.h).
  void mark_untrusted() noexcept { untrusted_ = true; }
  /// Makes no checkpoint, and lets requests wait, until resume(): the store uses the image's own
  /// chunks.
  void hold() noexcept { schedule_.hold(); }
  void resume() { schedule_.resume(std::chrono::steady_clock::now()); }
  /// Writes without pauses from now on, since the process is ending.
  void hurry() noexcept { hurry_ = true; }
  /// Cancels the running checkpoint; the image stays as it was.
  void abort() noexcept { aborted_ = true; }

  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  /// Version, journal position and time of the image on the disk; 0 = none.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t written_at() const noexcept { return written_at_; }
  /// Chunks that are kept only because the image's version is pinned.
  [[nodiscard]] std::uint64_t held_chunks() const;
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Whether a quarantined image existed at the last checkpoint of this process; true before the
  /// first.
  [[nodiscard]] bool has_quarantined() const noexcept { return has_quarantined_; }

 private:
  struct Run;
  void start();
  void prove();
  void end_proof(const Status& proven);
  void begin();
  void write(const std::shared_ptr<Run>& run);
  void end(const std::shared_ptr<Run>& run, const Result<Image::Written>& written);
  [[nodiscard]] bool has_current() const;
  [[nodiscard]] bool is_due(bool settled) const;
  [[nodiscard]] CheckpointSchedule::Facts facts() const;
  [[nodiscard]] bool must_wait() const;
  void let_go(std::string_view reason);
  void tell_waiting(const Status& status);
  void note_index();

  asio::io_context& io_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Journal& journal_;
  std::unique_ptr<Image> image_;  // used by the background thread while a checkpoint runs
  std::uint64_t bytes_per_second_;
  CheckpointSchedule schedule_;
  shm::SlotTable::OwnPin durable_;
  bool running_ = false;
  bool untrusted_ = false;
  bool has_quarantined_ = true;
  std::vector<Done> waiting_;  // for the next checkpoint
  std::atomic<bool> hurry_{false};
  std::atomic<bool> aborted_{false};
  std::uint64_t version_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t written_at_ = 0;
  Counters counters_;
  std::string problem_;
  BackgroundThreads thread_{1};
};

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "manager/checkpoint/image.h"
#include "manager/io/write_rate_limiter.h"
#include "manager/journal/journal.h"
#include "manager/support/background_threads.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// Keeps the image close to the store: checkpoints follow by time, by journalled bytes, and by the
/// memory that the image holds back. The commit thread captures and pins a version. A background
/// thread writes the changes, paced, while updates go on. The image's version stays pinned, see
/// Image.
///
/// All methods on the commit thread.
class Checkpointer {
 public:
  struct Options {
    std::chrono::milliseconds interval{300'000};
    std::uint64_t journal_bytes = std::uint64_t{64} << 20;  ///< journalled since the last
                                                            ///< checkpoint
    std::uint64_t bytes_per_second = WriteRateLimiter::kBytesPerSecond;
    std::chrono::milliseconds again{60'000};  ///< pause after a failure
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

  void set_limits(std::chrono::milliseconds interval, std::uint64_t journal_bytes) noexcept;
  /// Starts a checkpoint if one is due. `settled`: no zones are being loaded. An image of which
  /// look() read the head alone is then read to its end, and replaced if it is unusable.
  void check(bool settled);
  /// Requests a checkpoint of the present version, after a running one. No checkpoint is made when
  /// the image has that version.
  void write_now(Done done);
  /// The store now has all zones and rules of the configuration with this fingerprint. 0: the store
  /// is being changed to another configuration. A checkpoint with the new fingerprint follows once
  /// zones are settled.
  void set_configuration(std::uint64_t fingerprint) noexcept { configuration_ = fingerprint; }
  /// The next checkpoint compares all chunks, since a copy captured the store
  /// (manager/checkpoint/store_copy.h).
  void doubt() noexcept { doubtful_ = true; }
  /// Makes no checkpoint, and lets requests wait, until go_on(): the store uses the image's own
  /// chunks.
  void hold() noexcept { held_ = true; }
  void go_on();
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
  [[nodiscard]] bool has_refused() const noexcept { return refused_; }

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
  [[nodiscard]] std::uint64_t held_limit() const;
  [[nodiscard]] bool must_wait() const;
  [[nodiscard]] bool holds_too_much() const;
  void let_go(std::string_view reason);
  void tell_waiting(const Status& status);
  void note_index();
  [[nodiscard]] std::uint64_t journalled() const;

  asio::io_context& io_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  Journal& journal_;
  std::unique_ptr<Image> image_;  // used by the background thread while a checkpoint runs
  Options options_;
  shm::SlotTable::OwnPin durable_;
  bool running_ = false;
  bool doubtful_ = false;
  bool held_ = false;
  bool refused_ = true;
  std::chrono::steady_clock::time_point patient_until_{};  // end of the wait for workers that
                                                           // mapped the image
  std::vector<Done> waiting_;                              // for the next checkpoint
  std::atomic<bool> hurry_{false};
  std::atomic<bool> aborted_{false};
  std::uint64_t configuration_ = 0;        // of the store
  std::uint64_t saved_configuration_ = 0;  // of the image
  std::uint64_t version_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t written_at_ = 0;
  std::uint64_t journal_mark_ = 0;  // bytes of the journal at the last checkpoint
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point pause_until_{};
  Counters counters_;
  std::string problem_;
  BackgroundThreads thread_{1};
};

}  // namespace pando::manager

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

/// Keeps the image near the store: by time, by what was journalled, and by the memory that it holds
/// back. The commit thread captures a version and pins it; a thread of its own writes what changed,
/// paced, while updates go on. The version that the disk has stays pinned, see Image.
///
/// All methods on the commit thread.
class Checkpointer {
 public:
  struct Options {
    std::chrono::milliseconds interval{300'000};
    std::uint64_t journal_bytes = std::uint64_t{64} << 20;  ///< journalled since the last one
    std::uint64_t bytes_per_second = WriteRateLimiter::kBytesPerSecond;
    std::chrono::milliseconds again{60'000};  ///< after a failure
  };
  struct Counters {
    std::uint64_t checkpoints = 0;
    std::uint64_t failed = 0;
    std::uint64_t bytes = 0;  ///< written by all
    std::uint64_t last_bytes = 0;
    std::uint64_t last_ms = 0;
    std::uint64_t longest_capture_us = 0;  ///< the commit thread's part
  };
  using Done = std::function<void(const Status&)>;

  /// `image` is opened already, or begins anew. All references outlive the object.
  Checkpointer(asio::io_context& io, shm::Store& store, shm::SlotTable& slots, Journal& journal,
               std::unique_ptr<Image> image, Options options);
  ~Checkpointer();

  /// Pins what the disk has. Call before anything can be reclaimed.
  static shm::SlotTable::OwnPin pin(const Image& image, shm::SlotTable& slots);
  void set_pin(shm::SlotTable::OwnPin pin) { durable_ = std::move(pin); }

  void set_limits(std::chrono::milliseconds interval, std::uint64_t journal_bytes) noexcept;
  /// Looks whether it is time; `settled`: zones are not just being loaded. Then an image that was
  /// only looked at is read to its end, too, and replaced when there is none behind its head.
  void check(bool settled);
  /// A checkpoint of what the store has now, after the one that runs; none when the image has it.
  void write_now(Done done);
  /// From now on the store has all zones and rules of the configuration with this fingerprint; 0:
  /// it is being changed to another one. A checkpoint that says so follows once zones are settled.
  void set_configuration(std::uint64_t fingerprint) noexcept { configuration_ = fingerprint; }
  /// Somebody else captured the store (manager/checkpoint/store_copy.h).
  void doubt() noexcept { doubtful_ = true; }
  /// No checkpoint is made, and whoever waits for one waits, until go_on(): the store's chunks are
  /// the image's own.
  void hold() noexcept { held_ = true; }
  void go_on();
  /// From now on without pauses: the process is to end.
  void hurry() noexcept { hurry_ = true; }
  /// Ends the checkpoint that runs; the image stays as it was.
  void abort() noexcept { aborted_ = true; }

  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  /// Version, journal position and time of what the disk has; 0 = nothing.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t written_at() const noexcept { return written_at_; }
  /// Chunks that are kept only because the image's version is pinned.
  [[nodiscard]] std::uint64_t held_chunks() const;
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Whether there was an image beside it that had been set aside, at the last checkpoint of this
  /// process; true before the first.
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
  std::unique_ptr<Image> image_;  // of the thread while one runs
  Options options_;
  shm::SlotTable::OwnPin durable_;
  bool running_ = false;
  bool doubtful_ = false;
  bool held_ = false;
  bool refused_ = true;
  std::chrono::steady_clock::time_point patient_until_{};  // with who has the image mapped
  std::vector<Done> waiting_;                              // for the next one
  std::atomic<bool> hurry_{false};
  std::atomic<bool> aborted_{false};
  std::uint64_t configuration_ = 0;        // of the store
  std::uint64_t saved_configuration_ = 0;  // of the image
  std::uint64_t version_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t written_at_ = 0;
  std::uint64_t journal_mark_ = 0;  // bytes of the journal at the last one
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point pause_until_{};
  Counters counters_;
  std::string problem_;
  BackgroundThreads thread_{1};
};

}  // namespace pando::manager

#pragma once

#include <chrono>
#include <cstdint>

namespace pando::manager {

/// Decides when the next checkpoint begins: by time, by journalled bytes, by the memory that the
/// image holds back, and after a change of the configuration. A failure, and workers that still map
/// the image, put it off.
///
/// The schedule has no clock and no store: each question brings the facts.
class CheckpointSchedule {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Limits {
    std::chrono::milliseconds interval{300'000};
    std::uint64_t journal_bytes = std::uint64_t{64} << 20;  ///< since the last checkpoint
    std::chrono::milliseconds again{60'000};                ///< pause after a failure
  };
  /// Facts about store and journal.
  struct Facts {
    TimePoint now{};
    std::uint64_t journal_bytes = 0;  ///< of the whole journal
    std::uint64_t held_chunks = 0;    ///< kept only because the image's version is pinned
    std::uint64_t used_chunks = 0;
    bool low_space = false;
  };

  CheckpointSchedule(const Limits& limits, TimePoint now) : limits_(limits), last_(now) {}

  void set_limits(std::chrono::milliseconds interval, std::uint64_t journal_bytes) noexcept;
  /// The configuration of the store; 0: the store is being changed to another one.
  void set_configuration(std::uint64_t fingerprint) noexcept { configuration_ = fingerprint; }
  [[nodiscard]] std::uint64_t configuration() const noexcept { return configuration_; }
  /// The image on the disk is another one, of this configuration; journalled bytes count anew.
  void on_image(std::uint64_t configuration, std::uint64_t journal_bytes) noexcept;

  /// The results of attempts.
  void on_written(TimePoint now) noexcept;
  void on_failed(TimePoint now) noexcept;
  /// The image could not be read: waits as after a failure, but the interval goes on.
  void on_unreadable(TimePoint now) noexcept { pause_until_ = now + limits_.again; }

  /// No checkpoint is made until resume().
  void hold() noexcept { held_ = true; }
  void resume(TimePoint now) noexcept;
  [[nodiscard]] bool is_held() const noexcept { return held_; }
  /// Whether workers may still be turning from the image to the store.
  [[nodiscard]] bool waits_for_workers(TimePoint now) const noexcept {
    return now < patient_until_;
  }
  /// Whether the last attempt failed a short time ago.
  [[nodiscard]] bool is_paused(TimePoint now) const noexcept { return now < pause_until_; }

  /// Whether the store has another configuration than the image.
  [[nodiscard]] bool is_reconfigured() const noexcept;
  /// Whether a checkpoint is due, given that the image is not of the present version and
  /// configuration. `settled`: no zones are being loaded.
  [[nodiscard]] bool is_due(const Facts& facts, bool settled) const noexcept;
  /// Whether the image's version has to be unpinned, as long as no checkpoint can be made.
  [[nodiscard]] static bool holds_too_much(const Facts& facts) noexcept;

 private:
  Limits limits_;
  std::uint64_t configuration_ = 0;        // of the store
  std::uint64_t image_configuration_ = 0;  // of the image
  std::uint64_t journal_mark_ = 0;         // bytes of the journal at the last checkpoint
  bool held_ = false;
  bool is_first_ = true;  // no checkpoint was made since the start
  TimePoint last_;
  TimePoint pause_until_{};
  TimePoint patient_until_{};
};

}  // namespace pando::manager

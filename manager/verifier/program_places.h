#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dns/name.h"

namespace pando::manager {

/// A program that judges a zone right now.
struct ProgramUnderWay {
  std::string program;      ///< its path
  std::uint64_t since = 0;  ///< seconds since 1970
  std::uint64_t until = 0;  ///< without a verdict by then the version is refused
};

/// Bounds the number of programs that judge zones, and knows which run. A program without a verdict
/// after kSlow gives its place to another one and goes on: one that hangs must hold up its own zone
/// alone. For all threads.
class ProgramPlaces {
 public:
  using Clock = std::chrono::steady_clock;
  /// Programs at once, without slow ones. Most of them compute.
  static constexpr std::size_t kAtOnce = 4;
  /// Programs in all: each has a thread.
  static constexpr std::size_t kThreads = 32;
  static constexpr std::chrono::seconds kSlow{5};

  struct Run {
    dns::Name zone;
    ProgramUnderWay shown;
    Clock::time_point began;
  };
  using Taken = std::list<Run>::iterator;
  /// The place of one program, which ends with this object.
  class Place {
   public:
    Place(ProgramPlaces& places, Taken run) : places_(&places), run_(run) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { places_->leave(run_); }

   private:
    ProgramPlaces* places_;
    Taken run_;
  };

  /// Takes a place for a program, or nothing. `now` decides which programs are slow.
  [[nodiscard]] std::optional<Taken> try_take(dns::NameView zone, const std::string& program,
                                              std::chrono::milliseconds most_time,
                                              Clock::time_point now);
  void leave(Taken run);
  /// Waits for a place until `is_over`, which is asked every 100 ms. Null: it was over first.
  [[nodiscard]] std::unique_ptr<Place> wait(dns::NameView zone, const std::string& program,
                                            std::chrono::milliseconds most_time,
                                            const std::function<bool()>& is_over);

  /// The program that judges the zone now; nullopt: none.
  [[nodiscard]] std::optional<ProgramUnderWay> find(dns::NameView zone) const;
  [[nodiscard]] bool is_slow(dns::NameView zone, Clock::time_point now) const;

 private:
  [[nodiscard]] bool has_room(Clock::time_point now) const;

  mutable std::mutex mutex_;
  std::condition_variable freed_;
  std::list<Run> runs_;
};

}  // namespace pando::manager

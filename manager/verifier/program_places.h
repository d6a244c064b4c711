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

/// A verifier program that runs now.
struct ProgramUnderWay {
  std::string program;      ///< its path
  std::uint64_t since = 0;  ///< seconds since 1970
  std::uint64_t until = 0;  ///< deadline: without a verdict the version is refused
};

/// Bounds the number of verifier programs, and lists those that run. A program without a verdict
/// after kSlow continues without a place, so that a hanging program delays its own zone only. For
/// all threads.
class ProgramPlaces {
 public:
  using Clock = std::chrono::steady_clock;
  /// Programs that run together, slow ones not counted. Most of them are busy with a processor.
  static constexpr std::size_t kAtOnce = 4;
  /// Programs that run together, slow ones included: each needs a thread.
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

  /// Takes a place for a program; nullopt: none is free. `now` decides which programs are slow.
  [[nodiscard]] std::optional<Taken> try_take(dns::NameView zone, const std::string& program,
                                              std::chrono::milliseconds most_time,
                                              Clock::time_point now);
  void leave(Taken run);
  /// Waits for a place until `is_over`, which is asked every 100 ms. Null: is_over() came first.
  [[nodiscard]] std::unique_ptr<Place> wait(dns::NameView zone, const std::string& program,
                                            std::chrono::milliseconds most_time,
                                            const std::function<bool()>& is_over);

  /// The zone's program that runs now; nullopt: none.
  [[nodiscard]] std::optional<ProgramUnderWay> find(dns::NameView zone) const;
  [[nodiscard]] bool is_slow(dns::NameView zone, Clock::time_point now) const;

 private:
  [[nodiscard]] bool has_room(Clock::time_point now) const;

  mutable std::mutex mutex_;
  std::condition_variable freed_;
  std::list<Run> runs_;
};

}  // namespace pando::manager

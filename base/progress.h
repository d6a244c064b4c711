#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pando {

/// Progress of a thread with long work on a zone. Only that thread writes the numbers, in phases
/// that may recur; other threads read them now and then. A read between two phases may see numbers
/// of both.
class Progress {
 public:
  /// The units counted: bytes of files when reading, records when sorting and building, names when
  /// comparing and checking. The other phases count nothing.
  enum class Phase : std::uint8_t {
    kPreparing,  ///< finds out whether there is work to do
    kReading,
    kSorting,
    kBuilding,
    kComparing,
    kChecking,
    kJudging,  ///< a program of the operator has the word
    kPutting,  ///< puts the zone into the store's next version
  };
  struct Seen {
    Phase phase = Phase::kPreparing;
    std::uint64_t done = 0;
    std::uint64_t total = 0;  ///< 0 = not known
    /// 0 to 100; nullopt: not known.
    [[nodiscard]] std::optional<unsigned> percent() const noexcept;
  };

  /// `total` 0: not known.
  void begin(Phase phase, std::uint64_t total) noexcept;
  void at(std::uint64_t done) noexcept { done_.store(done, std::memory_order_relaxed); }
  /// The work turned out larger than announced, and its size is not known.
  void lose_total() noexcept { total_.store(0, std::memory_order_relaxed); }
  /// The counter that at() sets, for code that adds to it.
  [[nodiscard]] std::atomic<std::uint64_t>& done() noexcept { return done_; }
  [[nodiscard]] Seen seen() const noexcept;

  /// Cancels the work, which ends with an error soon after. By any thread, once. Relaxed: the flag
  /// guards no other memory.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_given_up() const noexcept {
    return given_up_.load(std::memory_order_relaxed);
  }

  /// The progress of the calling thread's work, for code that does a part of that work, however
  /// deep. Null: no thread reads the progress.
  [[nodiscard]] static Progress* here() noexcept;
  /// Sets here() for the lifetime of the scope.
  class Scope {
   public:
    explicit Scope(Progress* progress) noexcept;
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    Progress* before_;
  };

 private:
  // Relaxed: these words guard no other memory.
  std::atomic<Phase> phase_{Phase::kPreparing};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> total_{0};
  std::atomic<bool> given_up_{false};
};

/// The phase's word: "reading" and so on.
[[nodiscard]] std::string_view to_text(Progress::Phase phase) noexcept;

/// Counts the steps of a phase. About every 4,096th step updates the thread's progress, if any, and
/// checks whether the work is cancelled. Otherwise a step costs an addition.
class ProgressCount {
 public:
  /// `steps`: the number of steps that make up `total`, if the two differ.
  ProgressCount(Progress::Phase phase, std::uint64_t total, std::uint64_t steps = 0) noexcept;
  ProgressCount(const ProgressCount&) = delete;
  ProgressCount& operator=(const ProgressCount&) = delete;
  ~ProgressCount() { tell(); }
  void add(std::uint64_t steps = 1) noexcept {
    const std::uint64_t before = count_;
    count_ += steps;
    if ((before ^ count_) >= kTellEvery) tell();
  }
  /// As of the last update of the progress.
  [[nodiscard]] bool is_given_up() const noexcept { return given_up_; }

 private:
  static constexpr std::uint64_t kTellEvery = 4096;  // a power of two
  void tell() noexcept;

  Progress* progress_;
  std::uint64_t total_;
  std::uint64_t steps_;
  std::uint64_t count_ = 0;
  bool given_up_ = false;
};

/// Text of the error with which cancelled work ends.
inline constexpr const char* kGivenUp = "the work was given up";

}  // namespace pando

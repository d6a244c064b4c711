#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pando {

/// How far a thread has come with long work on a zone. That thread alone tells it, in phases that
/// may come more than once; others look at it every now and then. A look between two phases may see
/// numbers of both.
class Progress {
 public:
  /// What is counted: octets of files when reading, records when sorting and building, names when
  /// comparing and checking; nothing in the others.
  enum class Phase : std::uint8_t {
    kLooking,  ///< whether there is anything to do
    kReading,
    kSorting,
    kBuilding,
    kComparing,
    kChecking,
    kPutting,  ///< into the store's next version
  };
  struct Seen {
    Phase phase = Phase::kLooking;
    std::uint64_t done = 0;
    std::uint64_t total = 0;  ///< 0 = not known
    /// 0 to 100; nullopt: not known.
    [[nodiscard]] std::optional<unsigned> percent() const noexcept;
  };

  /// `total` 0: not known.
  void begin(Phase phase, std::uint64_t total) noexcept;
  void at(std::uint64_t done) noexcept { done_.store(done, std::memory_order_relaxed); }
  /// There is more than was said, nobody knows how much.
  void lose_total() noexcept { total_.store(0, std::memory_order_relaxed); }
  /// What at() sets, for who adds to it.
  [[nodiscard]] std::atomic<std::uint64_t>& done() noexcept { return done_; }
  [[nodiscard]] Seen seen() const noexcept;

  /// Nobody wants what comes of the work any more: it ends with an error soon after. By any thread,
  /// once; nothing else is read by it, so no order is needed.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_given_up() const noexcept {
    return given_up_.load(std::memory_order_relaxed);
  }

  /// That of the calling thread's work, which is told by who does a part of it, however deep; null:
  /// nobody looks.
  [[nodiscard]] static Progress* here() noexcept;
  /// Makes it that, for as long as this is there.
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
  // Relaxed: no other memory is read by what they say.
  std::atomic<Phase> phase_{Phase::kLooking};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> total_{0};
  std::atomic<bool> given_up_{false};
};

/// "reading" and so on.
[[nodiscard]] std::string_view to_text(Progress::Phase phase) noexcept;

/// Counts the steps of a phase and tells the thread's progress of every 4,096th or so, if there is
/// one, and looks whether the work is given up: a step costs an addition.
class ProgressCount {
 public:
  /// `steps`: so many make up the `total`, if that is another number.
  ProgressCount(Progress::Phase phase, std::uint64_t total, std::uint64_t steps = 0) noexcept;
  ProgressCount(const ProgressCount&) = delete;
  ProgressCount& operator=(const ProgressCount&) = delete;
  ~ProgressCount() { tell(); }
  void add(std::uint64_t steps = 1) noexcept {
    const std::uint64_t before = count_;
    count_ += steps;
    if ((before ^ count_) >= kTellEvery) tell();
  }
  /// As of the last look.
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

/// What work that was given up ends with.
inline constexpr const char* kGivenUp = "the work was given up";

}  // namespace pando

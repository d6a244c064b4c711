#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "manager/launch/launcher.h"
#include "manager/verifier/verifier_process.h"

namespace pando::manager {

/// One run of a verifier program: writes the zone to it, stores the first part of its output, and
/// ends it. For one thread, which must ignore SIGPIPE.
class ProgramRun {
 public:
  /// Bytes of each stream that are stored; the rest is read and dropped.
  static constexpr std::size_t kKeptOutput = 4096;

  /// `launcher` may be null. The run ends when `stopped` is true (which may be null), or the
  /// calling thread's Progress is given up.
  static Result<std::unique_ptr<ProgramRun>> start(const VerifierCommand& command,
                                                   const Launcher* launcher,
                                                   std::chrono::milliseconds most_time,
                                                   const std::atomic<bool>* stopped);
  /// Kills the program's processes that still run.
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  /// Writes to the program's standard input. An error: writing more is of no use, because the
  /// program has closed its input, has ended, or has used up its time.
  Status write(std::string_view text);
  /// Ends the input and waits for the end. An error has the reason why there is no verdict.
  Result<VerifierEnd> finish();
  /// The first line of its standard error, else of its standard output: UTF-8 without controls.
  [[nodiscard]] std::string first_line() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Stream {
    Fd fd{};
    std::string kept{};
  };

  ProgramRun() = default;
  Status make_descriptors(VerifierDescriptors& theirs, std::vector<Fd>& owned);
  /// Waits until something happens, 100 ms at most. An error: the run is over without a verdict.
  Status step();
  Status check_time() const;
  void read_link();
  /// False: nothing is there now.
  static bool read_from(Stream& stream);

  Fd input_;
  Stream output_;
  Stream errors_;
  Fd link_;
  Child child_;
  const Launcher* launcher_ = nullptr;
  const std::atomic<bool>* stopped_ = nullptr;
  Clock::time_point deadline_;
  std::chrono::milliseconds most_time_{};
  std::optional<Result<VerifierEnd>> end_;
};

}  // namespace pando::manager

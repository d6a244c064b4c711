#pragma once

#include <asio/thread_pool.hpp>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings/zone_table.h"
#include "manager/launch/launcher.h"
#include "manager/support/background_threads.h"
#include "manager/verifier/program_places.h"
#include "zone/read/store_view.h"

/// Programs of the operator that verify zones before they are served (`verify-command`).
namespace pando::manager {

class ZoneVerifiers;

/// The program of one or more zones. Lives until ZoneVerifiers ends.
class ZoneVerifier {
 public:
  ZoneVerifier(ZoneVerifiers& owner, std::vector<std::string> words,
               std::chrono::milliseconds most_time);
  /// Gives the program `zone` as text and waits for its verdict, in a thread of pool(). Nullopt:
  /// the zone is accepted. Else the reason in one line. Without a verdict the zone is refused. A
  /// given-up Progress::here() ends the wait.
  [[nodiscard]] std::optional<std::string> refusal(const zone::ZoneView& zone) const;
  /// Whether `other` has the same program, arguments and time.
  [[nodiscard]] bool is_like(const ZoneVerifier& other) const noexcept {
    return words_ == other.words_ && most_time_ == other.most_time_;
  }
  /// The program's path.
  [[nodiscard]] const std::string& program() const noexcept { return words_.front(); }
  /// Whether the zone's program is a slow one (ProgramPlaces::kSlow).
  [[nodiscard]] bool is_slow(dns::NameView zone) const;
  /// Threads that may wait for programs.
  [[nodiscard]] asio::thread_pool& pool() const;

 private:
  ZoneVerifiers& owner_;
  std::vector<std::string> words_;
  std::chrono::milliseconds most_time_;
};
using ZoneVerifierPtr = std::shared_ptr<const ZoneVerifier>;

/// Starts the programs of all zones, and ends them with the manager. On the commit thread.
class ZoneVerifiers {
 public:
  struct Rights {
    const Launcher* launcher = nullptr;  ///< starts programs as the workers' user
    std::string user{};                  ///< without a launcher: the programs' user; may be empty
  };

  explicit ZoneVerifiers(Rights rights) : rights_(std::move(rights)) {}
  ~ZoneVerifiers() { stop(); }
  ZoneVerifiers(const ZoneVerifiers&) = delete;
  ZoneVerifiers& operator=(const ZoneVerifiers&) = delete;

  /// The zone's program; null if it has none.
  [[nodiscard]] ZoneVerifierPtr of(const config::ZoneOptions& options);
  /// The zone's program that runs now; nullopt: none.
  [[nodiscard]] std::optional<ProgramUnderWay> under_way(dns::NameView zone) const {
    return places_.find(zone);
  }
  /// Kills all programs and waits for the threads. No zone is accepted any more.
  void stop();

 private:
  friend class ZoneVerifier;

  Rights rights_;
  ProgramPlaces places_;
  std::atomic<bool> stopped_{false};  // relaxed: guards no other memory
  // Programs of one configuration mostly are the same one.
  std::weak_ptr<const ZoneVerifier> last_;
  std::vector<std::string> last_words_;
  std::chrono::milliseconds last_time_{};
  std::optional<BackgroundThreads> threads_;  // from the first zone with a program on
};

}  // namespace pando::manager

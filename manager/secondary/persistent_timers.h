#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "config/settings/settings.h"
#include "manager/commit/committer.h"
#include "manager/secondary/secondary_timers.h"
#include "shm/store.h"

namespace pando::manager {

/// Timers of secondary zones in the store's side table, where workers see whether a zone has
/// expired. The timers there outlast the process. The rules of secondary_timers.h compute the
/// timers from a zone's SOA and its primaries' statements. Times are in seconds since 1970; the
/// caller supplies `now`.
///
/// Lives on the commit thread; references outlive the object.
class PersistentTimers {
 public:
  PersistentTimers(shm::Store& store, const Committer& committer)
      : store_(store), committer_(committer) {}

  /// Sets limits.refresh.
  void set_range(const config::DurationRange& range) { range_ = range; }

  /// Returns the time of a zone's first refresh cycle: the stored time, as far as that is
  /// plausible. A zone from a copy on disk has no stored timers and counts as confirmed now. A zone
  /// without data is due immediately.
  std::uint64_t first_refresh(const dns::Name& zone, std::uint64_t now);
  /// Records that a primary has our version. `stated` is the primary's own remaining time in
  /// seconds until expiry (RFC 7314). With `brought`, the primary has just sent the version, so an
  /// earlier primary's statement is dropped.
  void confirm(const dns::Name& zone, std::optional<std::uint32_t> stated, bool brought,
               std::uint64_t now);
  /// Called after a refresh cycle; `ok`: a primary confirmed the zone. Stores and returns the time
  /// of the next refresh cycle.
  std::uint64_t next_refresh(const dns::Name& zone, bool ok, std::uint64_t now);

  /// After the clock was put back: stores `due` as the time of the next refresh cycle. A time of
  /// expiry that is implausibly late now becomes the latest plausible one.
  void clock_went_back(const dns::Name& zone, std::uint64_t due, std::uint64_t now);

  [[nodiscard]] bool expired(const zone::ZoneView& zone, std::uint64_t now) const;
  struct Stored {
    std::uint64_t expires_at = 0;  ///< 0: unknown
    std::uint64_t last_ok = 0;
  };
  [[nodiscard]] Stored stored(const dns::Name& zone) const;

 private:
  std::uint64_t jittered(std::uint64_t seconds);
  [[nodiscard]] zone::ZoneView view_of(const dns::Name& zone) const;

  shm::Store& store_;
  const Committer& committer_;
  config::DurationRange range_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace pando::manager

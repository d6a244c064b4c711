#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "config/settings/settings.h"
#include "manager/commit/committer.h"
#include "manager/secondary/secondary_timers.h"
#include "shm/store.h"

namespace pando::manager {

/// The timers of secondary zones in the store's side table, where workers see when a zone expires,
/// and where they outlast the process: what the rules of secondary_timers.h make of a zone's SOA
/// and of what its primaries say. Moments are seconds since 1970, `now` always the caller's.
///
/// Lives on the commit thread; references outlive the object.
class PersistentTimers {
 public:
  PersistentTimers(shm::Store& store, const Committer& committer)
      : store_(store), committer_(committer) {}

  /// limits.refresh from now on.
  void set_range(const config::DurationRange& range) { range_ = range; }

  /// When a zone is to be looked at first: when the kept timers say, as far as they are to be
  /// believed. A zone that came from its copy on disk has none: it counts as confirmed now. One
  /// without data is looked at at once.
  std::uint64_t first_look(const dns::Name& zone, std::uint64_t now);
  /// A primary has what we have. `told`: how long it keeps that itself; `brought`: it sent it just
  /// now, so what another one said before counts no longer.
  void confirm(const dns::Name& zone, std::optional<std::uint32_t> told, bool brought,
               std::uint64_t now);
  /// After a round of looks, `ok`: a primary confirmed the zone. Keeps and returns the moment of
  /// the next look.
  std::uint64_t next_look(const dns::Name& zone, bool ok, std::uint64_t now);

  [[nodiscard]] bool expired(const zone::ZoneView& zone, std::uint64_t now) const;
  struct Kept {
    std::uint64_t expires_at = 0;  ///< 0: not known
    std::uint64_t last_ok = 0;
  };
  [[nodiscard]] Kept kept(const dns::Name& zone) const;

 private:
  [[nodiscard]] std::uint64_t clamped(std::uint64_t seconds) const;  // within the range
  [[nodiscard]] std::uint64_t kept_for(const SoaTimers& timers) const;
  std::uint64_t jittered(std::uint64_t seconds);
  [[nodiscard]] zone::ZoneView view_of(const dns::Name& zone) const;

  shm::Store& store_;
  const Committer& committer_;
  config::DurationRange range_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/signing/signed_zones.h"
#include "manager/signing/update_holds.h"
#include "shm/slots.h"

namespace pando::manager {

/// Names of a zone with a signature that ends before `before`, or begins after `now`; at most
/// `most` of them, in the order of a walk. Times are seconds since 1970. For pool threads; the
/// version stays pinned.
[[nodiscard]] std::vector<dns::Name> names_with_old_signatures(const zone::ZoneView& zone,
                                                               std::uint64_t before,
                                                               std::uint64_t now, std::size_t most);

/// Renews the signatures of the zones that are signed here, long before they end: a pool thread
/// looks for old ones once in a while, and a change of the zone makes these anew. Other signatures
/// stay. Secondaries follow by IXFR.
///
/// Lives on the commit thread.
class SignatureRenewal {
 public:
  /// Pause between two looks at all zones.
  static constexpr std::chrono::minutes kMaxPause{60};

  /// All references outlive the object; `pool` is joined before its destruction.
  SignatureRenewal(asio::io_context& io, asio::thread_pool& pool, shm::SlotTable& slots,
                   const Committer& committer, ChangeRoad& road, const SignedZones& zones,
                   UpdateHolds holds)
      : io_(io),
        pool_(pool),
        slots_(slots),
        committer_(committer),
        road_(road),
        zones_(zones),
        holds_(std::move(holds)) {}

  /// Begins to look at all zones if it is time to; to be called regularly.
  void check(std::chrono::steady_clock::time_point now);
  /// Looks at this zone soon: its keys have just become usable.
  void check_zone(const dns::Name& zone);
  [[nodiscard]] std::uint64_t renewed() const noexcept { return renewed_; }

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;
  void start_next();
  void look(const WorkPtr& work);
  void submit(const WorkPtr& work);
  void ended(const WorkPtr& work, bool has_more);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::SlotTable& slots_;
  const Committer& committer_;
  ChangeRoad& road_;
  const SignedZones& zones_;
  UpdateHolds holds_;
  std::deque<dns::Name> waiting_;
  bool at_work_ = false;
  std::chrono::steady_clock::time_point next_look_{};
  std::uint64_t renewed_ = 0;  // names
};

}  // namespace pando::manager

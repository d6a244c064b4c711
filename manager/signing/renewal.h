#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "manager/signing/signature_look.h"
#include "manager/signing/signed_zones.h"
#include "shm/slots.h"

namespace pando::manager {

/// Renews the signatures of the zones that are signed here, long before they end: a pool thread
/// looks for old ones once in a while, and a change of the zone makes these anew. Other signatures
/// stay. Secondaries follow by IXFR.
///
/// Lives on the commit thread.
class SignatureRenewal {
 public:
  /// Pause between two looks at all zones.
  static constexpr std::chrono::minutes kMaxPause{60};

  /// Called after each look at a zone that `signer` has signed, on the commit thread.
  using Looked = std::function<void(const dns::Name& name, const ZoneSignerPtr& signer,
                                    const SignatureLook& look)>;

  /// All references outlive the object; `pool` is joined before its destruction.
  SignatureRenewal(asio::io_context& io, asio::thread_pool& pool, shm::SlotTable& slots,
                   const Committer& committer, ChangeRoad& road, const SignedZones& zones,
                   Looked looked)
      : io_(io),
        pool_(pool),
        slots_(slots),
        committer_(committer),
        road_(road),
        zones_(zones),
        looked_(std::move(looked)) {}

  /// Begins to look at all zones if it is time to; to be called regularly.
  void check(std::chrono::steady_clock::time_point now);
  /// Looks at this zone soon: its keys sign otherwise than before, or it was signed as a whole.
  void check_zone(const dns::Name& zone);
  /// The zone was published. A new TTL of negative answers reaches its NSEC records soon.
  void published(const dns::Name& zone);
  [[nodiscard]] std::uint64_t renewed() const noexcept { return renewed_; }

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;
  void wait(const dns::Name& zone);
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
  Looked looked_;
  std::deque<dns::Name> waiting_;
  std::set<std::string> known_waiting_;  // those in waiting_, by dns::folded_key()
  std::map<std::string, dns::Ttl> denial_ttls_;  // of the versions looked at, by folded_key()
  bool at_work_ = false;
  std::chrono::steady_clock::time_point next_look_{};
  std::uint64_t renewed_ = 0;  // names
};

}  // namespace pando::manager

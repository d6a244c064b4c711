#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dns/name.h"
#include "ipc/zone_counters.h"
#include "manager/change/change_judgement.h"
#include "manager/commit/runtime.h"
#include "manager/secondary/primary_shares.h"
#include "manager/secondary/refresh_cycle.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// One refresh attempt of a zone at one primary.
struct RefreshAttempt {
  dns::Name zone;
  std::uint64_t generation = 0;  ///< of the zone's primaries when the attempt began
  Primary primary;
  RuntimePtr runtime;  ///< owns the key
  std::uint64_t records = 0;
  std::uint64_t octets = 0;
  std::optional<std::uint32_t> expire;  ///< the primary's EXPIRE option, in seconds (RFC 7314)
  bool is_whole = false;                ///< the transfer brought the whole zone
  bool may_compare = false;             ///< a whole zone may be compared with the served one
  ZoneVerifierPtr program;              ///< verifies the received data; null: none
  PrimaryShares::SharePtr share;        ///< null: given back
  std::string silence;                  ///< see PrimaryShares::end()
  bool is_abandoned = false;            ///< for another primary, which sent a NOTIFY
};
using RefreshAttemptPtr = std::shared_ptr<RefreshAttempt>;

/// Questions of refresh attempts to other parts of the manager, called on the commit thread.
struct RefreshHooks {
  /// Whether the data of a served zone were verified before, without a fault.
  std::function<bool(const zone::ZoneView& zone)> is_verified = [](const zone::ZoneView&) {
    return false;
  };
  /// An error: the zone is not to change now, and has the reason. A zone that may change again
  /// needs Refresher::refresh_now().
  std::function<Status(const dns::Name& zone)> may_change = [](const dns::Name&) {
    return Status();
  };
  /// The program that verifies the zone's data before they are served; null: none.
  std::function<ZoneVerifierPtr(const dns::Name& zone)> verifier_of = [](const dns::Name&) {
    return ZoneVerifierPtr();
  };
  /// One more transfer in or failed attempt of the zone.
  std::function<void(const dns::Name& zone, ipc::ZoneCounter counter)> count =
      [](const dns::Name&, ipc::ZoneCounter) {};
};

}  // namespace pando::manager

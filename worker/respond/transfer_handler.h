#pragma once

#include "worker/request/outcome.h"
#include "worker/request/request_context.h"
#include "worker/request/response_builder.h"
#include "worker/request/settings_cache.h"
#include "worker/respond/transfer_plan.h"
#include "worker/respond/zone_expiry.h"

namespace pando::worker {

/// Decides on requests for zone transfers. An answer of one message is given immediately, a longer
/// transfer is planned for TransferOut.
class TransferHandler {
 public:
  TransferHandler(SettingsCache& cache, const ZoneExpiry& expiry) noexcept
      : cache_(cache), expiry_(expiry) {}
  TransferHandler(const TransferHandler&) = delete;
  TransferHandler& operator=(const TransferHandler&) = delete;

  /// For a question of type AXFR or IXFR, after the check of its signature.
  Outcome start(RequestContext& context);
  /// The plan after an Outcome of kTransfer.
  [[nodiscard]] TransferPlan take_plan() { return std::move(plan_); }

 private:
  void make_plan(RequestContext& context, const zone::ZoneView& zone);

  SettingsCache& cache_;
  const ZoneExpiry& expiry_;
  TransferPlan plan_;
};

}  // namespace pando::worker

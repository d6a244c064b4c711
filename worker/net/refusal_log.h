#pragma once

#include <cstdint>

#include "worker/request/request_context.h"

namespace pando::worker {

/// Logs refused transfers, updates, NOTIFY messages and signatures: at most one line a second, as
/// clients choose their number. Queries without a signature are only counted.
class RefusalLog {
 public:
  /// Logs the request if its handler has refused it.
  void tell(const RequestContext& context) {
    if (!context.refusal.empty()) tell_refusal(context);
  }

 private:
  void tell_refusal(const RequestContext& context);

  std::uint64_t told_ = 0;      // second of the last line, since 1970
  std::uint64_t requests_ = 0;  // refused since then
};

}  // namespace pando::worker

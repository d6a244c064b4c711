#pragma once

#include "worker/request/outcome.h"
#include "worker/request/request_context.h"

namespace pando::worker {

/// Answers a question of class CH. RFC 4892 §3: the server's identity; by custom also its version.
/// A value that the configuration does not set is refused.
Outcome answer_chaos(RequestContext& context);

}  // namespace pando::worker

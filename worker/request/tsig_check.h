#pragma once

#include <cstdint>
#include <optional>

#include "worker/request/outcome.h"
#include "worker/request/request_context.h"

namespace pando::worker {

/// Verifier of a request's signature when the worker has the key.
enum class VerifiedBy : std::uint8_t { kWorker, kManager };

/// check_tsig() for a request that has a TSIG.
std::optional<Outcome> check_present_tsig(RequestContext& context, VerifiedBy verifier);

/// Checks a TSIG before any other part of the request counts (RFC 8945 §5.2). A value ends the
/// request. The manager verifies signatures of the keys that only it has, and no answer is sent
/// before. With kManager it verifies those of all known keys, as for an UPDATE or a NOTIFY that is
/// forwarded. A signature with an unknown key is answered immediately.
inline std::optional<Outcome> check_tsig(RequestContext& context, VerifiedBy verifier) {
  if (!context.request.tsig) return std::nullopt;  // mostly, and without a call
  return check_present_tsig(context, verifier);
}

}  // namespace pando::worker

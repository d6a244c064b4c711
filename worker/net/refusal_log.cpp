#include "worker/net/refusal_log.h"

#include <utility>

#include "ipc/log.h"

namespace pando::worker {

namespace {

/// "AXFR" for a transfer, or else the opcode: "UPDATE".
std::string kind_of(const Request& request) {
  using dns::RRType;
  const RRType type = request.question.type;
  if (request.header.opcode == dns::Opcode::kQuery &&
      (type == RRType::kAXFR || type == RRType::kIXFR))
    return to_text(type);
  return to_text(request.header.opcode);
}

}  // namespace

void RefusalLog::tell_refusal(const RequestContext& context) {
  ++requests_;
  if (context.batch.now == told_) return;
  told_ = context.batch.now;
  const Request& request = context.request;
  log::info("request_refused", "kind", kind_of(request), "zone", to_text(request.question.name),
            "client", to_text(context.client->remote), "key",
            context.key_name() == nullptr ? "-" : to_text(*context.key_name()), "reason",
            context.refusal, "requests", std::exchange(requests_, 0));
}

}  // namespace pando::worker

#include "manager/request/client_request.h"

#include <utility>

namespace pando::manager {

ClientRequest::ClientRequest(ipc::Forward&& forward, RuntimePtr runtime, ForwardReply reply)
    : forward_(std::move(forward)),
      parsed_(std::move(forward_.message)),
      runtime_(std::move(runtime)),
      reply_(std::move(reply)) {}

bool ClientRequest::fits_kind() const noexcept {
  if (!parsed_.is_request()) return false;
  switch (kind()) {
    case ipc::ForwardKind::kUpdate:
      return parsed_.header()->opcode == dns::Opcode::kUpdate;
    case ipc::ForwardKind::kNotify:
      return parsed_.header()->opcode == dns::Opcode::kNotify;
    case ipc::ForwardKind::kSignedQuery:
      return true;  // also for an UPDATE that the worker refuses itself: the refusal is signed here
  }
  return false;
}

bool ClientRequest::verify(std::uint64_t now) {
  const auto& record = parsed_.tsig();
  if (!record) {
    verdict_.rcode = dns::Rcode::kFormErr;
  } else if (*record) {
    verdict_ = dns::TsigSession::verify_request(parsed_.octets(), **record, runtime_->keys, now);
    session_.emplace(dns::TsigSession::for_response(verdict_));
  }
  return rcode() == dns::Rcode::kNoError;
}

const dns::Name* ClientRequest::key() const noexcept {
  return session_ && rcode() == dns::Rcode::kNoError ? &verdict_.record.key_name : nullptr;
}

Bytes ClientRequest::sign(Bytes response, std::uint64_t now) {
  if (!session_ || response.empty()) return response;
  if (!session_->sign(response, now)) return {};
  return response;
}

}  // namespace pando::manager

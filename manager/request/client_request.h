#pragma once

#include <optional>

#include "base/address.h"
#include "dns/tsig/tsig.h"
#include "ipc/worker_messages.h"
#include "manager/commit/runtime.h"
#include "manager/request/parsed_request.h"
#include "manager/request/recent_replies.h"
#include "manager/request/used_signatures.h"
#include "manager/workers/worker_link.h"
#include "zone/settings/requester.h"

namespace pando::manager {

/// A client's request in the manager, from the arrival to the answer: the parsed message, the
/// verdict on its signature, and the place where its answer goes. ReplyPath gives the answer.
class ClientRequest {
 public:
  /// `runtime` has the keys and the configuration that decides about the request.
  ClientRequest(ipc::Forward&& forward, RuntimePtr runtime, ForwardReply reply);
  ClientRequest(const ClientRequest&) = delete;
  ClientRequest& operator=(const ClientRequest&) = delete;

  [[nodiscard]] const ParsedRequest& parsed() const noexcept { return parsed_; }
  [[nodiscard]] ipc::ForwardKind kind() const noexcept { return forward_.kind; }
  [[nodiscard]] bool over_udp() const noexcept {
    return forward_.transport == ipc::Transport::kUdp;
  }
  [[nodiscard]] const Endpoint& client() const noexcept { return forward_.client; }
  [[nodiscard]] const Runtime& runtime() const noexcept { return *runtime_; }
  /// True if the opcode is that of the request's kind. Workers check the opcode, too, except a
  /// worker of another version.
  [[nodiscard]] bool fits_kind() const noexcept;

  /// Verifies the TSIG record, if the message has one, at `now` (seconds since 1970). False: the
  /// answer must be the verdict's error (RFC 8945 §5.2).
  bool verify(std::uint64_t now);
  /// NOERROR before verify(), too.
  [[nodiscard]] dns::Rcode rcode() const noexcept { return verdict_.rcode; }
  /// Reason of a failed verification.
  [[nodiscard]] dns::Rcode tsig_error() const noexcept { return verdict_.tsig_error; }
  /// Name of the verified key that signed the request; null for an unsigned request.
  [[nodiscard]] const dns::Name* key() const noexcept;
  /// The client for the rules of a zone; valid as long as the request.
  [[nodiscard]] zone::Requester requester() const noexcept { return requester_with(key()); }
  /// The same with a key that the client merely names.
  [[nodiscard]] zone::Requester requester_with(const dns::Name* claimed) const noexcept {
    return {client().address, claimed, forward_.peer ? &*forward_.peer : nullptr};
  }
  /// Signs a finished response if verify() found a signature. An error's response gets the TSIG
  /// record of the error (RFC 8945 §5.3.2). Empty if signing fails.
  [[nodiscard]] Bytes sign(Bytes response, std::uint64_t now);
  /// The response of a worker, to be signed (ipc::ForwardKind::kSignedQuery).
  [[nodiscard]] Bytes take_response() noexcept { return std::move(forward_.response); }

 private:
  friend class ReplyPath;

  ipc::Forward forward_;  // without the message, which `parsed_` has
  ParsedRequest parsed_;
  RuntimePtr runtime_;
  ForwardReply reply_;  // empty once ReplyPath has answered, or remembers the request
  std::optional<RecentReplies::Key> recent_key_;
  std::optional<UsedSignatures::Signature> signature_;  // of an update that is being executed
  RecentReplies* remembered_by_ = nullptr;              // has the reply, and waits for the answer
  dns::TsigVerdict verdict_;
  std::optional<dns::TsigSession> session_;
};

}  // namespace pando::manager

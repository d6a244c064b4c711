#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/address.h"
#include "dns/message/edns.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"
#include "manager/commit/runtime.h"

namespace pando::manager {

/// Extended error (RFC 8914) of a reply, with a text for the client.
struct ReplyDetail {
  dns::ExtendedError code{};
  std::string_view text = {};
};
/// Makes a response to `request` without records: ID, opcode, question (the zone section of an
/// UPDATE) and `rcode`. The response has an OPT record if the request had one (RFC 6891 §6.1.1),
/// with `detail` in that OPT. Empty if the request is too short for an answer, or is itself a
/// response.
Bytes make_reply(ByteView request, dns::Rcode rcode, bool authoritative,
                 const std::optional<ReplyDetail>& detail = std::nullopt);

/// A request whose signature has been checked, and the means to answer the client.
class ForwardedRequest {
 public:
  /// Verifies the TSIG record, if the message has one.
  static std::shared_ptr<ForwardedRequest> accept(RuntimePtr runtime, const Endpoint& client,
                                                  Bytes message, std::uint64_t now);

  /// False: answer with error_reply() and go no further (RFC 8945 §5.2).
  [[nodiscard]] bool verified() const noexcept { return verdict_.rcode == dns::Rcode::kNoError; }
  [[nodiscard]] Bytes error_reply(std::uint64_t now);
  /// Reason of a failed verification, for the log.
  [[nodiscard]] dns::Rcode tsig_error() const noexcept { return verdict_.tsig_error; }

  /// Name of the key that signed the request; null for an unsigned request.
  [[nodiscard]] const dns::Name* key() const noexcept;
  [[nodiscard]] const Endpoint& client() const noexcept { return client_; }
  [[nodiscard]] const Bytes& message() const noexcept { return message_; }
  [[nodiscard]] const Runtime& runtime() const noexcept { return *runtime_; }

  /// Signs a finished response if the request was signed. Empty if signing fails.
  [[nodiscard]] Bytes sign(Bytes response, std::uint64_t now);
  [[nodiscard]] Bytes reply(dns::Rcode rcode, bool authoritative, std::uint64_t now,
                            const std::optional<ReplyDetail>& detail = std::nullopt) {
    return sign(make_reply(message_, rcode, authoritative, detail), now);
  }

 private:
  ForwardedRequest(RuntimePtr runtime, const Endpoint& client, Bytes message)
      : runtime_(std::move(runtime)), client_(client), message_(std::move(message)) {}

  RuntimePtr runtime_;
  Endpoint client_;
  Bytes message_;
  dns::TsigVerdict verdict_;
  std::optional<dns::TsigSession> session_;
};

}  // namespace pando::manager

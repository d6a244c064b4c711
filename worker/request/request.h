#pragma once

#include <cstdint>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/net/peer_identity.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"
#include "ipc/worker_messages.h"

namespace pando::worker {

/// Addresses and transport of a request.
struct Client {
  Endpoint remote;
  Endpoint local;
  ipc::Transport transport = ipc::Transport::kUdp;
  /// Over TLS alone, and in place as long as the connection; null over UDP and plain TCP.
  const PeerIdentity* peer = nullptr;

  [[nodiscard]] bool is_udp() const noexcept { return transport == ipc::Transport::kUdp; }
};

/// A parsed request. Views point into the message.
struct Request {
  ByteView message;
  dns::Header header;
  bool has_question = false;
  dns::Question question;
  std::optional<dns::Edns> edns;
  std::optional<dns::TsigRecord> tsig;
  /// IXFR only: serial of the SOA in the authority section (RFC 1995 §3).
  std::optional<dns::Serial> client_serial;

  /// DO bit (RFC 3225): the client asks for signatures and proofs.
  [[nodiscard]] bool dnssec_ok() const noexcept { return edns && edns->dnssec_ok; }
};

/// Result of parsing: continue, drop the request silently, or answer `rcode`.
struct ParseOutcome {
  enum class Kind : std::uint8_t { kGood, kDrop, kError } kind = Kind::kGood;
  dns::Rcode rcode = dns::Rcode::kNoError;
};

/// Reads header, question, OPT and TSIG, and checks the form:
/// - shorter than a header, or a response: dropped (answers to answers would never end);
/// - opcodes other than QUERY, NOTIFY, UPDATE: NOTIMP (RFC 8906 §3.1.5; DSO: RFC 8490 §5.1.1);
/// - QDCOUNT other than 1: FORMERR (RFC 9619 §4; UPDATE: RFC 2136 §3.1.1; NOTIFY: RFC 1996 §3.7),
///   except the query without a question that asks for a server cookie (RFC 7873 §5.4);
/// - a second OPT, or an OPT outside the additional section: FORMERR (RFC 6891 §6.1.1);
/// - EDNS version above 0: BADVERS (RFC 6891 §6.1.3);
/// - a TSIG anywhere but last: FORMERR (RFC 8945 §5.1);
/// - records cut short, or octets after the last: FORMERR.
/// `request` keeps the parts parsed before an error, so that the response can echo them.
ParseOutcome parse_request(ByteView message, Request& request);

}  // namespace pando::worker

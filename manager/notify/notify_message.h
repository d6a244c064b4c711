#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"

namespace pando::manager {

/// A NOTIFY and the data to check its answer (RFC 1996 §3).
class NotifyMessage {
 public:
  /// `soa` is the zone's SOA RDATA, a hint for the secondary (§3.7), left out if 512 octets are too
  /// few. With a key, which must outlive the object, the message is signed. `now` is in seconds
  /// since 1970.
  static Result<NotifyMessage> make(const dns::Name& zone, ByteView soa, dns::Ttl ttl,
                                    std::uint16_t id, const dns::TsigKeyring::PreparedKey* key,
                                    std::uint64_t now);

  [[nodiscard]] const Bytes& octets() const noexcept { return octets_; }
  /// Returns the RCODE if `message` answers this NOTIFY: ID, QR, opcode, question and signature
  /// match (§3.6, RFC 8945 §5.3). Otherwise the error names the mismatch.
  Result<dns::Rcode> read_answer(ByteView message, std::uint64_t now);

 private:
  NotifyMessage(dns::Name zone, std::uint16_t id) : zone_(zone), id_(id) {}
  dns::Name zone_;
  std::uint16_t id_;
  Bytes octets_;
  std::optional<dns::TsigSession> tsig_;
};

}  // namespace pando::manager

#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"

namespace pando::manager {

/// A NOTIFY of ours and what is needed to know its answer (RFC 1996 §3).
class NotifyMessage {
 public:
  /// `soa` is the zone's SOA RDATA, a hint for the secondary (§3.7); it is left out when it does
  /// not fit 512 octets. Signed when there is a key, which must outlive the object. `now`: seconds
  /// since 1970.
  static Result<NotifyMessage> make(const dns::Name& zone, ByteView soa, dns::Ttl ttl,
                                    std::uint16_t id, const dns::TsigKeyring::PreparedKey* key,
                                    std::uint64_t now);

  [[nodiscard]] const Bytes& octets() const noexcept { return octets_; }
  /// The RCODE when `message` answers this NOTIFY: ID, QR, opcode, question and signature fit
  /// (§3.6, RFC 8945 §5.3); else why it does not.
  Result<dns::Rcode> read_answer(ByteView message, std::uint64_t now);

 private:
  NotifyMessage(dns::Name zone, std::uint16_t id) : zone_(zone), id_(id) {}
  dns::Name zone_;
  std::uint16_t id_;
  Bytes octets_;
  std::optional<dns::TsigSession> tsig_;
};

}  // namespace pando::manager

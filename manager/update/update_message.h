#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dns/message/edns.h"
#include "dns/message/message.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::manager {

/// One record of a prerequisite or update section. What it means depends on its class
/// (RFC 2136 §2.4, §2.5): IN, ANY or NONE.
struct UpdateRecord {
  dns::Name owner;
  dns::RRType type{};
  dns::RRClass rr_class{};
  std::uint32_t ttl = 0;
  Bytes rdata;  ///< uncompressed and checked; empty for class ANY and meta types
  bool had_rdata = false;
};

/// An UPDATE message taken apart (RFC 2136 §2). The additional section is of no use to us: glue
/// that is wanted comes as updates.
struct UpdateMessage {
  std::uint16_t id = 0;
  dns::Question zone;
  std::vector<UpdateRecord> prerequisites;
  std::vector<UpdateRecord> updates;
};

/// Why a message gets no further: the RCODE to answer with, and a reason for the log and, where
/// there is a code for it (RFC 8914), for the client.
struct Refusal {
  dns::Rcode rcode = dns::Rcode::kNoError;
  std::string reason;
  std::optional<dns::ExtendedError> code = std::nullopt;
};

/// Decodes and checks everything that needs no zone: zone section (§3.1.1), RDATA, owners in the
/// zone (NOTZONE), the forms of prerequisites (§3.2.4) and of updates (§3.4.1, "prescan").
Result<UpdateMessage, Refusal> parse_update(ByteView message);

}  // namespace pando::manager

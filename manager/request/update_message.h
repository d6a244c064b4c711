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
#include "manager/request/parsed_request.h"

namespace pando::manager {

/// One record of a prerequisite or update section. The class (IN, ANY or NONE) decides the meaning
/// (RFC 2136 §2.4, §2.5).
struct UpdateRecord {
  dns::Name owner;
  dns::RRType type{};
  dns::RRClass rr_class{};
  std::uint32_t ttl = 0;
  Bytes rdata;  ///< uncompressed and checked; empty for class ANY and meta types
  bool had_rdata = false;
};

/// A parsed UPDATE message (RFC 2136 §2). The additional section is ignored: wanted glue comes as
/// updates.
struct UpdateMessage {
  dns::Question zone;
  std::vector<UpdateRecord> prerequisites;
  std::vector<UpdateRecord> updates;
};

/// A refused message: the RCODE of the answer and a reason for the log. With a code (RFC 8914) the
/// reason goes to the client, too.
struct Refusal {
  dns::Rcode rcode = dns::Rcode::kNoError;
  std::string reason;
  std::optional<dns::ExtendedError> code = std::nullopt;
};

/// Parses the sections after the zone section and makes all checks that do not depend on the
/// zone's data. These are: zone section (§3.1.1), RDATA, owners in the zone (NOTZONE), forms of
/// prerequisites (§3.2.4) and of updates (§3.4.1, "prescan").
Result<UpdateMessage, Refusal> parse_update(const ParsedRequest& request);

}  // namespace pando::manager

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::http {

/// One element of `rrsets`: an RRset that is replaced or deleted, or a record of it that is added
/// (EXTEND) or removed (PRUNE).
struct RRsetChange {
  enum class Kind : std::uint8_t { kReplace, kDelete, kExtend, kPrune };
  Kind kind{};
  dns::Name owner{};
  dns::RRType type{};
  std::optional<std::uint32_t> ttl{};  ///< seconds; of the whole set
  std::vector<Bytes> rdatas{};         ///< wire format; none in a kReplace: as kDelete
  bool operator==(const RRsetChange&) const = default;
};

/// RRsets and records of one request. It is the manager's limit for a transaction, too.
inline constexpr std::size_t kMaxChanges = 20'000;

/// Reads the content of a PATCH of `zone` by the rules of PowerDNS. Names, also in data, have a
/// final dot; an RRset has at most one REPLACE and one DELETE. kCorrupt: no JSON, or JSON that is
/// nested too deeply. kInvalid: a broken rule, or a comment or disabled record, which no zone has a
/// place for. kFull: more than kMaxChanges.
Result<std::vector<RRsetChange>> read_patch(std::string_view body, dns::NameView zone);
/// The same of an array of RRsets alone.
Result<std::vector<RRsetChange>> read_rrsets(const nlohmann::json& rrsets, dns::NameView zone);

}  // namespace pando::http

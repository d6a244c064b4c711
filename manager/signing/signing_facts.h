#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "manager/io/store_file.h"

/// What the world has seen of a zone's signing, and since when: the file `facts` beside the zone's
/// keys. The zone itself tells what is published; caches and the parent follow later, and the waits
/// for them begin with these times.
namespace pando::manager {

/// Times in seconds since 1970; 0: it has not happened, or nobody knows. A lost time makes a wait
/// longer, never shorter.
struct SigningFacts {
  std::uint64_t signed_since = 0;  ///< all of the zone is served signed
  std::uint64_t max_ttl = 0;       ///< seconds: the longest TTL of the zone's source then
  std::uint64_t cds_since = 0;     ///< CDS and CDNSKEY ask the parent for DS records
  std::uint64_t ds_seen = 0;       ///< the operator saw the DS records at the parent
  std::uint64_t unsign_since = 0;  ///< the operator wants the zone unsigned
  std::uint64_t ds_gone = 0;       ///< the operator saw no DS records at the parent any more
  std::uint64_t unsigned_since = 0;  ///< the zone is served unsigned again

  /// Whether the way back is done.
  [[nodiscard]] bool is_unsigned() const noexcept {
    return unsign_since != 0 && unsigned_since != 0;
  }
  bool operator==(const SigningFacts&) const = default;
};

/// The file's text: a line for each time that is known.
[[nodiscard]] std::string text_of(const SigningFacts& facts);
/// kCorrupt, with the line: a line that text_of() does not write. Words of later versions, which
/// begin with `x-`, are left out.
[[nodiscard]] Result<SigningFacts> parse_signing_facts(std::string_view text, std::string_view path);

/// Reads the file in a folder of keys. Without it nothing has happened. kIo; kCorrupt.
[[nodiscard]] Result<SigningFacts> read_signing_facts(Files& files, const std::string& folder);
/// Replaces the file; facts without a time have none. After a crash the file has the facts of
/// before or these. kIo.
Status write_signing_facts(Files& files, const std::string& folder, const SigningFacts& facts);

}  // namespace pando::manager

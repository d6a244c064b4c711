#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "manager/io/store_file.h"

/// What the world has seen of a zone's signing, and since when: the file `facts` beside the zone's
/// keys. The zone itself tells what is published; caches and the parent follow later, and the waits
/// for them begin with these times.
namespace pando::manager {

/// A key of a zone: two with the same algorithm and tag are in no folder.
struct KeyId {
  std::uint8_t algorithm = 0;
  std::uint16_t tag = 0;
  auto operator<=>(const KeyId&) const = default;
};

/// The steps by which keys follow others (RFC 6781 §4.1, RFC 7583 §3). Keys of the same algorithm
/// begin with kPublish, and have no kWithdraw.
enum class RollStep : std::uint8_t {
  kNone,      ///< no keys follow others
  kSign,      ///< new keys of another algorithm sign too, and are not published yet
  kPublish,   ///< the new keys are published; those that sign keys do so
  kSwap,      ///< the new keys sign, and the parent is asked for their DS records alone
  kWithdraw,  ///< the old keys of another algorithm are published no more; they still sign
  kRemove,    ///< the old keys are gone
};

/// Keys that follow others, with times as in SigningFacts.
struct KeyRoll {
  RollStep step = RollStep::kNone;
  std::vector<KeyId> old_keys{}, new_keys{};
  std::uint64_t since = 0;            ///< the zone shows all of the step
  std::uint64_t signatures_gone = 0;  ///< no set has signatures of keys that sign it no more
  std::uint64_t ds_seen = 0;  ///< the operator saw the new keys' DS records alone at the parent
  bool is_agreed = false;     ///< the operator agreed to the next step
  bool is_held = false;       ///< the operator wants no further step
  bool operator==(const KeyRoll&) const = default;
};

/// Times in seconds since 1970; 0: it has not happened, or nobody knows. A lost time makes a wait
/// longer, never shorter.
struct SigningFacts {
  std::uint64_t signed_since = 0;  ///< all of the zone is served signed
  /// Seconds: the longest TTL of the zone's source that may be in caches.
  std::uint64_t max_ttl = 0;
  std::uint64_t lower_ttl = 0;        ///< seconds: the longest one since `lower_ttl_since`
  std::uint64_t lower_ttl_since = 0;  ///< all TTLs are lower than max_ttl
  std::uint64_t cds_since = 0;     ///< CDS and CDNSKEY ask the parent for DS records
  std::uint64_t ds_seen = 0;       ///< the operator saw the DS records at the parent
  std::uint64_t unsign_since = 0;  ///< the operator wants the zone unsigned
  std::uint64_t ds_gone = 0;       ///< the operator saw no DS records at the parent any more
  std::uint64_t unsigned_since = 0;  ///< the zone is served unsigned again
  KeyRoll roll{};

  /// Whether the way back is done.
  [[nodiscard]] bool is_unsigned() const noexcept {
    return unsign_since != 0 && unsigned_since != 0;
  }
  bool operator==(const SigningFacts&) const = default;
};

/// The facts of a zone that is signed anew: nothing was seen of it. A key roll stays at its step, and
/// its waits begin anew, because the parent may have a DS record of the old keys. If the zone was
/// unsigned, nobody needs these any more.
[[nodiscard]] SigningFacts facts_of_new_start(const SigningFacts& old);

/// Notes the longest TTL of the zone's records at a time. A lower one than before counts when caches
/// have forgotten the records of before, which secondaries have for `propagation` seconds.
void note_longest_ttl(SigningFacts& facts, std::uint64_t ttl, std::uint64_t propagation,
                      std::uint64_t now);

[[nodiscard]] std::string_view to_text(RollStep step) noexcept;

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

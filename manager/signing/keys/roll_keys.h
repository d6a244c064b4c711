#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "manager/io/store_file.h"
#include "manager/signing/keys/roll_step.h"
#include "manager/signing/keys/zone_keys.h"

/// The files of keys that follow others. For pool threads.
namespace pando::manager {

/// The keys of a zone that others are to follow.
enum class RolledKeys : std::uint8_t { kAll, kKsk, kZsk };

struct RollOrder {
  RolledKeys keys = RolledKeys::kAll;
  KeyLayout layout;                  ///< of the new keys; for kAll
  std::vector<std::uint16_t> taken;  ///< tags that no new key may have
};

[[nodiscard]] std::vector<FolderKey> folder_keys(const std::vector<dns::SigningKey>& keys);

/// Makes new keys and notes that they follow the old ones. The note comes first: keys that nobody
/// noted would be keys of the zone like the others. kExists: others follow already; kInvalid: the
/// zone has no such keys, or the policy wants another algorithm, which all keys must follow.
Status begin_key_roll(Files& files, const std::string& journal, dns::NameView zone,
                      const RollOrder& order);

/// The old keys are needed no more: their files get names that are not read, and the roll is
/// forgotten. `now`: seconds since 1970. Files that were put away so kKeptDays ago are deleted.
Status end_key_roll(Files& files, const std::string& journal, dns::NameView zone,
                    std::uint64_t now);
inline constexpr std::uint64_t kKeptDays = 90;

/// Takes a key that was put away back among the zone's keys, beside which it is published and signs
/// at once, also if it is of another algorithm: its DS record may be the only one that the parent
/// has. kNotFound: there is none with this tag;
/// kExists: a key with its algorithm and tag is there.
Status restore_zone_key(Files& files, const std::string& journal, dns::NameView zone,
                        std::uint16_t tag);

}  // namespace pando::manager

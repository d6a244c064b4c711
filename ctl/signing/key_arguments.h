#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "dns/dnssec/key_file.h"

namespace pando::ctl {

/// Key files of a command line, by the roles that the caller gives them.
struct KeyArguments {
  std::vector<std::string> keys;  ///< as the file tells, or else keys that sign everything
  std::vector<std::string> ksks;  ///< with the SEP flag
  std::vector<std::string> zsks;  ///< without it
};

struct NamedKey {
  std::string path;
  dns::ZoneKey read;
};

/// Reads all key files. The first error; also for a role that contradicts a file's record.
Result<std::vector<NamedKey>> read_keys(const KeyArguments& files);

/// The one zone of all keys whose files name one, and of `given` (empty: none). kInvalid for two
/// zones, or none.
Result<dns::Name> zone_of(const std::vector<NamedKey>& keys, const std::string& given);

}  // namespace pando::ctl

#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "config/settings/settings.h"
#include "dns/name.h"
#include "manager/io/store_file.h"

/// The file `signed-zones.list` beside the journal: the zones for which this server has made or
/// taken keys. For a zone of the list no key is made, and a configuration without its policy is
/// refused: its parent may have a DS record of the keys. Backups without keys have the list.
namespace pando::manager {

/// Folded names (dns/folded_key.h).
using SignedZoneNames = std::set<std::string>;

/// Empty without the file. kIo; kCorrupt: a line is no name.
Result<SignedZoneNames> read_signed_zones(Files& files, const std::string& journal);
Status write_signed_zones(Files& files, const std::string& journal, const SignedZoneNames& zones);

/// kInvalid: a zone of the list would become one that is not signed here, by an edit of the
/// configuration.
Status check_signed_zones(Files& files, const config::Settings& settings);

}  // namespace pando::manager

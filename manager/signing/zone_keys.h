#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "manager/dnssec/zone_signer.h"
#include "manager/io/store_file.h"

/// The keys of the zones that this server signs, in folders `dnssec/ZONE` beside the journal: a
/// file for each key, in the form of key_file_text() (dns/dnssec/key_file.h). For pool threads.
namespace pando::manager {

/// A zone whose keys are wanted.
struct WantedKeys {
  dns::Name zone;
  std::uint8_t algorithm = 13;  ///< of a new key
  ZoneSigner::Options signing;
  /// The zone is served with signatures. Then nobody but its keys' owner can make more.
  bool is_signed = false;
};

/// The folder of a zone's keys. kInvalid: the zone's name is too long for that of a folder.
Result<std::string> key_folder(const std::string& journal, dns::NameView zone);

/// Reads the keys of zones, in the same order, and makes one for each zone that never had any: file
/// and folder are durable before the result is returned, and so is the list of signed zones
/// (signed_zone_list.h). An error names the file and the cause; no other key is made then.
/// kNotFound: the zone had keys, and they are not there. Others: see dns::read_key_file().
std::vector<Result<ZoneSignerPtr>> open_zone_keys(Files& files, const std::string& journal,
                                                  const std::vector<WantedKeys>& wanted);

}  // namespace pando::manager

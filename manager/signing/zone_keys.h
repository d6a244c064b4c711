#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "dns/name.h"
#include "manager/io/store_file.h"
#include "manager/signing/signing_facts.h"
#include "zone/dnssec/set_signer.h"

/// The keys of the zones that this server signs, in folders `dnssec/ZONE` beside the journal: a
/// file for each key, in the form of key_file_text() (dns/dnssec/key_file.h). For pool threads.
namespace pando::manager {

/// A zone whose keys are wanted.
struct WantedKeys {
  dns::Name zone;
  std::uint8_t algorithm = 13;  ///< of a new key
  /// The zone's data have signatures. Then nobody but its keys' owner can make more.
  bool is_signed = false;
  bool may_make = true;  ///< a key, if it never had one (config::DnssecPolicy::make_keys)
  /// The zone's data are known. Before, nobody knows whether they are signed, and no key is made.
  bool is_known = true;
};

/// What a zone's folder has.
struct OpenedKeys {
  /// None: the zone is served unsigned again (SigningFacts::unsigned_since), and needs no keys.
  std::optional<zone::SigningKeys> keys;
  SigningFacts facts;
  /// There are no keys, and one may be made as soon as the zone's data are known.
  bool awaits_source = false;
};

/// The folder of a zone's keys. kInvalid: the zone's name is too long for that of a folder.
Result<std::string> key_folder(const std::string& journal, dns::NameView zone);

/// The keys in a zone's folder; none without a folder. Errors: see dns::read_key_file().
Result<std::vector<dns::SigningKey>> read_zone_keys(Files& files, const std::string& journal,
                                                    dns::NameView zone);

/// Reads the keys of zones, in the same order, and makes one for each zone that never had any: file
/// and folder are durable before the result is returned, and so is the list of signed zones
/// (signed_zone_list.h). An error names the file and the cause; no other key is made then.
/// kNotFound: the zone had keys, and they are not there. Others: see dns::read_key_file().
std::vector<Result<OpenedKeys>> open_zone_keys(Files& files, const std::string& journal,
                                               const std::vector<WantedKeys>& wanted);

/// Adds a key of the zone to its folder, durably, from a file with a key of ours in it. kExists: the
/// folder has this key, or another one with its algorithm and tag. kInvalid: the key is of another
/// zone. Others: see dns::parse_key_file().
Result<dns::SigningKey> import_zone_key(Files& files, const std::string& journal, dns::NameView zone,
                                        const Fd& file);

/// Changes the facts of a zone by `edit`, durably. A zone that is unsigned by them leaves the list
/// of signed zones; its keys stay.
Result<SigningFacts> edit_signing_facts(Files& files, const std::string& journal, dns::NameView zone,
                                        const std::function<void(SigningFacts& facts)>& edit);
/// Forgets the facts of a zone, if there are any.
Status clear_signing_facts(Files& files, const std::string& journal, dns::NameView zone);

}  // namespace pando::manager

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
#include "manager/signing/keys/signing_facts.h"
#include "zone/dnssec/set_signer.h"

/// The keys of the zones that this server signs, in folders `dnssec/ZONE` beside the journal: a
/// file for each key, in the form of key_file_text() (dns/dnssec/key_file.h). For pool threads.
namespace pando::manager {

/// The keys that a policy wants a zone to have.
struct KeyLayout {
  std::uint8_t algorithm = 13;
  bool is_split = false;  ///< a KSK and a ZSK, and not one CSK
  bool operator==(const KeyLayout&) const = default;
};

/// A zone whose keys are wanted.
struct WantedKeys {
  dns::Name zone;
  KeyLayout layout;  ///< of new keys
  /// The zone's data have signatures. Then nobody but its keys' owner can make more.
  bool is_signed = false;
  bool may_make = true;  ///< keys, if it never had any (config::DnssecPolicy::make_keys)
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

/// A file in the folder of a zone's keys.
struct KeyFile {
  std::string name;
  dns::SigningKey key;
};
[[nodiscard]] inline KeyId id_of(const dns::SigningKey& key) {
  return {key.algorithm(), key.tag()};
}
/// The key files of a folder, by name. kNotFound: no folder. Others: see dns::read_key_file().
Result<std::vector<KeyFile>> read_key_files(Files& files, const std::string& folder,
                                            dns::NameView zone);
[[nodiscard]] std::vector<dns::SigningKey> keys_in(const std::vector<KeyFile>& files);
/// New keys of a layout, in memory. None has the tag of another one, with or without REVOKE, nor one
/// of `taken`. kUnsupported: the algorithm.
Result<std::vector<dns::SigningKey>> make_keys(const KeyLayout& layout,
                                               const std::vector<std::uint16_t>& taken);
/// Writes the file of a new key. It has its name when it is whole, and folder and file are durable.
Status write_zone_key(Files& files, const std::string& folder, dns::NameView zone,
                      const dns::SigningKey& key);

/// Reads the keys of zones, in the same order, and makes some for each zone that never had any: files
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

#include "manager/signing/zone_keys.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "base/secret.h"
#include "config/settings/settings.h"
#include "dns/dnssec/key_file.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/signing/signed_zone_list.h"

namespace pando::manager {

namespace {

constexpr std::string_view kKeySuffix = ".pem";
constexpr std::string_view kBindSuffix = ".private";  // its record is in a file beside it

/// Names of the key files in a folder, sorted. kNotFound: no folder.
Result<std::vector<std::string>> key_names(Files& files, const std::string& folder) {
  auto names = files.list(folder);
  if (!names) return names;
  std::erase_if(*names, [](const std::string& name) {
    return !name.ends_with(kKeySuffix) && !name.ends_with(kBindSuffix);
  });
  return names;
}

Result<dns::SigningKey> read_key(const std::string& path, dns::NameView zone) {
  auto read = dns::read_key_file(path);
  if (!read) return pass(read);
  if (read->record && !(read->record->zone == zone))
    return fail(Errc::kInvalid, "{}: the key is of zone {}", path,
                dns::to_text(read->record->zone));
  return std::move(read->key);
}

/// All keys of the folder; one that cannot be used is an error, as the others may not be enough.
Result<std::vector<dns::SigningKey>> read_keys(Files& files, const std::string& folder,
                                               dns::NameView zone) {
  auto names = key_names(files, folder);
  if (!names) return pass(names);
  std::vector<dns::SigningKey> keys;
  for (const std::string& name : *names) {
    auto key = read_key(folder + "/" + name, zone);
    if (!key) return pass(key);
    keys.push_back(std::move(*key));
  }
  return keys;
}

/// Makes the zone's first key. The file's name appears when the key is whole and on disk.
Result<dns::SigningKey> make_key(Files& files, const std::string& folder,
                                 const WantedKeys& wanted) {
  const WipeFreed wipe_freed;
  auto key = dns::SigningKey::generate(wanted.algorithm, dns::kUsualKeyFlags);
  if (!key) return key;
  auto text = dns::key_file_text(*key, wanted.zone);
  if (!text) return pass(text);
  if (auto made = files.make_directory(folder); !made) return pass(made);
  const std::string path =
      fmt::format("{}/{:03}-{:05}{}", folder, key->algorithm(), key->tag(), kKeySuffix);
  const std::string partial = path + ".partial";
  {
    auto file = files.open(partial, OpenMode::kSecret);
    if (!file) return pass(file);
    auto written = (*file)->write_at(0, bytes_of_text(*text));
    if (written) written = (*file)->sync();
    if (!written) return pass(written);
  }
  crash_point("key-written");
  if (auto named = files.rename(partial, path); !named) return pass(named);
  if (auto synced = files.sync_directory(folder); !synced) return pass(synced);
  crash_point("key-made");
  log::info("key_made", "zone", dns::to_text(wanted.zone), "algorithm", key->algorithm(), "tag",
            key->tag());
  return key;
}

Result<ZoneSignerPtr> signer_of(const WantedKeys& wanted, std::vector<dns::SigningKey> keys) {
  auto signing = zone::SigningKeys::make(std::move(keys));
  if (!signing) return pass(signing);
  return std::make_shared<const ZoneSigner>(wanted.zone, std::move(*signing), wanted.signing);
}

/// One call of open_zone_keys().
class KeyOpening {
 public:
  KeyOpening(Files& files, const std::string& journal)
      : files_(files), journal_(journal), listed_(read_signed_zones(files, journal)) {}

  Result<ZoneSignerPtr> open(const WantedKeys& wanted) {
    const WipeFreed wipe_freed;
    if (!listed_) return pass(listed_);
    auto folder = key_folder(journal_, wanted.zone);
    if (!folder) return pass(folder);
    auto keys = read_keys(files_, *folder, wanted.zone);
    if (!keys && keys.error().code != Errc::kNotFound) return pass(keys);
    if (!keys || keys->empty()) {
      if (auto may = check_may_make(wanted, *folder); !may) return pass(may);
      auto made = make_key(files_, *folder, wanted);
      if (!made) return pass(made);
      keys = std::vector<dns::SigningKey>();
      keys->push_back(std::move(*made));
    }
    is_changed_ = listed_->insert(dns::folded_key(wanted.zone)).second || is_changed_;
    return signer_of(wanted, std::move(*keys));
  }
  /// Adds new zones to the list, before anything is signed.
  Status end() { return is_changed_ ? write_signed_zones(files_, journal_, *listed_) : Status(); }

 private:
  [[nodiscard]] Status check_may_make(const WantedKeys& wanted, const std::string& folder) const {
    if (listed_->contains(dns::folded_key(wanted.zone)))
      return fail(Errc::kNotFound, "{}: the zone's keys are not there; put them back", folder);
    if (wanted.is_signed)
      return fail(Errc::kNotFound,
                  "{}: the zone is signed by keys that are not there; put their files there",
                  folder);
    return {};
  }

  Files& files_;
  const std::string& journal_;
  Result<SignedZoneNames> listed_;
  bool is_changed_ = false;
};

}  // namespace

Result<std::string> key_folder(const std::string& journal, dns::NameView zone) {
  auto name = config::zone_file_name(zone);
  if (!name) return fail(Errc::kInvalid, "the zone's name is too long for a folder of its keys");
  constexpr std::string_view kSuffix = ".zone";
  if (name->size() > kSuffix.size()) name->resize(name->size() - kSuffix.size());
  return fmt::format("{}/dnssec/{}", journal, *name);
}

std::vector<Result<ZoneSignerPtr>> open_zone_keys(Files& files, const std::string& journal,
                                                  const std::vector<WantedKeys>& wanted) {
  KeyOpening opening(files, journal);
  std::vector<Result<ZoneSignerPtr>> opened;
  opened.reserve(wanted.size());
  for (const WantedKeys& one : wanted) opened.push_back(opening.open(one));
  if (const auto listed = opening.end(); !listed)
    for (Result<ZoneSignerPtr>& one : opened)
      if (one) one = pass(listed);
  return opened;
}

}  // namespace pando::manager

#include "manager/signing/zone_keys.h"

#include <unistd.h>

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
constexpr std::string_view kPartialSuffix = ".pem.partial";  // of write_key()

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

/// A key that a kill kept from its name has signed nothing, and is made or given anew. For the one
/// writer of the folder.
void remove_partial_keys(Files& files, const std::string& folder) {
  const auto names = files.list(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(kPartialSuffix)) continue;
    if (const auto removed = files.remove(folder + "/" + name); !removed)
      log::warning("key_not_removed", "file", folder + "/" + name, "reason", removed.error().text);
  }
}

/// The file's name appears when the key is whole and on disk.
Status write_key(Files& files, const std::string& folder, dns::NameView zone,
                 const dns::SigningKey& key) {
  const WipeFreed wipe_freed;
  auto text = dns::key_file_text(key, zone);
  if (!text) return pass(text);
  if (auto made = files.make_directory(folder); !made) return made;
  const std::string path =
      fmt::format("{}/{:03}-{:05}{}", folder, key.algorithm(), key.tag(), kKeySuffix);
  const std::string partial = path + ".partial";
  {
    auto file = files.open(partial, OpenMode::kSecret);
    if (!file) return pass(file);
    auto written = (*file)->write_at(0, bytes_of_text(*text));
    if (written) written = (*file)->sync();
    if (!written) return written;
  }
  crash_point("key-written");
  if (auto named = files.rename(partial, path); !named) return named;
  auto synced = files.sync_directory(folder);
  if (synced) crash_point("key-made");
  return synced;
}

/// Makes the zone's first key.
Result<dns::SigningKey> make_key(Files& files, const std::string& folder,
                                 const WantedKeys& wanted) {
  const WipeFreed wipe_freed;
  auto key = dns::SigningKey::generate(wanted.algorithm, dns::kUsualKeyFlags);
  if (!key) return key;
  if (auto written = write_key(files, folder, wanted.zone, *key); !written) return pass(written);
  log::info("key_made", "zone", dns::to_text(wanted.zone), "algorithm", key->algorithm(), "tag",
            key->tag());
  return key;
}

/// The text of a key that another process has opened; by position, as the descriptor is shared.
Result<std::string> read_key_text(const Fd& file) {
  std::string text(dns::kMaxKeyFileBytes, '\0');
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  if (bytes < 0) return fail_errno("pread");
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

/// One call of open_zone_keys().
class KeyOpening {
 public:
  KeyOpening(Files& files, const std::string& journal)
      : files_(files), journal_(journal), listed_(read_signed_zones(files, journal)) {}

  Result<OpenedKeys> open(const WantedKeys& wanted) {
    const WipeFreed wipe_freed;
    if (!listed_) return pass(listed_);
    auto folder = key_folder(journal_, wanted.zone);
    if (!folder) return pass(folder);
    auto facts = read_signing_facts(files_, *folder);
    if (!facts) return pass(facts);
    if (facts->is_unsigned()) {
      // A crash may have come between the writing of the facts and that of the list.
      is_changed_ = listed_->erase(dns::folded_key(wanted.zone)) != 0 || is_changed_;
      return OpenedKeys{std::nullopt, *facts, false};
    }
    remove_partial_keys(files_, *folder);
    auto keys = read_keys(files_, *folder, wanted.zone);
    if (!keys && keys.error().code != Errc::kNotFound) return pass(keys);
    if (!keys || keys->empty()) {
      if (auto may = check_may_make(wanted, *folder); !may) return pass(may);
      if (!wanted.is_known) return OpenedKeys{std::nullopt, *facts, true};
      auto made = make_key(files_, *folder, wanted);
      if (!made) return pass(made);
      keys = std::vector<dns::SigningKey>();
      keys->push_back(std::move(*made));
    }
    auto signing = zone::SigningKeys::make(std::move(*keys));
    if (!signing) return pass(signing);
    is_changed_ = listed_->insert(dns::folded_key(wanted.zone)).second || is_changed_;
    return OpenedKeys{std::move(*signing), *facts, false};
  }
  /// Adds new zones to the list, before anything is signed.
  Status end() { return is_changed_ ? write_signed_zones(files_, journal_, *listed_) : Status(); }

 private:
  [[nodiscard]] Status check_may_make(const WantedKeys& wanted, const std::string& folder) const {
    if (listed_->contains(dns::folded_key(wanted.zone)))
      return fail(Errc::kNotFound, "{}: the zone's keys are not there; put them back", folder);
    if (wanted.is_signed)
      return fail(Errc::kNotFound,
                  "{}: the zone is signed by keys that are not there: 'pandoctl dnssec import' "
                  "gives them; a zone without DNSKEY and RRSIG records gets a new one",
                  folder);
    if (!wanted.may_make)
      return fail(Errc::kNotFound,
                  "{}: it has no keys, and its policy makes none ('make-keys'): give them by "
                  "'pandoctl dnssec import'",
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

Result<std::vector<dns::SigningKey>> read_zone_keys(Files& files, const std::string& journal,
                                                    dns::NameView zone) {
  const WipeFreed wipe_freed;
  const auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  auto keys = read_keys(files, *folder, zone);
  if (!keys && keys.error().code == Errc::kNotFound) return std::vector<dns::SigningKey>();
  return keys;
}

std::vector<Result<OpenedKeys>> open_zone_keys(Files& files, const std::string& journal,
                                               const std::vector<WantedKeys>& wanted) {
  KeyOpening opening(files, journal);
  std::vector<Result<OpenedKeys>> opened;
  opened.reserve(wanted.size());
  for (const WantedKeys& one : wanted) opened.push_back(opening.open(one));
  if (const auto listed = opening.end(); !listed)
    for (Result<OpenedKeys>& one : opened)
      if (one) one = pass(listed);
  return opened;
}

Result<dns::SigningKey> import_zone_key(Files& files, const std::string& journal, dns::NameView zone,
                                        const Fd& file) {
  const WipeFreed wipe_freed;
  auto text = read_key_text(file);
  if (!text) return pass(text);
  auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  auto parsed = dns::parse_key_file({*text, "the key"}, std::nullopt);
  if (!parsed) return pass(parsed);
  if (parsed->record && !(parsed->record->zone == zone))
    return fail(Errc::kInvalid, "the key is of zone {}", dns::to_text(parsed->record->zone));
  const dns::SigningKey& key = parsed->key;
  const auto present = read_zone_keys(files, journal, zone);
  if (!present) return pass(present);
  const auto has_tag_of = [&key](const dns::SigningKey& other) {
    return other.algorithm() == key.algorithm() && other.tag() == key.tag();
  };
  if (std::ranges::any_of(*present, has_tag_of))
    return fail(Errc::kExists, "{}: a key of algorithm {} with the tag {} is there", *folder,
                key.algorithm(), key.tag());
  if (auto written = write_key(files, *folder, zone, key); !written) return pass(written);
  log::info("key_imported", "zone", dns::to_text(zone), "algorithm", key.algorithm(), "tag",
            key.tag());
  return std::move(parsed->key);
}

Result<SigningFacts> edit_signing_facts(Files& files, const std::string& journal, dns::NameView zone,
                                        const std::function<void(SigningFacts& facts)>& edit) {
  auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  auto facts = read_signing_facts(files, *folder);
  if (!facts) return facts;
  const SigningFacts before = *facts;
  edit(*facts);
  if (!(*facts == before))
    if (auto written = write_signing_facts(files, *folder, *facts); !written) return pass(written);
  if (!facts->is_unsigned()) return facts;
  auto listed = read_signed_zones(files, journal);
  if (!listed) return pass(listed);
  if (listed->erase(dns::folded_key(zone)) == 0) return facts;
  if (auto written = write_signed_zones(files, journal, *listed); !written) return pass(written);
  return facts;
}

Status clear_signing_facts(Files& files, const std::string& journal, dns::NameView zone) {
  const auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  const auto facts = read_signing_facts(files, *folder);
  if (!facts) return pass(facts);
  return *facts == SigningFacts() ? Status() : write_signing_facts(files, *folder, {});
}

}  // namespace pando::manager

#include "manager/signing/keys/zone_keys.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "base/secret.h"
#include "config/settings/settings.h"
#include "dns/dnssec/key_file.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/signing/keys/signed_zone_list.h"

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
  auto read = read_key_files(files, folder, zone);
  if (!read) return pass(read);
  return keys_in(*read);
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

/// Makes the zone's first keys.
Result<std::vector<dns::SigningKey>> make_first_keys(Files& files, const std::string& folder,
                                                     const WantedKeys& wanted) {
  const WipeFreed wipe_freed;
  auto keys = make_keys(wanted.layout, {});
  if (!keys) return keys;
  for (const dns::SigningKey& key : *keys)
    if (auto written = write_zone_key(files, folder, wanted.zone, key); !written)
      return pass(written);
  return keys;
}

/// The text of a key that another process has opened; by position, as the descriptor is shared.
Result<std::string> read_key_text(const Fd& file) {
  std::string text(dns::kMaxKeyFileBytes, '\0');
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  if (bytes < 0) return fail_errno("pread");
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

/// A crash came before all files of a roll's new keys. The others have signed nothing yet.
void forget_roll(Files& files, const std::string& folder, std::vector<KeyFile>& keys,
                 SigningFacts& facts) {
  const std::vector<KeyId> new_keys = std::exchange(facts.roll, {}).new_keys;
  std::erase_if(keys, [&](const KeyFile& file) {
    if (std::ranges::find(new_keys, id_of(file.key)) == new_keys.end()) return false;
    if (const auto gone = files.remove(folder + "/" + file.name); !gone)
      log::warning("key_not_removed", "file", folder + "/" + file.name, "reason",
                   gone.error().text);
    return true;
  });
  if (const auto written = write_signing_facts(files, folder, facts); !written)
    log::error("signing_facts_not_written", "zone", folder, "reason", written.error().text);
}

/// The keys of a roll have to be there: the old ones until nothing needs them, and new ones unless
/// the roll has just begun. Then it is forgotten.
Status check_roll_keys(Files& files, const std::string& folder, std::vector<KeyFile>& keys,
                       SigningFacts& facts) {
  if (facts.roll.step == RollStep::kNone) return {};
  const auto missing = [&keys](const std::vector<KeyId>& wanted) {
    return std::ranges::find_if(wanted, [&keys](const KeyId& id) {
      return std::ranges::none_of(keys, [&id](const auto& file) { return id_of(file.key) == id; });
    });
  };
  const KeyRoll& roll = facts.roll;
  const auto new_key = missing(roll.new_keys);
  const bool has_begun = roll.since != 0 || roll.step > RollStep::kPublish;
  if (new_key != roll.new_keys.end() && !has_begun) {
    forget_roll(files, folder, keys, facts);
    return {};
  }
  const auto old_key = missing(roll.old_keys);
  const bool needs_old = roll.step != RollStep::kRemove && old_key != roll.old_keys.end();
  if (new_key == roll.new_keys.end() && !needs_old) return {};
  const KeyId& id = needs_old ? *old_key : *new_key;
  return fail(Errc::kNotFound, "{}: the key {} of algorithm {} is not there; put it back", folder,
              id.tag, id.algorithm);
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
    auto read = read_key_files(files_, *folder, wanted.zone);
    if (!read && read.error().code != Errc::kNotFound) return pass(read);
    if (!read) read = std::vector<KeyFile>();
    if (auto checked = check_roll_keys(files_, *folder, *read, *facts); !checked)
      return pass(checked);
    std::vector<dns::SigningKey> keys = keys_in(*read);
    if (keys.empty()) {
      if (auto may = check_may_make(wanted, *folder); !may) return pass(may);
      if (!wanted.is_known) return OpenedKeys{std::nullopt, *facts, true};
      auto made = make_first_keys(files_, *folder, wanted);
      if (!made) return pass(made);
      keys = std::move(*made);
    }
    auto signing = zone::SigningKeys::make(std::move(keys));
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

std::vector<dns::SigningKey> keys_in(const std::vector<KeyFile>& files) {
  std::vector<dns::SigningKey> keys;
  for (const KeyFile& file : files) keys.push_back(file.key);
  return keys;
}

Result<std::vector<KeyFile>> read_key_files(Files& files, const std::string& folder,
                                            dns::NameView zone) {
  auto names = key_names(files, folder);
  if (!names) return pass(names);
  std::vector<KeyFile> read;
  for (const std::string& name : *names) {
    auto key = read_key(folder + "/" + name, zone);
    if (!key) return pass(key);
    read.push_back({name, std::move(*key)});
  }
  return read;
}

Result<std::vector<dns::SigningKey>> make_keys(const KeyLayout& layout,
                                               const std::vector<std::uint16_t>& taken) {
  constexpr std::uint16_t kZskFlags = dns::kZoneKeyFlag;
  std::vector<std::uint16_t> tags = taken;
  std::vector<std::uint16_t> flags{dns::kUsualKeyFlags};
  if (layout.is_split) flags.push_back(kZskFlags);
  std::vector<dns::SigningKey> keys;
  while (keys.size() < flags.size()) {
    auto key = dns::SigningKey::generate(layout.algorithm, flags[keys.size()]);
    if (!key) return pass(key);
    const auto is_taken = [&tags](std::uint16_t tag) {
      return std::ranges::find(tags, tag) != tags.end();
    };
    if (is_taken(key->tag()) || is_taken(key->revoked_tag())) continue;
    tags.insert(tags.end(), {key->tag(), key->revoked_tag()});
    keys.push_back(std::move(*key));
  }
  return keys;
}

Status write_zone_key(Files& files, const std::string& folder, dns::NameView zone,
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
  if (!synced) return synced;
  crash_point("key-made");
  log::info("key_made", "zone", dns::to_text(zone), "algorithm", key.algorithm(), "tag",
            key.tag());
  return {};
}

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
  if (auto written = write_zone_key(files, *folder, zone, key); !written) return pass(written);
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
  const SigningFacts fresh = facts_of_new_start(*facts);
  return *facts == fresh ? Status() : write_signing_facts(files, *folder, fresh);
}

}  // namespace pando::manager

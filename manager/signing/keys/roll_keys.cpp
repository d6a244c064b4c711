#include "manager/signing/keys/roll_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/crash_point.h"
#include "base/secret.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr std::string_view kPutAway = ".removed-";

/// The name of a file that was put away: `NAME.removed-ALGORITHM-TAG-TIME`.
struct PutAwayKey {
  std::string name;   // of the file
  std::string first;  // its name before
  KeyId id;
  std::uint64_t time = 0;
};

template <class Number>
bool take_field(std::string_view& text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (!text.empty() && text.front() != '-') return false;
  text.remove_prefix(text.empty() ? 0 : 1);
  return true;
}

std::optional<PutAwayKey> parse_put_away(const std::string& name) {
  const std::size_t at = name.rfind(kPutAway);
  if (at == std::string::npos) return std::nullopt;
  PutAwayKey key{name, name.substr(0, at), {}, 0};
  std::string_view rest = std::string_view(name).substr(at + kPutAway.size());
  if (!take_field(rest, key.id.algorithm) || !take_field(rest, key.id.tag) ||
      !take_field(rest, key.time) || !rest.empty())
    return std::nullopt;
  return key;
}

Result<std::vector<PutAwayKey>> put_away_keys(Files& files, const std::string& folder) {
  auto names = files.list(folder);
  if (!names) return pass(names);
  std::vector<PutAwayKey> keys;
  for (const std::string& name : *names)
    if (auto key = parse_put_away(name)) keys.push_back(std::move(*key));
  return keys;
}

bool has_kind(const std::vector<dns::SigningKey>& keys, bool is_sep) {
  return std::ranges::any_of(keys, [is_sep](const auto& key) { return key.is_sep() == is_sep; });
}

/// The keys that others follow by the order.
Result<std::vector<dns::SigningKey>> old_keys(const std::vector<dns::SigningKey>& keys,
                                              const RollOrder& order) {
  if (keys.empty()) return fail(Errc::kInvalid, "the zone has no keys yet");
  if (order.keys == RolledKeys::kAll) return keys;
  if (!has_kind(keys, true) || !has_kind(keys, false))
    return fail(Errc::kInvalid, "the zone has no KSK beside a ZSK: roll all keys");
  const bool is_other = std::ranges::any_of(
      keys, [&order](const auto& key) { return key.algorithm() != order.layout.algorithm; });
  if (is_other || !order.layout.is_split)
    return fail(Errc::kInvalid,
                "the zone's policy wants keys of another algorithm, or a CSK: roll all keys");
  std::vector<dns::SigningKey> old;
  for (const dns::SigningKey& key : keys)
    if (key.is_sep() == (order.keys == RolledKeys::kKsk)) old.push_back(key);
  return old;
}

Result<std::vector<dns::SigningKey>> new_keys(const RollOrder& order,
                                              const std::vector<dns::SigningKey>& present,
                                              const std::vector<PutAwayKey>& put_away) {
  std::vector<std::uint16_t> taken = order.taken;
  for (const dns::SigningKey& key : present)
    taken.insert(taken.end(), {key.tag(), key.revoked_tag()});
  for (const PutAwayKey& key : put_away) taken.push_back(key.id.tag);
  auto made = make_keys(order.layout, taken);
  if (!made || order.keys == RolledKeys::kAll) return made;
  std::erase_if(*made, [&order](const dns::SigningKey& key) {
    return key.is_sep() != (order.keys == RolledKeys::kKsk);
  });
  return made;
}

std::vector<KeyId> ids_of(const std::vector<dns::SigningKey>& keys) {
  std::vector<KeyId> ids;
  for (const dns::SigningKey& key : keys) ids.push_back(id_of(key));
  return ids;
}

void delete_expired(Files& files, const std::string& folder, std::uint64_t now) {
  constexpr std::uint64_t kKeptSeconds = kKeptDays * 86400;
  const auto keys = put_away_keys(files, folder);
  if (!keys) return;
  for (const PutAwayKey& key : *keys) {
    if (now < key.time + kKeptSeconds) continue;
    const std::string path = folder + "/" + key.name;
    if (const auto gone = files.remove(path); gone)
      log::info("key_deleted", "file", path);
    else
      log::warning("key_not_removed", "file", path, "reason", gone.error().text);
  }
}

}  // namespace

std::vector<FolderKey> folder_keys(const std::vector<dns::SigningKey>& keys) {
  std::vector<FolderKey> found;
  for (const dns::SigningKey& key : keys) found.push_back({id_of(key), key.is_sep()});
  return found;
}

Status begin_key_roll(Files& files, const std::string& journal, dns::NameView zone,
                      const RollOrder& order) {
  const WipeFreed wipe_freed;
  const auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  auto facts = read_signing_facts(files, *folder);
  if (!facts) return pass(facts);
  if (facts->roll.step != RollStep::kNone)
    return fail(Errc::kExists, "a key rollover of the zone is under way already");
  auto read = read_key_files(files, *folder, zone);
  if (!read) return pass(read);
  std::vector<dns::SigningKey> all = keys_in(*read);
  const auto old = old_keys(all, order);
  if (!old) return pass(old);
  const auto put_away = put_away_keys(files, *folder);
  if (!put_away) return pass(put_away);
  const auto made = new_keys(order, all, *put_away);
  if (!made) return pass(made);
  KeyRoll& roll = facts->roll;
  roll.old_keys = ids_of(*old);
  roll.new_keys = ids_of(*made);
  all.insert(all.end(), made->begin(), made->end());
  begin_step(roll, first_step(shape_of(folder_keys(all), roll)));
  if (auto noted = write_signing_facts(files, *folder, *facts); !noted) return noted;
  crash_point("roll-noted");
  for (const dns::SigningKey& key : *made)
    if (auto written = write_zone_key(files, *folder, zone, key); !written) return written;
  return {};
}

Status end_key_roll(Files& files, const std::string& journal, dns::NameView zone,
                    std::uint64_t now) {
  const WipeFreed wipe_freed;
  const auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  auto facts = read_signing_facts(files, *folder);
  if (!facts) return pass(facts);
  if (facts->roll.step != RollStep::kRemove) return {};
  const auto read = read_key_files(files, *folder, zone);
  if (!read) return pass(read);
  for (const KeyFile& file : *read) {
    const KeyId id = id_of(file.key);
    if (std::ranges::find(facts->roll.old_keys, id) == facts->roll.old_keys.end()) continue;
    const std::string name =
        fmt::format("{}{}{}-{}-{}", file.name, kPutAway, id.algorithm, id.tag, now);
    if (auto done = files.rename(*folder + "/" + file.name, *folder + "/" + name); !done)
      return done;
    crash_point("key-put-away");
    log::info("key_put_away", "zone", dns::to_text(zone), "algorithm", id.algorithm, "tag", id.tag);
  }
  if (auto synced = files.sync_directory(*folder); !synced) return synced;
  facts->roll = {};
  if (auto noted = write_signing_facts(files, *folder, *facts); !noted) return noted;
  delete_expired(files, *folder, now);
  return {};
}

Status restore_zone_key(Files& files, const std::string& journal, dns::NameView zone,
                        std::uint16_t tag) {
  const WipeFreed wipe_freed;
  const auto folder = key_folder(journal, zone);
  if (!folder) return pass(folder);
  auto facts = read_signing_facts(files, *folder);
  if (!facts) return pass(facts);
  if (facts->roll.step != RollStep::kNone)
    return fail(Errc::kExists, "a key rollover is under way: a key cannot be restored now");
  const auto put_away = put_away_keys(files, *folder);
  if (!put_away) return pass(put_away);
  const auto found = std::ranges::find_if(
      *put_away, [tag](const PutAwayKey& key) { return key.id.tag == tag; });
  if (found == put_away->end())
    return fail(Errc::kNotFound, "{}: no key with the tag {} was put away", *folder, tag);
  const auto present = read_zone_keys(files, journal, zone);
  if (!present) return pass(present);
  if (std::ranges::find(*present, found->id, &id_of) != present->end())
    return fail(Errc::kExists, "{}: a key with the tag {} is there", *folder, tag);
  facts->roll.new_keys = {found->id};
  begin_step(facts->roll, RollStep::kPublish);
  if (auto noted = write_signing_facts(files, *folder, *facts); !noted) return noted;
  crash_point("restore-noted");
  const std::string path = *folder + "/";
  if (auto done = files.rename(path + found->name, path + found->first); !done) return done;
  log::info("key_restored", "zone", dns::to_text(zone), "algorithm", found->id.algorithm, "tag",
            tag);
  return files.sync_directory(*folder);
}

}  // namespace pando::manager

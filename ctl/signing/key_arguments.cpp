#include "ctl/signing/key_arguments.h"

#include <fmt/format.h>

#include "ipc/privileges.h"

namespace pando::ctl {

namespace {

Status add_keys(const std::vector<std::string>& paths, std::optional<std::uint16_t> flags,
                std::vector<NamedKey>& keys) {
  for (const std::string& path : paths) {
    auto read = dns::read_key_file(path);
    if (!read) return pass(read);
    if (flags && read->record && read->record->flags != *flags)
      return fail(Errc::kInvalid, "{}: its DNSKEY record has the flags {}, not {}", path,
                  read->record->flags, *flags);
    if (flags) read->key = read->key.with_flags(*flags);
    keys.push_back({path, std::move(*read)});
  }
  return {};
}

}  // namespace

Result<std::vector<NamedKey>> read_keys(const KeyArguments& files) {
  static_cast<void>(ipc::forbid_inspection());  // no core dump has a key
  std::vector<NamedKey> keys;
  Status added = add_keys(files.keys, std::nullopt, keys);
  if (added) added = add_keys(files.ksks, dns::kZoneKeyFlag | dns::kSepFlag, keys);
  if (added) added = add_keys(files.zsks, dns::kZoneKeyFlag, keys);
  if (!added) return pass(added);
  return keys;
}

Result<dns::Name> zone_of(const std::vector<NamedKey>& keys, const std::string& given) {
  std::optional<dns::Name> zone;
  if (!given.empty()) {
    auto name = dns::Name::from_text(given);
    if (!name) return pass(name);
    zone = *name;
  }
  for (const NamedKey& key : keys) {
    if (!key.read.record) continue;
    const dns::Name& own = key.read.record->zone;
    if (zone && !(*zone == own))
      return fail(Errc::kInvalid, "{}: a key of {}, not of {}", key.path, dns::to_text(own),
                  dns::to_text(*zone));
    zone = own;
  }
  if (!zone) return fail(Errc::kInvalid, "no file of a key names the zone: give its name");
  return *zone;
}

}  // namespace pando::ctl

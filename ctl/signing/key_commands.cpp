#include "ctl/signing/key_commands.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/secret.h"
#include "ctl/backup/file_copy.h"
#include "ctl/backup/handed_file.h"
#include "ctl/signing/key_arguments.h"
#include "ctl/view/json_text.h"
#include "dns/mnemonics.h"
#include "dns/rdata/rdata.h"
#include "dns/text.h"
#include "ipc/privileges.h"

namespace pando::ctl {

using dns::RRType;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kSha256 = 2;

std::string record_text(const dns::Name& zone, RRType type, ByteView rdata) {
  return fmt::format("{} IN {} {}", dns::to_text(zone.folded()), dns::to_text(type),
                     dns::rdata_to_text(type, rdata));
}

/// The key's DS record; only digests that are supported come here.
Bytes ds_of(const dns::Name& zone, const dns::SigningKey& key, std::uint8_t digest) {
  return *dns::make_ds(zone, key.dnskey(), digest);
}

std::string algorithm_text(std::uint8_t algorithm) {
  return fmt::format("{} ({})", algorithm, dns::mnemonic_of(dns::kDnssecAlgorithms, algorithm));
}

/// Tags of the zone's key files in a folder, by their names: ours, BIND's and ldns's.
std::set<std::uint16_t> tags_in(const std::string& folder, const std::string& zone_prefix) {
  constexpr std::size_t kAlgorithm = 4, kTag = 5;  // "013+", "12345"
  std::set<std::uint16_t> tags;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(zone_prefix) || name.size() < zone_prefix.size() + kAlgorithm + kTag)
      continue;
    const auto tag = dns::parse_decimal(
        std::string_view(name).substr(zone_prefix.size() + kAlgorithm, kTag), UINT16_MAX);
    if (tag) tags.insert(static_cast<std::uint16_t>(*tag));
  }
  return tags;
}

/// Whether another key has the tag, or would have it once either is revoked (RFC 5011 §3): the sum
/// that makes a tag grows by 128 then, and by one more where it passes 65,535.
bool is_taken(const dns::SigningKey& key, const std::set<std::uint16_t>& tags) {
  constexpr int kRevoked = dns::kRevokeFlag;
  if (tags.contains(key.tag()) || tags.contains(key.revoked_tag())) return true;
  return tags.contains(static_cast<std::uint16_t>(key.tag() - kRevoked)) ||
         tags.contains(static_cast<std::uint16_t>(key.tag() - kRevoked - 1));
}

Result<dns::SigningKey> generate(const KeyRequest& request, const dns::Name& zone) {
  const auto algorithm = dns::find_mnemonic(dns::kDnssecAlgorithms, request.algorithm);
  if (!algorithm) return fail(Errc::kInvalid, "no such algorithm");
  const auto flags =
      static_cast<std::uint16_t>(dns::kZoneKeyFlag | (request.is_zsk ? 0 : dns::kSepFlag));
  std::set<std::uint16_t> tags;
  for (;;) {
    auto key =
        dns::SigningKey::generate(static_cast<std::uint8_t>(*algorithm), flags, request.rsa_bits);
    if (!key) return key;
    const std::string stem = dns::key_file_stem(*key, zone);
    tags = tags_in(request.folder, stem.substr(0, stem.rfind('+', stem.rfind('+') - 1) + 1));
    // A folder with tens of thousands of a zone's keys would leave no tag for a new one.
    if (tags.size() > UINT16_MAX / 8) return fail(Errc::kFull, "too many keys in the folder");
    if (!is_taken(*key, tags)) return key;
  }
}

/// A key that another program sees is whole and on disk.
Status write_key(const std::string& path, std::string_view text) {
  HandedFile::Wanted wanted{fs::absolute(path).string(), 0600, [](ByteView) { return false; },
                            "a new key", false};
  auto file = HandedFile::open(wanted);
  auto done = file ? write_all(file->descriptor()->get(), bytes_of_text(text)) : status_of(file);
  if (done) done = file->place();
  if (!done) return fail(done.error().code, "{}: {}", path, done.error().text);
  return {};
}

struct ShownKey {
  std::string path;
  dns::Name zone;
  dns::SigningKey key;

  [[nodiscard]] std::string dnskey() const {
    return record_text(zone, RRType::kDNSKEY, key.dnskey());
  }
  [[nodiscard]] std::string ds(RRType type, std::uint8_t digest) const {
    return record_text(zone, type, ds_of(zone, key, digest));
  }
  [[nodiscard]] std::string cdnskey() const {
    return record_text(zone, RRType::kCDNSKEY, key.dnskey());
  }
};

/// Each key has a zone of its own, unless one is given.
Result<std::vector<ShownKey>> read_shown(const std::vector<std::string>& files,
                                         const std::string& zone) {
  auto read = read_keys({files, {}, {}});
  if (!read) return pass(read);
  std::vector<ShownKey> shown;
  for (NamedKey& key : *read) {
    const auto name = zone_of({key}, zone);
    if (!name) return fail(name.error().code, "{}: {}", key.path, name.error().text);
    shown.push_back({key.path, *name, key.read.key});
  }
  return shown;
}

json json_of(const ShownKey& shown) {
  const dns::SigningKey& key = shown.key;
  return {{"file", shown.path},
          {"zone", dns::to_text(shown.zone)},
          {"algorithm", key.algorithm()},
          {"bits", key.bits()},
          {"flags", key.flags()},
          {"tag", key.tag()},
          {"dnskey", shown.dnskey()},
          {"ds", shown.ds(RRType::kDS, kSha256)},
          {"cds", shown.ds(RRType::kCDS, kSha256)},
          {"cdnskey", shown.cdnskey()}};
}

void print_shown(const ShownKey& shown, const Output& output) {
  const dns::SigningKey& key = shown.key;
  Facts facts;
  facts.add("file", shown.path);
  facts.add("zone", dns::to_text(shown.zone));
  facts.add("algorithm", algorithm_text(key.algorithm()));
  facts.add("bits", number(key.bits()));
  facts.add("flags", fmt::format("{} ({})", key.flags(), key.is_sep() ? "KSK or CSK" : "ZSK"));
  facts.add("tag", std::to_string(key.tag()));
  facts.print(output.out, output.colour);
  output.out << shown.dnskey() << '\n'
             << shown.ds(RRType::kDS, kSha256) << '\n'
             << shown.ds(RRType::kCDS, kSha256) << '\n'
             << shown.cdnskey() << '\n';
}

}  // namespace

int make_key(const KeyRequest& request, Output output) {
  const WipeFreed wipe_freed;
  static_cast<void>(ipc::forbid_inspection());  // no core dump has a key
  const auto zone = dns::Name::from_text(request.zone);
  if (!zone) return refuse(output, zone.error(), kUsage);
  const auto key = generate(request, *zone);
  if (!key) return refuse(output, key.error());
  const std::string path =
      (fs::path(request.folder) / (dns::key_file_stem(*key, *zone) + ".pem")).string();
  const auto text = dns::key_file_text(*key, *zone);
  if (!text) return refuse(output, text.error());
  if (auto written = write_key(path, *text); !written) return refuse(output, written.error());
  if (output.json)
    output.out << json_text(json_of({path, *zone, *key})) << '\n';
  else
    output.out << path << '\n';
  return kDone;
}

int show_keys(const std::vector<std::string>& files, const std::string& zone, Output output) {
  const auto keys = read_shown(files, zone);
  if (!keys) return refuse(output, keys.error());
  if (output.json) {
    json list = json::array();
    for (const ShownKey& key : *keys) list.push_back(json_of(key));
    output.out << json_text({{"keys", list}}) << '\n';
    return kDone;
  }
  for (const ShownKey& key : *keys) {
    if (&key != &keys->front()) output.out << '\n';
    print_shown(key, output);
  }
  return kDone;
}

int print_ds(const std::vector<std::string>& files, const std::string& zone,
             const std::string& digest, Output output) {
  const auto type = dns::find_mnemonic(dns::kDigestTypes, digest);
  if (!type || !dns::is_supported_digest(static_cast<std::uint8_t>(*type)))
    return refuse(output, {Errc::kInvalid, "no such digest"}, kUsage);
  const auto keys = read_shown(files, zone);
  if (!keys) return refuse(output, keys.error());
  json list = json::array();
  for (const ShownKey& key : *keys) {
    const std::string record = key.ds(RRType::kDS, static_cast<std::uint8_t>(*type));
    if (output.json)
      list.push_back(record);
    else
      output.out << record << '\n';
  }
  if (output.json) output.out << json_text({{"ds", list}}) << '\n';
  return kDone;
}

}  // namespace pando::ctl

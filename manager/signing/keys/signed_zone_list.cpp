#include "manager/signing/keys/signed_zone_list.h"

#include <string_view>

#include "dns/folded_key.h"

namespace pando::manager {

namespace {

constexpr std::string_view kHead =
    "# Zones whose keys are in the folder dnssec. The manager writes this file.\n";
constexpr std::uint64_t kMaxListBytes = std::uint64_t{1} << 30;

std::string path_in(const std::string& journal) { return journal + "/signed-zones.list"; }

}  // namespace

Result<SignedZoneNames> read_signed_zones(Files& files, const std::string& journal) {
  const std::string path = path_in(journal);
  auto bytes = read_file(files, path, kMaxListBytes);
  if (!bytes && bytes.error().code == Errc::kNotFound) return SignedZoneNames();
  if (!bytes) return pass(bytes);
  SignedZoneNames zones;
  std::string_view rest(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    const auto name = dns::Name::from_text(line);
    if (!name) return fail(Errc::kCorrupt, "{}:{}: {}", path, number, name.error().text);
    zones.insert(dns::folded_key(*name));
  }
  return zones;
}

Status write_signed_zones(Files& files, const std::string& journal, const SignedZoneNames& zones) {
  std::string text(kHead);
  for (const std::string& key : zones) {
    const std::string name = dns::to_text(dns::name_of_key(key));
    // A line with `#` in front would be a comment.
    text.append(name.front() == '#' ? "\\035" + name.substr(1) : name).append(1, '\n');
  }
  return write_file_atomically(files, path_in(journal), bytes_of_text(text));
}

Status check_signed_zones(Files& files, const config::Settings& settings) {
  const auto listed = read_signed_zones(files, settings.store.journal);
  if (!listed) return pass(listed);
  for (const std::string& key : *listed) {
    const auto* options = settings.zones.options_of(dns::name_of_key(key));
    if (options == nullptr || options->is_secondary() || options->is_signed_here()) continue;
    return fail(Errc::kInvalid,
                "zone {0} is signed here, and would be served unsigned: give it 'dnssec', or begin "
                "with 'pandoctl dnssec unsign {0}'",
                dns::to_text(dns::name_of_key(key)));
  }
  return {};
}

}  // namespace pando::manager

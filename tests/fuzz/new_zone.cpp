// Any octets as the content of a POST to the list of zones: never a crash. What is taken has a name
// and either primaries that the configuration knows, or content; and content that was not given as
// text is a zone file whose records are all inside of the zone.

#include "http/api/new_zone.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dns/zonefile/zone_scanner.h"
#include "http/api/json_request.h"

namespace {

using namespace pando;

constexpr std::uint64_t kToday = 1795651200;  // 2026-11-26

std::vector<config::Remote> make_remotes() {
  std::vector<config::Remote> remotes(3);
  remotes[0].name = "one";
  remotes[0].address = {Endpoint::from_text("192.0.2.1").value()};
  remotes[1].name = "two";
  remotes[1].address = {Endpoint::from_text("192.0.2.2@5353").value()};
  remotes[2].name = "six";
  remotes[2].address = {Endpoint::from_text("2001:db8::6").value()};
  return remotes;
}

void check_records(const http::NewZone& zone) {
  // The name of the mailbox in the SOA is longer than that of the zone.
  constexpr std::size_t kMaxZoneNameOctets = 255 - 11;
  if (zone.name.view().size() > kMaxZoneNameOctets) return;
  dns::ScanOptions options;
  options.allow_include = false;
  options.max_errors = 1;
  std::size_t start_of_authority = 0;
  const auto report = dns::scan_zone_text(
      zone.content, "zone", options, [&](const dns::ScannedRecord& record) -> Status {
        PANDO_ASSERT(record.owner.is_at_or_below(zone.name));
        PANDO_ASSERT(!dns::is_meta_type(record.type));
        if (record.type == dns::RRType::kSOA) ++start_of_authority;
        return {};
      });
  PANDO_ASSERT(report.ok() && start_of_authority >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<config::Remote> kRemotes = make_remotes();
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto zone = http::read_new_zone(body, kRemotes, kToday);
  if (!zone) {
    PANDO_ASSERT(!zone.error().text.empty() && zone.error().text.size() < 4096);
    return 0;
  }
  if (!zone->primaries.empty()) {
    PANDO_ASSERT(zone->content.empty());
    for (const std::string& primary : zone->primaries)
      PANDO_ASSERT(std::ranges::any_of(
          kRemotes, [&](const config::Remote& remote) { return remote.name == primary; }));
    return 0;
  }
  PANDO_ASSERT(zone->content.ends_with('\n'));
  const auto document = http::read_document(body);
  PANDO_ASSERT(document);
  if (http::member(*document, "zone") == nullptr) check_records(*zone);
  return 0;
}

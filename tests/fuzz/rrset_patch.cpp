// Any octets as the content of a PATCH of example.test.: never a crash, and what is taken is inside
// of the zone, within the limits, and text that the manager reads as the same data.

#include "http/api/rrset_patch.h"

#include "dns/rdata/rdata.h"

namespace {

using namespace pando;

void check_change(const http::RRsetChange& change, dns::NameView zone) {
  using Kind = http::RRsetChange::Kind;
  PANDO_ASSERT(change.owner.view().is_at_or_below(zone) && !dns::is_meta_type(change.type));
  PANDO_ASSERT(!change.ttl || *change.ttl <= 0x7FFFFFFF);
  PANDO_ASSERT(change.kind != Kind::kDelete || change.rdatas.empty());
  PANDO_ASSERT(change.kind != Kind::kReplace || change.rdatas.empty() || change.ttl);
  for (const Bytes& rdata : change.rdatas) {
    const std::string text = dns::rdata_to_text(change.type, rdata);
    Bytes again;
    const auto read = dns::rdata_from_text(change.type, text.empty() ? "\\# 0" : text, zone, again);
    PANDO_ASSERT(read && again == rdata);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const dns::Name kZone = dns::Name::from_text("example.test.").value();
  const auto changes = http::read_patch({reinterpret_cast<const char*>(data), size}, kZone);
  if (!changes) {
    PANDO_ASSERT(!changes.error().text.empty() && changes.error().text.size() < 4096);
    return 0;
  }
  std::size_t count = 0;
  for (const http::RRsetChange& change : *changes) {
    check_change(change, kZone);
    count += 1 + change.rdatas.size();
  }
  PANDO_ASSERT(count <= http::kMaxChanges);
  return 0;
}

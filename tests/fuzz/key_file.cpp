// Any text as a key file, and any other as the record beside it: never a crash. A key that is read
// verifies its own signature, matches its record, and survives being written and read again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dns/dnssec/key_file.h"

namespace {

using namespace pando;
using namespace pando::dns;

/// The part before the first octet 0 is the key's file, the rest the record's.
Result<ZoneKey> parse(std::string_view text) {
  const auto end = text.find('\0');
  if (end == std::string_view::npos) return parse_key_file({text, "key"}, std::nullopt);
  return parse_key_file({text.substr(0, end), "key"}, KeyFileText{text.substr(end + 1), "record"});
}

void check(const ZoneKey& read) {
  const auto fields = parse_dnskey(read.key.dnskey());
  PANDO_ASSERT(fields && fields->is_zone_key() && !fields->is_revoked());
  PANDO_ASSERT(!read.record || read.record->rdata == read.key.dnskey());
  auto maker = SignatureMaker::make(read.key);
  auto verifier = SignatureVerifier::make(*fields);
  Bytes signature;
  PANDO_ASSERT(maker && verifier && maker->sign(read.key.dnskey(), signature));
  PANDO_ASSERT(verifier->verify(read.key.dnskey(), signature));
  const Name zone = read.record ? read.record->zone : Name::from_text("example.").value();
  const auto text = key_file_text(read.key, zone);
  PANDO_ASSERT(text);
  const auto again = parse_key_file({*text, "again"}, std::nullopt);
  PANDO_ASSERT(again && again->record && again->record->zone == zone);
  PANDO_ASSERT(again->key.dnskey() == read.key.dnskey());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = parse({reinterpret_cast<const char*>(data), size});
  if (read) check(*read);
  return 0;
}

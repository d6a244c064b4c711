#include <cstdint>
#include <string>
#include <string_view>

#include "dns/rdata/rdata.h"
#include "dns/rdata/rdata_field.h"

// Octets 0 and 1 choose the type, octet 2 what the rest is: wire RDATA, a message with RDATA in it,
// or text. Whatever is accepted has to survive the way through the other form.

namespace {

using namespace pando;
using namespace pando::dns;

/// Rows of the table by small numbers, so that the fuzzer finds them; any other type as it is.
RRType choose_type(std::uint8_t high, std::uint8_t low) {
  const auto rows = all_descriptors();
  if (high == 0) return rows[low % rows.size()].type;
  return static_cast<RRType>(high << 8 | low);
}

void must_read_back(RRType type, ByteView rdata) {
  PANDO_ASSERT(check_rdata(type, rdata));
  const std::string text = rdata_to_text(type, rdata);
  Bytes back;
  PANDO_ASSERT(rdata_from_text(type, text, NameView(), back));
  PANDO_ASSERT(back.size() == rdata.size() && std::equal(back.begin(), back.end(), rdata.begin()));
  PANDO_ASSERT(compare_rdata_canonical(type, back, rdata) == 0);
}

void try_wire(RRType type, ByteView rdata) {
  NameView target;
  if (additional_name(type, rdata, target))
    PANDO_ASSERT(wire_name_length(target.bytes()) == target.size());
  Bytes together;
  for_each_compressible_field(type, rdata, [&](ByteView field, bool) { append(together, field); });
  PANDO_ASSERT(together.size() == rdata.size());
  if (check_rdata(type, rdata))
    must_read_back(type, rdata);
  else if (!check_stored_rdata(type, rdata))
    PANDO_ASSERT(rdata_to_text(type, rdata).starts_with("\\#"));
  // What only new records may not have, digests of odd lengths and the like, has its usual text.
  const std::size_t half = rdata.size() / 2;
  const int forth = compare_rdata_canonical(type, rdata.first(half), rdata.subspan(half));
  const int back = compare_rdata_canonical(type, rdata.subspan(half), rdata.first(half));
  PANDO_ASSERT((forth < 0) == (back > 0) && (forth == 0) == (back == 0));
}

void try_message(RRType type, ByteView message) {
  const std::size_t offset = message.empty() ? 0 : message[0] % message.size();
  Bytes rdata;
  if (decompress_rdata(type, message, offset, message.size() - offset, rdata))
    must_read_back(type, rdata);
  else
    PANDO_ASSERT(rdata.empty());
}

void try_text(RRType type, ByteView octets) {
  const std::string_view text(reinterpret_cast<const char*>(octets.data()), octets.size());
  static constexpr std::uint8_t kOrigin[] = {1, 'o', 0};
  Bytes rdata;
  if (rdata_from_text(type, text, NameView(kOrigin, sizeof kOrigin), rdata))
    must_read_back(type, rdata);
  else
    PANDO_ASSERT(rdata.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const RRType type = choose_type(data[0], data[1]);
  const ByteView rest(data + 3, size - 3);
  if (data[2] % 3 == 0) try_wire(type, rest);
  if (data[2] % 3 == 1) try_message(type, rest);
  if (data[2] % 3 == 2) try_text(type, rest);
  return 0;
}

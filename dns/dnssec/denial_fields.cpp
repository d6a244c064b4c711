#include "dns/dnssec/denial_fields.h"

#include <algorithm>

namespace pando::dns {

bool Nsec3Fields::same_chain(const Nsec3Fields& other) const noexcept {
  return hash == other.hash && iterations == other.iterations &&
         std::ranges::equal(salt, other.salt);
}

std::optional<NsecFields> parse_nsec(ByteView rdata) noexcept {
  const std::size_t next = wire_name_length(rdata);
  if (next == 0) return std::nullopt;
  return NsecFields{NameView(rdata.data(), next), rdata.subspan(next)};
}

std::optional<Nsec3Fields> parse_nsec3param(ByteView rdata) noexcept {
  constexpr std::size_t kFixedOctets = 5;  // RFC 5155 §4.2: up to and with the salt's length
  if (rdata.size() < kFixedOctets || rdata.size() - kFixedOctets < rdata[4]) return std::nullopt;
  Nsec3Fields fields;
  fields.hash = rdata[0];
  fields.flags = rdata[1];
  fields.iterations = load_be16(rdata.data() + 2);
  fields.salt = rdata.subspan(kFixedOctets, rdata[4]);
  return fields;
}

std::optional<Nsec3Fields> parse_nsec3(ByteView rdata) noexcept {
  auto fields = parse_nsec3param(rdata);
  if (!fields) return std::nullopt;
  const ByteView rest = rdata.subspan(5 + fields->salt.size());
  if (rest.empty() || rest.size() - 1 < rest[0]) return std::nullopt;
  fields->next = rest.subspan(1, rest[0]);
  fields->types = rest.subspan(1U + rest[0]);
  return fields;
}

void append_type_bitmap(std::span<const RRType> types, Bytes& out) {
  std::size_t window = out.size();  // place of the open window
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto value = static_cast<std::uint16_t>(types[i]);
    const bool is_new = i == 0 || static_cast<std::uint16_t>(types[i - 1]) >> 8U != value >> 8U;
    if (is_new) {
      window = out.size();
      out.push_back(static_cast<std::uint8_t>(value >> 8U));
      out.push_back(0);
    }
    const std::size_t used = (value & 0xFFU) / 8U + 1U;
    out.resize(window + 2 + used);  // types ascend: a window only grows
    out[window + 1] = static_cast<std::uint8_t>(used);
    out[window + 1 + used] |= static_cast<std::uint8_t>(0x80U >> value % 8U);
  }
}

std::vector<RRType> types_in_bitmap(ByteView bitmap) {
  std::vector<RRType> types;
  while (bitmap.size() >= 2) {
    const unsigned window = bitmap[0];
    const ByteView bits = bitmap.subspan(2, std::min<std::size_t>(bitmap[1], bitmap.size() - 2));
    for (unsigned bit = 0; bit < bits.size() * 8; ++bit)
      if ((bits[bit / 8] & (0x80U >> bit % 8)) != 0)
        types.push_back(static_cast<RRType>(window << 8 | (bit & 0xFFU)));
    bitmap = bitmap.subspan(2 + bits.size());
  }
  return types;
}

}  // namespace pando::dns

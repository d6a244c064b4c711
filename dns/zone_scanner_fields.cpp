#include "dns/zone_scanner_fields.h"

#include <bit>

#include "dns/zone_scanner_block.h"

namespace pando::dns {

namespace {

/// Up to eight octets as one number, first octet lowest.
constexpr std::uint64_t word_of(std::string_view text) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    word |= std::uint64_t{static_cast<std::uint8_t>(text[i])} << (8 * i);
  return word;
}

/// Clears bit 5 of each octet: letters become upper case, and nothing else becomes a letter.
constexpr std::uint64_t kUpper = 0xDFDFDFDFDFDFDFDFU;

constexpr std::uint64_t upper_word_of(std::string_view text) noexcept {
  return word_of(text) & kUpper;
}

std::uint64_t load_word(std::string_view text) noexcept {
  std::uint64_t word;
  std::memcpy(&word, text.data(), sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return text.size() < 8 ? word & ((std::uint64_t{1} << (8 * text.size())) - 1) : word;
}

void copy_blocks(std::uint8_t* out, const std::uint8_t* from, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; i += TextBlock::kOctets)
    TextBlock(reinterpret_cast<const char*>(from + i)).store(out + i);
}

}  // namespace

std::size_t read_plain_name(std::string_view text, const PaddedName& origin,
                            std::uint8_t* out) noexcept {
  const std::size_t size = text.size();
  if (size == 0 || size >= kMaxNameOctets || text == "@") return 0;
  // Octet i of the text goes to out[i + 1], so that a dot at i lands where the next label's length
  // belongs.
  std::size_t label = 0;
  for (std::size_t at = 0; at < size; at += TextBlock::kOctets) {
    const TextBlock block(text.data() + at);
    block.store(out + at + 1);
    for (std::uint32_t dots = block.equal_to('.'); dots != 0; dots &= dots - 1) {
      const std::size_t dot = at + static_cast<std::size_t>(std::countr_zero(dots));
      if (dot >= size) break;
      const std::size_t length = dot - label;
      if (length == 0 || length > kMaxLabelOctets) return 0;
      out[label] = static_cast<std::uint8_t>(length);
      label = dot + 1;
    }
  }
  if (label == size) {  // the final dot of an absolute name
    out[size] = 0;
    return size + 1;
  }
  const std::size_t length = size - label;
  const std::size_t total = size + 1 + origin.size();
  if (length > kMaxLabelOctets || total > kMaxNameOctets) return 0;
  out[label] = static_cast<std::uint8_t>(length);
  copy_blocks(out + size + 1, origin.data(), origin.size());
  return total;
}

bool read_plain_ttl(std::string_view text, Ttl& ttl) noexcept {
  if (text.empty() || text.size() > 9) return false;
  std::uint32_t value = 0;
  for (const char c : text) {
    const auto digit = static_cast<std::uint32_t>(c - '0');
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  ttl.seconds = value;
  return true;
}

bool read_common_type(std::string_view text, RRType& type) noexcept {
  if (text.empty() || text.size() > 8) return false;
  const auto is = [&type](RRType found) {
    type = found;
    return true;
  };
  switch (load_word(text) & kUpper) {
    case upper_word_of("A"):
      return is(RRType::kA);
    case upper_word_of("NS"):
      return is(RRType::kNS);
    case upper_word_of("AAAA"):
      return is(RRType::kAAAA);
    case upper_word_of("RRSIG"):
      return is(RRType::kRRSIG);
    case upper_word_of("NSEC"):
      return is(RRType::kNSEC);
    case upper_word_of("DS"):
      return is(RRType::kDS);
    case upper_word_of("NSEC3"):
      return text[4] == '3' && is(RRType::kNSEC3);
    case upper_word_of("CNAME"):
      return is(RRType::kCNAME);
    case upper_word_of("PTR"):
      return is(RRType::kPTR);
    case upper_word_of("MX"):
      return is(RRType::kMX);
    case upper_word_of("TXT"):
      return is(RRType::kTXT);
    case upper_word_of("SRV"):
      return is(RRType::kSRV);
    default:
      return false;
  }
}

}  // namespace pando::dns

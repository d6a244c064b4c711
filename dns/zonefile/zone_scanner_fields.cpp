#include "dns/zonefile/zone_scanner_fields.h"

#include <array>
#include <bit>

#include "dns/zonefile/zone_scanner_block.h"

namespace pando::dns {

namespace {

/// A mnemonic of up to eight octets as a number, in upper case. Bit 5 of each octet is clear, which
/// makes letters upper case and turns no other octet into a letter. Digits lose the bit too;
/// `digits` has the bit set at their places.
struct TypeWord {
  std::uint64_t word = 0;
  std::uint64_t digits = 0;
  RRType type{};
};
constexpr std::uint64_t kBit5 = 0x2020202020202020U;

constexpr TypeWord type_word(std::string_view text, RRType type) noexcept {
  TypeWord entry{0, 0, type};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint64_t octet = static_cast<std::uint8_t>(text[i]);
    entry.word |= (octet & ~std::uint64_t{0x20}) << (8 * i);
    if (octet <= '9') entry.digits |= std::uint64_t{0x20} << (8 * i);
  }
  return entry;
}

constexpr std::size_t kTypeSlots = 64;

constexpr std::size_t slot_of(std::uint64_t word) noexcept {
  return (word * 0x9E3779B97F4A7C15U) >> 58U;  // Fibonacci hashing to six bits
}

/// An open-addressing table that is less than half full.
constexpr std::array<TypeWord, kTypeSlots> make_type_table() noexcept {
  std::array<TypeWord, kTypeSlots> table{};
  for (const TypeWord& entry :
       {type_word("A", RRType::kA),         type_word("NS", RRType::kNS),
        type_word("AAAA", RRType::kAAAA),   type_word("RRSIG", RRType::kRRSIG),
        type_word("NSEC", RRType::kNSEC),   type_word("DS", RRType::kDS),
        type_word("NSEC3", RRType::kNSEC3), type_word("CNAME", RRType::kCNAME),
        type_word("PTR", RRType::kPTR),     type_word("SOA", RRType::kSOA),
        type_word("MX", RRType::kMX),       type_word("TXT", RRType::kTXT),
        type_word("SRV", RRType::kSRV),     type_word("DNSKEY", RRType::kDNSKEY),
        type_word("CDS", RRType::kCDS),     type_word("CDNSKEY", RRType::kCDNSKEY),
        type_word("TLSA", RRType::kTLSA),   type_word("CAA", RRType::kCAA),
        type_word("HTTPS", RRType::kHTTPS), type_word("SVCB", RRType::kSVCB),
        type_word("DNAME", RRType::kDNAME), type_word("NAPTR", RRType::kNAPTR),
        type_word("SSHFP", RRType::kSSHFP), type_word("SPF", RRType::kSPF)}) {
    std::size_t slot = slot_of(entry.word);
    while (table[slot].word != 0) slot = (slot + 1) % kTypeSlots;
    table[slot] = entry;
  }
  return table;
}
constexpr std::array<TypeWord, kTypeSlots> kTypeTable = make_type_table();

std::uint64_t load_word(std::string_view text) noexcept {
  const std::uint64_t word = load_le64(text.data());
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
  if (text == ".") {
    out[0] = 0;
    return 1;
  }
  // Octet i of the text goes to out[i + 1], so that a dot at i lands at the place of the next
  // label's length.
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

bool read_common_type(std::string_view text, RRType& type) noexcept {
  if (text.empty() || text.size() > 8) return false;
  const std::uint64_t raw = load_word(text);
  const std::uint64_t word = raw & ~kBit5;
  for (std::size_t slot = slot_of(word); kTypeTable[slot].word != 0;
       slot = (slot + 1) % kTypeSlots) {
    const TypeWord& entry = kTypeTable[slot];
    if (entry.word != word) continue;
    type = entry.type;
    return (raw & entry.digits) == entry.digits;
  }
  return false;
}

}  // namespace pando::dns

#include "dns/zonefile/zone_scanner_rdata.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "dns/encoding_tables.h"
#include "dns/zonefile/zone_scanner_block.h"

namespace pando::dns {

namespace {

/// Most characters of base 64 or hexadecimal text read here; longer texts are rare.
constexpr std::size_t kMaxEncoded = 2048;
static_assert(kMaxNameOctets + 18 + kMaxEncoded + 64 < kPlainRdataOctets);

// ---- IPv4 addresses ----

/// The number in digits [begin, end) of a text of digits only. Above 255 for an invalid octet of an
/// address: too long, too large or with a leading zero.
std::uint32_t address_octet(const char* text, unsigned begin, unsigned end) noexcept {
  constexpr std::uint32_t kLeast[] = {0, 0, 10, 100};
  const unsigned length = end - begin;
  if (length - 1 > 2) return 256;
  // The last digit goes to the highest octet; absent digits in front become zero.
  const std::uint32_t digits = (load_le32(text + begin) & 0x0F0F0F0FU) << (8 * (4 - length));
  const std::uint32_t value =
      (digits >> 8 & 0xFFU) * 100 + (digits >> 16 & 0xFFU) * 10 + (digits >> 24);
  return value >= kLeast[length] ? value : 256;
}

bool read_plain_ipv4(std::string_view text, std::uint8_t* out) noexcept {
  if (text.size() > 15) return false;
  const TextBlock block(text.data());
  const std::uint32_t all = (1U << text.size()) - 1;
  std::uint32_t dots = block.equal_to('.') & all;
  if (std::popcount(dots) != 3 || ((block.digits() | dots) & all) != all) return false;
  std::uint32_t worst = 0;
  unsigned begin = 0;
  dots |= 1U << text.size();
  for (int i = 0; i < 4; ++i, dots &= dots - 1) {
    const auto end = static_cast<unsigned>(std::countr_zero(dots));
    const std::uint32_t octet = address_octet(text.data(), begin, end);
    worst |= octet;
    out[i] = static_cast<std::uint8_t>(octet);
    begin = end + 1;
  }
  return worst <= 255;
}

// ---- times ----

/// Eight digits as four numbers of two digits, the first in the lowest 16 bits.
bool read_digit_pairs(const char* text, std::uint64_t& pairs) noexcept {
  constexpr std::uint64_t kLow = 0x0F0F0F0F0F0F0F0FU;
  const std::uint64_t raw = load_le64(text);
  // A digit is 0x30-0x39: its high half is 3, and so is the high half of the digit plus 6.
  const std::uint64_t above = raw + 0x0606060606060606U;
  if ((raw & ~kLow) != 0x3030303030303030U || (above & ~kLow) != 0x3030303030303030U) return false;
  const std::uint64_t digits = raw & kLow;
  pairs = (digits * 10 + (digits >> 8)) & 0x00FF00FF00FF00FFU;
  return true;
}

unsigned pair_at(std::uint64_t pairs, unsigned index) noexcept {
  return static_cast<unsigned>(pairs >> (16 * index) & 0xFFU);
}

/// YYYYMMDDHHmmSS (RFC 4034 §3.2).
bool read_plain_time(std::string_view text, std::uint32_t& seconds) noexcept {
  std::uint64_t date, time;  // the time has the day in front, to reach eight digits
  if (text.size() != 14 || !read_digit_pairs(text.data(), date) ||
      !read_digit_pairs(text.data() + 6, time))
    return false;
  const int year = static_cast<int>(pair_at(date, 0) * 100 + pair_at(date, 1));
  const std::chrono::year_month_day day{std::chrono::year(year),
                                        std::chrono::month(pair_at(date, 2)),
                                        std::chrono::day(pair_at(date, 3))};
  const unsigned hour = pair_at(time, 1), minute = pair_at(time, 2), second = pair_at(time, 3);
  // 32 bits reach into 2106.
  if (year < 1970 || year > 2105 || !day.ok() || hour > 23 || minute > 59 || second > 59)
    return false;
  const auto days = std::chrono::sys_days(day).time_since_epoch().count();
  seconds = static_cast<std::uint32_t>(days * 86400) + hour * 3600 + minute * 60 + second;
  return true;
}

// ---- encodings (RFC 4648) ----

std::uint32_t base64_group(const char* text) noexcept {
  const auto value = [text](std::size_t place) {
    return kBase64Places[place][static_cast<std::uint8_t>(text[place])];
  };
  return value(0) | value(1) | value(2) | value(3);
}

/// Decodes whole groups without padding. Writes one octet beyond the end.
bool decode_base64_groups(std::string_view text, std::uint8_t* out) noexcept {
  std::uint32_t seen = 0;
  for (std::size_t at = 0; at < text.size(); at += 4, out += 3) {
    const std::uint32_t group = base64_group(text.data() + at);
    seen |= group;
    store_be32(out, group << 8U);
  }
  return (seen & kNoGroup) == 0;
}

/// Decodes a padded last group (RFC 4648 §4); returns its number of octets, 0 for an invalid group.
std::size_t decode_padded_group(const char* text, std::uint8_t* out) noexcept {
  const std::size_t octets = text[2] == '=' ? 1 : 2;
  const char symbols[4] = {text[0], text[1], octets == 1 ? 'A' : text[2], 'A'};
  const std::uint32_t group = base64_group(symbols);
  store_be32(out, group << 8U);
  // §3.5: the bits outside the octets are zero.
  const bool zero = out[octets] == 0;
  return (group & kNoGroup) == 0 && zero ? octets : 0;
}

/// Decodes an even number of hexadecimal digits.
bool decode_hex(std::string_view text, std::uint8_t* out) noexcept {
  unsigned worst = 0;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const unsigned high = kHexValues[static_cast<std::uint8_t>(text[at])];
    const unsigned low = kHexValues[static_cast<std::uint8_t>(text[at + 1])];
    worst |= high | low;
    *out++ = static_cast<std::uint8_t>(high << 4 | low);
  }
  return worst <= 15 && text.size() % 2 == 0;
}

/// Decodes groups of eight digits to five octets each.
bool decode_base32_groups(std::string_view text, std::uint8_t* out) noexcept {
  unsigned worst = 0;
  for (std::size_t at = 0; at < text.size(); at += 8, out += 5) {
    std::uint64_t group = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const unsigned digit = kBase32HexValues[static_cast<std::uint8_t>(text[at + i])];
      worst |= digit;
      group = group << 5 | (digit & 31U);
    }
    store_be64(out, group << 24);
  }
  return worst <= 31;
}

// ---- layouts ----

/// Walks the tokens and writes their wire form; each step returns whether its token had the usual
/// form.
class PlainReader {
 public:
  PlainReader(std::span<const Token> tokens, const PaddedName& origin, std::uint8_t* out) noexcept
      : token_(tokens.data()), end_(token_ + tokens.size()), origin_(origin), out_(out), at_(out) {}

  /// Number of octets written; 0 when tokens are left.
  [[nodiscard]] std::size_t finish() const noexcept {
    return token_ == end_ ? static_cast<std::size_t>(at_ - out_) : 0;
  }

  bool ipv4() noexcept {
    if (!take() || !read_plain_ipv4(text_, at_)) return false;
    at_ += 4;
    return true;
  }
  bool name() noexcept {
    if (!take()) return false;
    const std::size_t size = read_plain_name(text_, origin_, at_);
    at_ += size;
    return size != 0;
  }
  bool type() noexcept {
    RRType value;
    if (!take() || !read_common_type(text_, value)) return false;
    return put16(static_cast<std::uint16_t>(value));
  }
  bool u8() noexcept {
    std::uint32_t value;
    if (!take() || !read_plain_number(text_, value) || value > 0xFF) return false;
    *at_++ = static_cast<std::uint8_t>(value);
    return true;
  }
  bool u16() noexcept {
    std::uint32_t value;
    if (!take() || !read_plain_number(text_, value) || value > 0xFFFF) return false;
    return put16(static_cast<std::uint16_t>(value));
  }
  bool u32() noexcept {
    std::uint32_t value;
    return take() && read_plain_number(text_, value) && put32(value);
  }
  bool time() noexcept {
    std::uint32_t value;
    return take() && read_plain_time(text_, value) && put32(value);
  }
  bool base64_rest() noexcept;
  bool hex_word() noexcept;
  bool salt() noexcept;
  bool hashed_owner() noexcept;
  bool type_bitmap() noexcept;

 private:
  bool take() noexcept {
    if (token_ == end_) return false;
    text_ = (token_++)->text;
    return true;
  }
  bool put16(std::uint16_t value) noexcept {
    store_be16(at_, value);
    at_ += 2;
    return true;
  }
  bool put32(std::uint32_t value) noexcept {
    store_be32(at_, value);
    at_ += 4;
    return true;
  }

  const Token* token_;
  const Token* const end_;
  const PaddedName& origin_;
  std::uint8_t* const out_;
  std::uint8_t* at_;
  std::string_view text_;
};

/// Reads one or more words of whole groups; the last group may be padded.
bool PlainReader::base64_rest() noexcept {
  const std::uint8_t* const begin = at_;
  const std::uint8_t* const most = begin + kMaxEncoded / 4 * 3;
  while (take()) {
    const std::size_t whole = text_.size() / 4 * 3;
    if (text_.size() % 4 != 0 || whole > static_cast<std::size_t>(most - at_)) return false;
    const bool padded = text_.back() == '=';
    if (padded && token_ != end_) return false;
    const std::string_view groups = text_.substr(0, text_.size() - (padded ? 4 : 0));
    if (!decode_base64_groups(groups, at_)) return false;
    at_ += groups.size() / 4 * 3;
    if (!padded) continue;
    const std::size_t octets = decode_padded_group(text_.data() + groups.size(), at_);
    at_ += octets;
    return octets != 0;
  }
  return at_ != begin;
}

bool PlainReader::hex_word() noexcept {
  if (!take() || text_.size() > kMaxEncoded || !decode_hex(text_, at_)) return false;
  at_ += text_.size() / 2;
  return true;
}

/// RFC 5155 §3.3: `-` means no salt.
bool PlainReader::salt() noexcept {
  if (!take()) return false;
  const std::size_t octets = text_ == "-" ? 0 : text_.size() / 2;
  if (octets > 255 || (octets != 0 && !decode_hex(text_, at_ + 1))) return false;
  if (octets == 0 && text_ != "-") return false;
  *at_ = static_cast<std::uint8_t>(octets);
  at_ += 1 + octets;
  return true;
}

bool PlainReader::hashed_owner() noexcept {
  constexpr std::size_t kSha1Digits = 32;  // RFC 5155 §11: SHA-1 is the only hash defined
  if (!take() || text_.size() != kSha1Digits || !decode_base32_groups(text_, at_ + 1)) return false;
  *at_ = kSha1Digits / 8 * 5;
  at_ += 1 + kSha1Digits / 8 * 5;
  return true;
}

/// Reads types below 256 only: one window (RFC 4034 §4.1.2).
bool PlainReader::type_bitmap() noexcept {
  std::uint8_t* const bits = at_ + 2;
  std::fill_n(bits, 32, std::uint8_t{0});
  unsigned highest = 0;
  RRType type;
  if (token_ == end_) return false;
  while (take()) {
    if (!read_common_type(text_, type)) return false;
    const auto value = static_cast<unsigned>(type);
    if (value > 255) return false;
    bits[value / 8] |= static_cast<std::uint8_t>(0x80U >> value % 8);
    highest = std::max(highest, value);
  }
  at_[0] = 0;
  at_[1] = static_cast<std::uint8_t>(highest / 8 + 1);
  at_ += 2 + at_[1];
  return true;
}

/// Reads SHA-256 only (RFC 4509 §2.1): other digests have other lengths.
bool read_ds(PlainReader& reader, std::size_t tokens, const std::uint8_t* out) noexcept {
  return tokens == 4 && reader.u16() && reader.u8() && reader.u8() && out[3] == 2 &&
         reader.hex_word() && reader.finish() == 4 + 32;
}

/// Signatures of private algorithms begin with a name or an identifier (RFC 4034 §A.1.1), and the
/// signer has no more labels than the owner (§3.1.3): rdata_from_text() checks the rare ones.
bool is_usual_signer(const std::uint8_t* out) noexcept {
  constexpr std::uint8_t kFirstPrivate = 253;
  unsigned labels = 0;
  for (const std::uint8_t* label = out + 18; *label != 0; label += *label + 1) ++labels;
  return out[2] < kFirstPrivate && out[3] >= labels;
}

bool read_rrsig(PlainReader& reader, const std::uint8_t* out) noexcept {  // RFC 4034 §3.2
  return reader.type() && reader.u8() && reader.u8() && reader.u32() && reader.time() &&
         reader.time() && reader.u16() && reader.name() && is_usual_signer(out) &&
         reader.base64_rest();
}

bool read_nsec3(PlainReader& reader) noexcept {  // RFC 5155 §3.3
  return reader.u8() && reader.u8() && reader.u16() && reader.salt() && reader.hashed_owner() &&
         reader.type_bitmap();
}

}  // namespace

std::size_t read_plain_rdata(RRType type, std::span<const Token> tokens, const PaddedName& origin,
                             std::uint8_t* out) noexcept {
  PlainReader reader(tokens, origin, out);
  bool usual = false;
  switch (type) {
    case RRType::kA:
      usual = reader.ipv4();
      break;
    case RRType::kNS:
    case RRType::kCNAME:
    case RRType::kPTR:
    case RRType::kDNAME:
      usual = reader.name();
      break;
    case RRType::kMX:
      usual = reader.u16() && reader.name();
      break;
    case RRType::kSRV:
      usual = reader.u16() && reader.u16() && reader.u16() && reader.name();
      break;
    case RRType::kDS:
      usual = read_ds(reader, tokens.size(), out);
      break;
    case RRType::kRRSIG:
      usual = read_rrsig(reader, out);
      break;
    case RRType::kNSEC:
      usual = reader.name() && reader.type_bitmap();
      break;
    case RRType::kNSEC3:
      usual = read_nsec3(reader);
      break;
    default:
      break;
  }
  return usual ? reader.finish() : 0;
}

}  // namespace pando::dns

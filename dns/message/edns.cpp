#include "dns/message/edns.h"

#include <algorithm>
#include <cstring>

namespace pando::dns {

namespace {


/// Records the present options; false when an option runs over the end.
bool take_options(Edns& edns) noexcept {
  constexpr std::uint16_t kKnownCodes = 32;
  ByteView rest = edns.options;
  while (!rest.empty()) {
    if (rest.size() < kOptionHeaderOctets) return false;
    const std::uint16_t code = load_be16(rest.data());
    const std::size_t octets = kOptionHeaderOctets + load_be16(rest.data() + 2);
    if (octets > rest.size()) return false;
    if (code == kOptionCookie && !edns.has(kOptionCookie))
      edns.cookie = rest.subspan(kOptionHeaderOctets, octets - kOptionHeaderOctets);
    if (code < kKnownCodes) edns.codes |= 1U << code;
    rest = rest.subspan(octets);
  }
  return true;
}

}  // namespace

Result<Edns> read_opt(ByteView message, const RecordFields& record) {
  Result<Edns> edns(tl::in_place);
  if (!read_opt(message, record, *edns)) return fail(Errc::kInvalid, "not a sound OPT record");
  return edns;
}

bool read_opt(ByteView message, const RecordFields& record, Edns& edns) noexcept {
  // RFC 6891 §6.1.2: the owner is the root, CLASS the payload size, TTL the other fields.
  if (record.type != RRType::kOPT || !record.owner_is_root) return false;
  // RFC 6891 §6.2.3: values below 512 are treated as 512.
  edns.udp_payload = std::max<std::uint16_t>(static_cast<std::uint16_t>(record.rr_class), 512);
  edns.extended_rcode = static_cast<std::uint8_t>(record.ttl >> 24);
  edns.version = static_cast<std::uint8_t>(record.ttl >> 16);
  edns.dnssec_ok = (record.ttl & 0x8000) != 0;  // RFC 3225 §3
  if (edns.version != 0) return true;           // answered with BADVERS: its options stay unread
  edns.options = message.subspan(record.rdata_offset, record.rdata_length);
  return take_options(edns);
}

std::optional<ByteView> find_option(ByteView options, std::uint16_t code) noexcept {
  while (options.size() >= kOptionHeaderOctets) {
    const std::size_t length = load_be16(options.data() + 2);
    if (kOptionHeaderOctets + length > options.size()) break;
    if (load_be16(options.data()) == code) return options.subspan(kOptionHeaderOctets, length);
    options = options.subspan(kOptionHeaderOctets + length);
  }
  return std::nullopt;
}

OptBuilder::OptBuilder(std::uint16_t udp_payload, Rcode rcode, bool dnssec_ok) noexcept {
  const auto extended = static_cast<std::uint32_t>(rcode) >> 4 & 0xFF;
  octets_[0] = 0;
  store_be16(&octets_[1], static_cast<std::uint16_t>(RRType::kOPT));
  store_be16(&octets_[3], udp_payload);
  store_be32(&octets_[5], extended << 24 | (dnssec_ok ? 0x8000U : 0U));
  store_be16(&octets_[9], 0);
}

std::uint8_t* OptBuilder::begin_option(std::uint16_t code, std::size_t length) noexcept {
  if (length > kMaxOctets || size_ + kOptionHeaderOctets + length > kMaxOctets) return nullptr;
  std::uint8_t* option = octets_.data() + size_;
  store_be16(option, code);
  store_be16(option + 2, static_cast<std::uint16_t>(length));
  size_ += kOptionHeaderOctets + length;
  store_be16(&octets_[9], static_cast<std::uint16_t>(size_ - kFixedOctets));
  return option + kOptionHeaderOctets;
}

bool OptBuilder::add(std::uint16_t code, ByteView data) noexcept {
  std::uint8_t* out = begin_option(code, data.size());
  if (out == nullptr) return false;
  if (!data.empty()) std::memcpy(out, data.data(), data.size());
  return true;
}

bool OptBuilder::add_nsid(std::string_view identity) noexcept {
  return add(kOptionNsid,
             {reinterpret_cast<const std::uint8_t*>(identity.data()), identity.size()});
}

bool OptBuilder::add_cookie(ByteView client_and_server) noexcept {
  return add(kOptionCookie, client_and_server);
}

bool OptBuilder::add_extended_error(ExtendedError code, std::string_view text) noexcept {
  std::uint8_t* out = begin_option(kOptionEde, 2 + text.size());
  if (out == nullptr) return false;
  store_be16(out, static_cast<std::uint16_t>(code));
  if (!text.empty()) std::memcpy(out + 2, text.data(), text.size());
  return true;
}

bool OptBuilder::add_keepalive(std::uint16_t hundred_milliseconds) noexcept {
  std::uint8_t* out = begin_option(kOptionKeepalive, 2);
  if (out == nullptr) return false;
  store_be16(out, hundred_milliseconds);
  return true;
}

bool OptBuilder::add_expire(std::uint32_t seconds) noexcept {
  std::uint8_t* out = begin_option(kOptionExpire, 4);
  if (out == nullptr) return false;
  store_be32(out, seconds);
  return true;
}

bool OptBuilder::add_zone_version(std::uint8_t labels, Serial serial) noexcept {
  constexpr std::uint8_t kSoaSerial = 0;  // RFC 9660 §2.2
  std::uint8_t* out = begin_option(kOptionZoneVersion, 6);
  if (out == nullptr) return false;
  out[0] = labels;
  out[1] = kSoaSerial;
  store_be32(out + 2, serial.value);
  return true;
}

bool OptBuilder::add_padding(std::size_t octets) noexcept {
  std::uint8_t* out = begin_option(kOptionPadding, octets);
  if (out == nullptr) return false;
  std::fill_n(out, octets, std::uint8_t{0});
  return true;
}

}  // namespace pando::dns

#include "dns/rdata/svc_values.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "dns/encoding.h"
#include "dns/ip_text.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

/// Calls `item(text)` for each part between commas; stops and returns false when `item` returns
/// false.
template <class Item>
bool for_each_part(std::string_view value, Item&& item) {
  while (true) {
    const std::size_t comma = value.find(',');
    if (!item(value.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    value.remove_prefix(comma + 1);
  }
}

/// Prints fixed-size parts with commas between.
template <class Print>
void print_parts(ByteView value, std::size_t octets, std::string& text, Print&& print) {
  for (std::size_t at = 0; at < value.size(); at += octets) {
    if (at != 0) text += ',';
    print(value.data() + at, text);
  }
}

Status bad_value(std::string_view value) {
  return fail(Errc::kInvalid, "bad value {}", quote_for_message(value));
}

// mandatory: a list of other keys in ascending order (RFC 9460 §8)

Status read_mandatory(std::string_view value, Bytes& out) {
  std::vector<std::uint16_t> keys;
  const bool valid = for_each_part(value, [&](std::string_view part) {
    const auto key = parse_svc_key(part);
    if (key) keys.push_back(*key);
    return key.has_value();
  });
  if (!valid) return bad_value(value);
  std::sort(keys.begin(), keys.end());
  for (const std::uint16_t key : keys) append_be16(out, key);
  return {};
}

Status check_mandatory(ByteView value) {
  if (value.empty() || value.size() % 2 != 0) return fail(Errc::kInvalid, "bad length");
  int last = kSvcMandatory;  // mandatory may not list itself
  for (std::size_t at = 0; at < value.size(); at += 2) {
    const int key = load_be16(value.data() + at);
    if (key <= last) return fail(Errc::kInvalid, "keys not ascending, or 'mandatory' itself");
    last = key;
  }
  return {};
}

void print_mandatory(ByteView value, std::string& text) {
  print_parts(value, 2, text,
              [](const std::uint8_t* p, std::string& to) { to += svc_key_name(load_be16(p)); });
}

// alpn, docpath: octet strings with length octets. In text they have commas, and escapes of their
// own below those of the zone file (RFC 9460 §7.1.1 and appendix A.1).

Status append_list_item(std::string_view value, std::size_t& at, Bytes& out) {
  const std::size_t length_at = out.size();
  out.push_back(0);
  while (at < value.size() && value[at] != ',') {
    if (value[at] == '\\' && ++at == value.size()) return bad_value(value);
    out.push_back(static_cast<std::uint8_t>(value[at++]));
  }
  const std::size_t octets = out.size() - length_at - 1;
  if (octets == 0 || octets > 255) return bad_value(value);
  out[length_at] = static_cast<std::uint8_t>(octets);
  return {};
}

Status read_alpn(std::string_view value, Bytes& out) {
  std::size_t at = 0;
  while (true) {
    if (auto status = append_list_item(value, at, out); !status) return status;
    if (at == value.size()) return {};
    ++at;  // the comma
  }
}

Status read_docpath(std::string_view value, Bytes& out) {
  return value.empty() ? Status() : read_alpn(value, out);
}

/// Checks items with a length octet that fill `value`; an item may not be empty.
Status check_docpath(ByteView value) {
  WireReader wire{value};
  while (wire.left() != 0)
    if (auto status = wire.skip_counted(1); !status) return status;
  return {};
}

Status check_alpn(ByteView value) {
  if (value.empty()) return fail(Errc::kInvalid, "empty");
  return check_docpath(value);
}

void print_alpn(ByteView value, std::string& text) {
  Bytes list;
  WireReader wire{value};
  while (wire.left() != 0) {
    if (!list.empty()) list.push_back(',');
    for (const std::uint8_t octet : wire.take(wire.take_u8())) {
      if (octet == ',' || octet == '\\') list.push_back('\\');
      list.push_back(octet);
    }
  }
  print_quoted(list, text);
}

// no-default-alpn, ohttp: no value (RFC 9460 §7.1.1, RFC 9540 §4)

Status read_nothing(std::string_view value, Bytes&) {
  return value.empty() ? Status() : fail(Errc::kInvalid, "takes no value");
}

Status check_nothing(ByteView value) {
  return value.empty() ? Status() : fail(Errc::kInvalid, "takes no value");
}

void print_nothing(ByteView, std::string&) {}

// port (RFC 9460 §7.2), tls-supported-groups: numbers of 16 bits

Status read_port(std::string_view value, Bytes& out) {
  const auto port = parse_decimal(value, 65535);
  if (!port) return bad_value(value);
  append_be16(out, static_cast<std::uint16_t>(*port));
  return {};
}

Status check_port(ByteView value) {
  return value.size() == 2 ? Status() : fail(Errc::kInvalid, "bad length");
}

Status read_groups(std::string_view value, Bytes& out) {
  const bool valid =
      for_each_part(value, [&](std::string_view part) { return read_port(part, out).has_value(); });
  return valid ? Status() : bad_value(value);
}

/// A list in order of preference without repetition.
Status check_groups(ByteView value) {
  if (value.empty() || value.size() % 2 != 0) return fail(Errc::kInvalid, "bad length");
  std::vector<bool> seen(65536);
  for (std::size_t at = 0; at < value.size(); at += 2) {
    const std::uint16_t group = load_be16(value.data() + at);
    if (seen[group]) return fail(Errc::kInvalid, "{} twice", group);
    seen[group] = true;
  }
  return {};
}

void print_groups(ByteView value, std::string& text) {
  print_parts(value, 2, text,
              [](const std::uint8_t* p, std::string& to) { print_number(load_be16(p), to); });
}

// ipv4hint, ipv6hint (RFC 9460 §7.3)

template <std::size_t Octets, bool (*parse)(std::string_view, std::uint8_t*) noexcept>
Status read_hints(std::string_view value, Bytes& out) {
  const bool valid = for_each_part(value, [&](std::string_view part) {
    std::uint8_t address[Octets];
    if (!parse(part, address)) return false;
    append(out, address);
    return true;
  });
  return valid ? Status() : bad_value(value);
}

template <std::size_t Octets>
Status check_hints(ByteView value) {
  return value.empty() || value.size() % Octets != 0 ? fail(Errc::kInvalid, "bad length")
                                                     : Status();
}

template <std::size_t Octets, void (*print)(const std::uint8_t*, std::string&)>
void print_hints(ByteView value, std::string& text) {
  print_parts(value, Octets, text, print);
}

// ech: base 64 (RFC 9848); the content is not checked, since only client and server use it

Status read_ech(std::string_view value, Bytes& out) {
  Base64Decoder decoder;
  return decoder.feed(value, out) && decoder.finish() ? Status() : bad_value(value);
}

Status check_anything(ByteView) { return {}; }

// dohpath (RFC 9461 §5) and keys that are unknown here: octets

Status read_octets(std::string_view value, Bytes& out) {
  out.insert(out.end(), value.begin(), value.end());
  return {};
}

/// RFC 9461 §5: what stored records have at least; new ones are checked by is_doh_path().
Status check_doh_path(ByteView value) {
  const std::string_view path(reinterpret_cast<const char*>(value.data()), value.size());
  const std::size_t brace = path.find('{');
  if (!path.starts_with('/') || brace == std::string_view::npos ||
      path.find("dns", brace) == std::string_view::npos)
    return fail(Errc::kInvalid, "no path template with {{?dns}}");
  return {};
}

void print_base64(ByteView value, std::string& text) { append_base64(text, value); }

struct SvcKeyRow {
  std::string_view name;
  SvcCodec codec;
};

// IANA "Service Parameter Keys (SvcParamKeys)", by number
constexpr SvcKeyRow kSvcKeys[] = {
    {"mandatory", {read_mandatory, check_mandatory, print_mandatory}},
    {"alpn", {read_alpn, check_alpn, print_alpn}},
    {"no-default-alpn", {read_nothing, check_nothing, print_nothing}},
    {"port", {read_port, check_port, print_groups}},
    {"ipv4hint", {read_hints<4, parse_ipv4>, check_hints<4>, print_hints<4, print_ipv4>}},
    {"ech", {read_ech, check_anything, print_base64}},
    {"ipv6hint", {read_hints<16, parse_ipv6>, check_hints<16>, print_hints<16, print_ipv6>}},
    {"dohpath", {read_octets, check_doh_path, print_quoted}},
    {"ohttp", {read_nothing, check_nothing, print_nothing}},
    {"tls-supported-groups", {read_groups, check_groups, print_groups}},
    {"docpath", {read_docpath, check_docpath, print_alpn}},
};

}  // namespace

const SvcCodec kSvcOctets{read_octets, check_anything, print_quoted};

const SvcCodec& svc_codec(std::uint16_t key) noexcept {
  return key < std::size(kSvcKeys) ? kSvcKeys[key].codec : kSvcOctets;
}

std::optional<std::uint16_t> parse_numbered_svc_key(std::string_view text) noexcept {
  if (!text.starts_with("key") || (text.size() > 4 && text[3] == '0')) return std::nullopt;
  const auto number = parse_decimal(text.substr(3), 65535);
  if (!number) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

std::optional<std::uint16_t> parse_svc_key(std::string_view text) noexcept {
  for (std::size_t i = 0; i < std::size(kSvcKeys); ++i)
    if (text == kSvcKeys[i].name) return static_cast<std::uint16_t>(i);
  return parse_numbered_svc_key(text);
}

std::string svc_key_name(std::uint16_t key) {
  return key < std::size(kSvcKeys) ? std::string(kSvcKeys[key].name) : fmt::format("key{}", key);
}

}  // namespace pando::dns

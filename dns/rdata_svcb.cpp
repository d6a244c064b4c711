#include <algorithm>
#include <array>
#include <vector>

#include "dns/encoding.h"
#include "dns/rdata_field.h"
#include "dns/text.h"

/// The parameters of SVCB and HTTPS (RFC 9460): key, length, value, in ascending order of keys.
namespace pando::dns {

namespace {

// IANA "Service Parameter Keys (SvcParamKeys)"
enum SvcKey : std::uint16_t {
  kMandatory = 0,
  kAlpn = 1,
  kNoDefaultAlpn = 2,
  kPort = 3,
  kIpv4Hint = 4,
  kEch = 5,
  kIpv6Hint = 6,
  kDohPath = 7,
  kOhttp = 8,
  kTlsSupportedGroups = 9,
  kDocPath = 10,
};

/// What a key's value can do. `read` gets the value's text with the escapes of the zone file
/// resolved, without the "key=".
struct SvcCodec {
  Status (*read)(std::string_view value, Bytes& out);
  Status (*check)(ByteView value);
  void (*print)(ByteView value, std::string& text);
};

/// Calls `item(text)` for each part between commas; false as soon as it gives false.
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

// Keys: mnemonic or keyNNNNN without leading zeros (RFC 9460 §2.1).

constexpr std::array<std::string_view, 11> kKeyNames = {
    "mandatory", "alpn",  "no-default-alpn",      "port",   "ipv4hint", "ech", "ipv6hint",
    "dohpath",   "ohttp", "tls-supported-groups", "docpath"};

/// keyNNNNN without leading zeros.
std::optional<std::uint16_t> parse_numbered_key(std::string_view text) noexcept {
  if (!text.starts_with("key") || (text.size() > 4 && text[3] == '0')) return std::nullopt;
  const auto number = parse_decimal(text.substr(3), 65535);
  if (!number) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

std::optional<std::uint16_t> parse_key(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kKeyNames.size(); ++i)
    if (text == kKeyNames[i]) return static_cast<std::uint16_t>(i);
  return parse_numbered_key(text);
}

std::string key_name(std::uint16_t key) {
  return key < kKeyNames.size() ? std::string(kKeyNames[key]) : fmt::format("key{}", key);
}

// mandatory: a list of other keys in ascending order (RFC 9460 §8)

Status read_mandatory(std::string_view value, Bytes& out) {
  std::vector<std::uint16_t> keys;
  const bool valid = for_each_part(value, [&](std::string_view part) {
    const auto key = parse_key(part);
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
  int last = kMandatory;  // which may not be in its own list
  for (std::size_t at = 0; at < value.size(); at += 2) {
    const int key = load_be16(value.data() + at);
    if (key <= last) return fail(Errc::kInvalid, "keys not ascending, or 'mandatory' itself");
    last = key;
  }
  return {};
}

void print_mandatory(ByteView value, std::string& text) {
  print_parts(value, 2, text,
              [](const std::uint8_t* p, std::string& to) { to += key_name(load_be16(p)); });
}

// alpn, docpath: octet strings with length octets; in text with commas, and escapes of their own
// below those of the zone file (RFC 9460 §7.1.1 and appendix A.1)

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

/// Items with a length octet that fill `value`; an item may not be empty.
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

// ech: base 64 (RFC 9848); what is in it is between client and server

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

/// RFC 9461 §5: a relative URI template that has the variable "dns". What else RFC 6570 wants of it
/// is between the zone's owner and his clients.
Status check_doh_path(ByteView value) {
  const std::string_view path(reinterpret_cast<const char*>(value.data()), value.size());
  const std::size_t brace = path.find('{');
  if (!path.starts_with('/') || brace == std::string_view::npos ||
      path.find("dns", brace) == std::string_view::npos)
    return fail(Errc::kInvalid, "no path template with {{?dns}}");
  return {};
}

constexpr SvcCodec kUnknownCodec{read_octets, check_anything, print_quoted};

constexpr SvcCodec kCodecs[] = {
    {read_mandatory, check_mandatory, print_mandatory},
    {read_alpn, check_alpn, print_alpn},
    {read_nothing, check_nothing, print_nothing},
    {read_port, check_port, print_groups},
    {read_hints<4, parse_ipv4>, check_hints<4>, print_hints<4, print_ipv4>},
    {read_ech, check_anything, [](ByteView v, std::string& t) { append_base64(t, v); }},
    {read_hints<16, parse_ipv6>, check_hints<16>, print_hints<16, print_ipv6>},
    {read_octets, check_doh_path, print_quoted},
    {read_nothing, check_nothing, print_nothing},
    {read_groups, check_groups, print_groups},
    {read_docpath, check_docpath, print_alpn},
};
static_assert(std::size(kCodecs) == kKeyNames.size());

const SvcCodec& codec_of(std::uint16_t key) noexcept {
  return key < std::size(kCodecs) ? kCodecs[key] : kUnknownCodec;
}

// The parameters together

/// The value of `key` in checked or unchecked parameters; null when absent.
const std::uint8_t* find_param(ByteView params, std::uint16_t key) noexcept {
  for (std::size_t at = 0; at + 4 <= params.size(); at += 4U + load_be16(params.data() + at + 2))
    if (load_be16(params.data() + at) == key) return params.data() + at + 4;
  return nullptr;
}

Status check_param(WireReader& wire, int& last) {
  if (wire.left() < 4) return fail(Errc::kTruncated, "cut short");
  const std::uint16_t key = wire.take_u16();
  const std::uint16_t octets = wire.take_u16();
  if (wire.left() < octets) return fail(Errc::kTruncated, "cut short");
  // RFC 9460 §2.2: strictly increasing, which also means each key once.
  if (key <= last) return fail(Errc::kInvalid, "keys not in ascending order");
  last = key;
  auto status = codec_of(key).check(wire.take(octets));
  if (status) return {};
  return fail(status.error().code, "{}: {}", key_name(key), status.error().text);
}

/// RFC 9460 §8: each key that is mandatory must be there.
Status check_mandatory_present(ByteView params) {
  const std::uint8_t* list = find_param(params, kMandatory);
  if (list == nullptr) return {};
  const std::size_t octets = load_be16(list - 2);
  for (std::size_t at = 0; at < octets; at += 2) {
    const std::uint16_t key = load_be16(list + at);
    if (find_param(params, key) != nullptr) continue;
    return fail(Errc::kInvalid, "mandatory key {} is missing", key_name(key));
  }
  return {};
}

Status check_svc_params(WireReader& wire) {
  const ByteView params = wire.rest();
  // RFC 9460 §2.4.2: parameters in alias form are ignored by clients; they need only be well
  // formed.
  int last = -1;
  while (wire.left() != 0)
    if (auto status = check_param(wire, last); !status) return status;
  // RFC 9460 §7.1.1: it would leave the client without any protocol.
  if (find_param(params, kNoDefaultAlpn) != nullptr && find_param(params, kAlpn) == nullptr)
    return fail(Errc::kInvalid, "no-default-alpn without alpn");
  return check_mandatory_present(params);
}

bool print_svc_params(WireReader& wire, std::string& text) {
  while (wire.left() != 0) {
    const std::uint16_t key = wire.take_u16();
    const ByteView value = wire.take(wire.take_u16());
    if (text.back() != ' ') text += ' ';
    text += key_name(key);
    if (value.empty()) continue;
    text += '=';
    codec_of(key).print(value, text);
  }
  return true;
}

struct Param {
  std::uint16_t key;
  Bytes value;
};

/// The value behind `key` and '=': what is left of the word, or the quoted word that touches it.
std::string_view take_value(TextReader& text, std::string_view word, std::size_t equals) {
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  const Token* next = text.peek();
  if (equals + 1 != word.size() || next == nullptr || !next->quoted ||
      next->text.data() != word.data() + word.size() + 1)
    return value;
  text.step();
  return next->text;
}

/// Resolves the escapes of the zone file, then reads the form of the key; keyNNNNN has octets.
Status read_value(std::string_view key_text, std::string_view value, Param& param) {
  Bytes raw;
  if (auto status = append_unescaped(value, kMaxRdataOctets, raw); !status) return status;
  const SvcCodec& codec = parse_numbered_key(key_text) ? kUnknownCodec : codec_of(param.key);
  auto status = codec.read({reinterpret_cast<const char*>(raw.data()), raw.size()}, param.value);
  if (status && param.value.size() > kMaxRdataOctets) return fail(Errc::kInvalid, "too long");
  return status;
}

/// KEY, KEY=VALUE or KEY="VALUE"; the last is two words that touch (RFC 9460 §2.1).
Result<Param> read_param(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  const std::size_t equals = std::min(word->find('='), word->size());
  const std::string_view key_text = word->substr(0, equals);
  const auto key = parse_key(key_text);
  if (!key) return fail(Errc::kInvalid, "unknown key {}", quote_for_message(key_text));
  Param param{*key, {}};
  if (auto status = read_value(key_text, take_value(text, *word, equals), param); !status)
    return fail(Errc::kInvalid, "{}: {}", key_text, status.error().text);
  return param;
}

Status read_svc_params(TextReader& text) {
  std::vector<Param> params;
  while (!text.at_end()) {
    auto param = read_param(text);
    if (!param) return pass(param);
    params.push_back(std::move(*param));
  }
  std::sort(params.begin(), params.end(),
            [](const Param& a, const Param& b) { return a.key < b.key; });
  const auto twice = std::adjacent_find(
      params.begin(), params.end(), [](const Param& a, const Param& b) { return a.key == b.key; });
  if (twice != params.end()) return fail(Errc::kInvalid, "{} twice", key_name(twice->key));
  const std::size_t start = text.written().size();
  for (const Param& param : params) {
    append_be16(text.out(), param.key);
    append_be16(text.out(), static_cast<std::uint16_t>(param.value.size()));
    append(text.out(), param.value);
  }
  WireReader wire{text.written(), 0, start};
  return check_svc_params(wire);
}

}  // namespace

namespace field {
const FieldCodec kSvcParams{read_svc_params, check_svc_params, print_svc_params};
}  // namespace field

}  // namespace pando::dns

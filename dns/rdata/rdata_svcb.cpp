#include <algorithm>
#include <vector>

#include "dns/rdata/path_template.h"
#include "dns/rdata/rdata_field.h"
#include "dns/rdata/svc_values.h"
#include "dns/text.h"

/// The parameters of SVCB and HTTPS (RFC 9460): key, length, value, in ascending order of keys.
namespace pando::dns {

namespace {

/// The value of `key` in checked or unchecked parameters; null when absent.
const std::uint8_t* find_param(ByteView params, std::uint16_t key) noexcept {
  for (std::size_t at = 0; at + 4 <= params.size(); at += 4U + load_be16(params.data() + at + 2))
    if (load_be16(params.data() + at) == key) return params.data() + at + 4;
  return nullptr;
}

Status check_doh_path_form(ByteView value) {
  if (is_doh_path({reinterpret_cast<const char*>(value.data()), value.size()})) return {};
  return fail(Errc::kInvalid, "no path template with {{?dns}}");
}

Status check_param(WireReader& wire, int& last) {
  if (wire.left() < 4) return fail(Errc::kTruncated, "cut short");
  const std::uint16_t key = wire.take_u16();
  const std::uint16_t octets = wire.take_u16();
  if (wire.left() < octets) return fail(Errc::kTruncated, "cut short");
  // RFC 9460 §2.2: strictly increasing, which also means each key once.
  if (key <= last) return fail(Errc::kInvalid, "keys not in ascending order");
  last = key;
  const ByteView value = wire.take(octets);
  auto status = svc_codec(key).check(value);
  if (status && key == kSvcDohPath && !wire.is_stored) status = check_doh_path_form(value);
  if (status) return {};
  return fail(status.error().code, "{}: {}", svc_key_name(key), status.error().text);
}

/// RFC 9460 §8: each mandatory key must be present.
Status check_mandatory_present(ByteView params) {
  const std::uint8_t* list = find_param(params, kSvcMandatory);
  if (list == nullptr) return {};
  const std::size_t octets = load_be16(list - 2);
  for (std::size_t at = 0; at < octets; at += 2) {
    const std::uint16_t key = load_be16(list + at);
    if (find_param(params, key) != nullptr) continue;
    return fail(Errc::kInvalid, "mandatory key {} is missing", svc_key_name(key));
  }
  return {};
}

Status check_svc_params(WireReader& wire) {
  const ByteView params = wire.rest();
  // RFC 9460 §2.4.2: clients ignore parameters in alias form; the parameters need only be well
  // formed.
  int last = -1;
  while (wire.left() != 0)
    if (auto status = check_param(wire, last); !status) return status;
  // RFC 9460 §7.1.1: no-default-alpn without alpn would leave the client without any protocol.
  if (find_param(params, kSvcNoDefaultAlpn) != nullptr && find_param(params, kSvcAlpn) == nullptr)
    return fail(Errc::kInvalid, "no-default-alpn without alpn");
  return check_mandatory_present(params);
}

bool print_svc_params(WireReader& wire, std::string& text) {
  while (wire.left() != 0) {
    const std::uint16_t key = wire.take_u16();
    const ByteView value = wire.take(wire.take_u16());
    if (text.back() != ' ') text += ' ';
    text += svc_key_name(key);
    if (value.empty()) continue;
    text += '=';
    svc_codec(key).print(value, text);
  }
  return true;
}

struct Param {
  std::uint16_t key;
  Bytes value;
};

/// The value after `key` and '=': the rest of the word, or the quoted word that touches it.
std::string_view take_value(TextReader& text, std::string_view word, std::size_t equals) {
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  const Token* next = text.peek();
  if (equals + 1 != word.size() || next == nullptr || !next->quoted ||
      next->text.data() != word.data() + word.size() + 1)
    return value;
  text.step();
  return next->text;
}

/// Resolves the escapes of the zone file, then reads the key's form; keyNNNNN takes octets.
Status read_value(std::string_view key_text, std::string_view value, Param& param) {
  Bytes raw;
  if (auto status = append_unescaped(value, kMaxRdataOctets, raw); !status) return status;
  const SvcCodec& codec = parse_numbered_svc_key(key_text) ? kSvcOctets : svc_codec(param.key);
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
  const auto key = parse_svc_key(key_text);
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
  if (twice != params.end()) return fail(Errc::kInvalid, "{} twice", svc_key_name(twice->key));
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

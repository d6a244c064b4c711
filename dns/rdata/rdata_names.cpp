#include "dns/rdata/rdata_field.h"

namespace pando::dns {

namespace {

Status read_name_field(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  return append_name(*word, text.origin(), text.out());
}

bool print_name(WireReader& wire, std::string& text) {
  text += to_text(take_name(wire));
  return true;
}

// RFC 2874 §3.1: the prefix name is absent when the prefix length, the first octet, is 0.

Status read_a6_name(TextReader& text) {
  return text.written()[0] == 0 ? Status() : read_name_field(text);
}

Status check_a6_name(WireReader& wire) { return wire.octet(0) == 0 ? Status() : check_name(wire); }

bool print_a6_name(WireReader& wire, std::string& text) {
  return wire.octet(0) == 0 || print_name(wire, text);
}

}  // namespace

Status append_name(std::string_view text, NameView origin, Bytes& out) {
  std::uint8_t name[kMaxNameOctets];
  auto size = name_from_text(text, origin, name);
  if (!size) return pass(size);
  out.insert(out.end(), name, name + *size);
  return {};
}

Status check_name(WireReader& wire) {
  const std::size_t length = wire_name_length(wire.rest());
  if (length == 0) return fail(Errc::kInvalid, "{}", wire.left() == 0 ? "missing" : "bad name");
  wire.at += length;
  return {};
}

NameView take_name(WireReader& wire) noexcept {
  const ByteView name = wire.take(wire_name_length(wire.rest()));
  return {name.data(), name.size()};
}

namespace field {

const FieldCodec kName{read_name_field, check_name, print_name};
const FieldCodec kA6Name{read_a6_name, check_a6_name, print_a6_name};

}  // namespace field
}  // namespace pando::dns

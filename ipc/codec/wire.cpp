#include "ipc/codec/wire.h"

#include <algorithm>

namespace pando::ipc {

void Encoder::u64(std::uint64_t value) {
  u32(static_cast<std::uint32_t>(value >> 32));
  u32(static_cast<std::uint32_t>(value));
}

void Encoder::bytes(ByteView value) {
  u32(static_cast<std::uint32_t>(value.size()));
  append(out_, value);
}

void Encoder::text(std::string_view value) {
  bytes({reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
}

void Encoder::endpoint(const Endpoint& value) {
  append(out_, value.address.octets);
  u16(value.port);
}

std::uint8_t Decoder::choice(std::uint8_t max) noexcept {
  const std::uint8_t value = u8();
  if (value <= max) return value;
  reject();
  return 0;
}

std::string Decoder::text() {
  const ByteView view = bytes();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

dns::Name Decoder::name() {
  auto name = dns::Name::from_wire(bytes());
  if (!name) reject();
  return name.value_or(dns::Name());
}

Endpoint Decoder::endpoint() noexcept {
  Endpoint value;
  std::ranges::copy(octets(value.address.octets.size()), value.address.octets.begin());
  value.port = u16();
  return value;
}

Status Decoder::finish() const {
  if (!ok()) return fail(Errc::kInvalid, "a field of the packet is cut short or out of range");
  if (!left().empty()) return fail(Errc::kInvalid, "bytes behind the end of the message");
  return {};
}

}  // namespace pando::ipc

#include "ipc/wire.h"

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

const std::uint8_t* Decoder::take(std::size_t bytes) noexcept {
  if (failed_ || bytes > in_.size() - at_) {
    fail_field();
    return nullptr;
  }
  const std::uint8_t* found = in_.data() + at_;
  at_ += bytes;
  return found;
}

std::uint8_t Decoder::u8() noexcept {
  const auto* p = take(1);
  return p == nullptr ? std::uint8_t{0} : *p;
}

std::uint16_t Decoder::u16() noexcept {
  const auto* p = take(2);
  return p == nullptr ? std::uint16_t{0} : load_be16(p);
}

std::uint32_t Decoder::u32() noexcept {
  const auto* p = take(4);
  return p == nullptr ? 0U : load_be32(p);
}

std::uint64_t Decoder::u64() noexcept {
  const auto* p = take(8);
  return p == nullptr ? 0U : load_be64(p);
}

bool Decoder::boolean() noexcept { return choice(1) == 1; }

std::uint8_t Decoder::choice(std::uint8_t max) noexcept {
  const std::uint8_t value = u8();
  if (value <= max) return value;
  fail_field();
  return 0;
}

ByteView Decoder::bytes() noexcept {
  const std::uint32_t length = u32();
  const auto* p = take(length);
  return p == nullptr ? ByteView{} : ByteView{p, length};
}

std::string Decoder::text() {
  const ByteView view = bytes();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

dns::Name Decoder::name() {
  auto name = dns::Name::from_wire(bytes());
  if (name) return *name;
  fail_field();
  return {};
}

Endpoint Decoder::endpoint() noexcept {
  Endpoint value;
  if (const auto* p = take(value.address.octets.size()); p != nullptr)
    std::memcpy(value.address.octets.data(), p, value.address.octets.size());
  value.port = u16();
  return value;
}

std::size_t Decoder::count(std::size_t least_bytes) noexcept {
  const std::uint32_t value = u32();
  if (!failed_ && value <= (in_.size() - at_) / least_bytes) return value;
  fail_field();
  return 0;
}

Status Decoder::finish() const {
  if (failed_) return fail(Errc::kInvalid, "a field of the packet is cut short or out of range");
  if (at_ != in_.size()) return fail(Errc::kInvalid, "bytes behind the end of the message");
  return {};
}

}  // namespace pando::ipc

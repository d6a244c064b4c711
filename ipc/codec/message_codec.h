#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "ipc/codec/wire.h"

/// Messages as packets: fields in a fixed order, big-endian, without copied structs. `Fields` knows
/// the messages of one protocol: of(message) ties the fields of a message, last(enumerator) gives
/// the last enumerator of its type.
namespace pando::ipc {

/// For functions about one message, whether it is written or read.
template <class Message, class T>
concept Is = std::same_as<std::remove_const_t<Message>, T>;

/// Writes values of each type that a message has.
template <class Fields>
class ValueWriter {
 public:
  explicit ValueWriter(Encoder& out) : out_(out) {}

  void put(bool value) { out_.boolean(value); }
  void put(std::uint32_t value) { out_.u32(value); }
  void put(std::uint64_t value) { out_.u64(value); }
  void put(const std::string& value) { out_.text(value); }
  void put(const Bytes& value) { out_.bytes(value); }
  void put(const dns::Name& value) { out_.name(value); }
  void put(const Endpoint& value) { out_.endpoint(value); }
  void put(const IpPrefix& value) {
    put(value.address.octets);
    out_.u8(value.length);
  }
  template <std::size_t N>
  void put(const std::array<std::uint8_t, N>& value) {
    for (const std::uint8_t octet : value) out_.u8(octet);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const T& element : list) put(element);
  }
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>)
      out_.u8(static_cast<std::uint8_t>(value));
    else
      std::apply([&](const auto&... field) { (put(field), ...); }, Fields::of(value));
  }

 private:
  Encoder& out_;
};

/// Reads what ValueWriter wrote.
template <class Fields>
class ValueReader {
 public:
  explicit ValueReader(Decoder& in) : in_(in) {}

  void get(bool& value) { value = in_.boolean(); }
  void get(std::uint32_t& value) { value = in_.u32(); }
  void get(std::uint64_t& value) { value = in_.u64(); }
  void get(std::string& value) { value = in_.text(); }
  void get(Bytes& value) {
    const ByteView bytes = in_.bytes();
    value.assign(bytes.begin(), bytes.end());
  }
  void get(dns::Name& value) { value = in_.name(); }
  void get(Endpoint& value) { value = in_.endpoint(); }
  void get(IpPrefix& value) {
    get(value.address.octets);
    value.length = in_.choice(128);
  }
  template <std::size_t N>
  void get(std::array<std::uint8_t, N>& value) {
    for (std::uint8_t& octet : value) octet = in_.u8();
  }
  template <class T>
  void get(std::optional<T>& value) {
    if (in_.boolean()) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& list) {
    Bytes shortest;  // no element takes less than an empty one
    Encoder out(shortest);
    ValueWriter<Fields>(out).put(T{});
    list.resize(in_.count(shortest.size()));
    for (T& element : list) get(element);
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_enum_v<T>)
      value = static_cast<T>(in_.choice(static_cast<std::uint8_t>(Fields::last(value))));
    else
      std::apply([&](auto&... field) { (get(field), ...); }, Fields::of(value));
  }

 private:
  Decoder& in_;
};

/// Packets of one protocol. Each starts with the protocol's version (16 bits) and the number of the
/// message (8 bits): its position in its variant.
template <class Fields, std::uint16_t kVersion>
class MessageCodec {
 public:
  template <class Variant>
  static Bytes encode(const Variant& message) {
    Bytes packet;
    Encoder out(packet);
    out.u16(kVersion);
    out.u8(static_cast<std::uint8_t>(message.index()));
    std::visit([&](const auto& body) { ValueWriter<Fields>(out).put(body); }, message);
    return packet;
  }

  /// kInvalid or kTruncated for anything that is not exactly one message; kUnsupported for another
  /// version.
  template <class Variant>
  static Result<Variant> decode(ByteView packet) {
    Decoder in(packet);
    const std::uint16_t version = in.u16();
    if (!in.failed() && version != kVersion)
      return fail(Errc::kUnsupported, "the other side speaks protocol {}, not {}", version,
                  kVersion);
    Variant message;
    if (const auto number = in.u8(); !emplace_at(message, number))
      return fail(Errc::kInvalid, "unknown message {}", number);
    std::visit([&](auto& body) { ValueReader<Fields>(in).get(body); }, message);
    if (auto done = in.finish(); !done) return pass(done);
    return message;
  }

 private:
  /// Makes the alternative with number `index` current; false when there is none.
  template <class Variant, std::size_t I = 0>
  static bool emplace_at(Variant& message, std::size_t index) {
    if constexpr (I < std::variant_size_v<Variant>) {
      if (index != I) return emplace_at<Variant, I + 1>(message, index);
      message.template emplace<I>();
      return true;
    } else {
      return false;
    }
  }
};

}  // namespace pando::ipc

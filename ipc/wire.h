#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"

namespace pando::ipc {

/// Appends explicit big-endian fields to a packet.
class Encoder {
 public:
  explicit Encoder(Bytes& out) noexcept : out_(out) {}
  void u8(std::uint8_t value) { out_.push_back(value); }
  void u16(std::uint16_t value) { append_be16(out_, value); }
  void u32(std::uint32_t value) { append_be32(out_, value); }
  void u64(std::uint64_t value);
  void boolean(bool value) { u8(value ? 1 : 0); }
  void bytes(ByteView value);  ///< u32 length, bytes
  void text(std::string_view value);
  void name(dns::NameView value) { bytes(value.bytes()); }
  void endpoint(const Endpoint& value);

 private:
  Bytes& out_;
};

/// Reads the fields that Encoder wrote. The first bad field makes the decoder fail for good: later
/// reads give zeros. So a message is read field by field and checked once, by finish().
class Decoder {
 public:
  explicit Decoder(ByteView in) noexcept : in_(in) {}
  std::uint8_t u8() noexcept;
  std::uint16_t u16() noexcept;
  std::uint32_t u32() noexcept;
  std::uint64_t u64() noexcept;
  bool boolean() noexcept;                         ///< anything but 0 and 1 is bad
  std::uint8_t choice(std::uint8_t max) noexcept;  ///< an enumerator from 0 to `max`
  ByteView bytes() noexcept;
  std::string text();
  dns::Name name();
  Endpoint endpoint() noexcept;
  /// A count of items that each take at least `least_bytes`; a count beyond the rest of the packet
  /// is bad.
  std::size_t count(std::size_t least_bytes) noexcept;

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// kTruncated or kInvalid when a field was bad or bytes are left over.
  [[nodiscard]] Status finish() const;

 private:
  const std::uint8_t* take(std::size_t bytes) noexcept;
  void fail_field() noexcept { failed_ = true; }

  ByteView in_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace pando::ipc

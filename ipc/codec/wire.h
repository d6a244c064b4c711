#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dns/field_reader.h"
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
class Decoder : public dns::FieldReader {
 public:
  using FieldReader::FieldReader;
  bool boolean() noexcept { return choice(1) == 1; }  ///< anything but 0 and 1 is bad
  std::uint8_t choice(std::uint8_t max) noexcept;     ///< an enumerator from 0 to `max`
  ByteView bytes() noexcept { return octets(u32()); }
  std::string text();
  dns::Name name();
  Endpoint endpoint() noexcept;

  [[nodiscard]] bool failed() const noexcept { return !ok(); }
  /// kInvalid when a field was bad or bytes are left over.
  [[nodiscard]] Status finish() const;
};

}  // namespace pando::ipc

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "dns/name.h"

namespace pando::dns {

/// Takes fields off the front of bytes that may be damaged or hostile. After the first field that
/// is cut off or wrong all fields read as zero, so that one look at ok() or done() is enough.
class FieldReader {
 public:
  explicit FieldReader(ByteView bytes) noexcept : left_(bytes) {}

  std::uint8_t u8() noexcept { return *take(1); }
  std::uint16_t u16() noexcept { return load_be16(take(2)); }
  std::uint32_t u32() noexcept { return load_be32(take(4)); }
  std::uint64_t u64() noexcept { return load_be64(take(8)); }
  /// So many octets, or none.
  ByteView octets(std::size_t count) noexcept {
    ok_ = ok_ && count <= left_.size();
    if (!ok_) return {};
    const ByteView taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  /// A name in wire format, uncompressed; the root if there is none.
  Name wire_name() noexcept {
    const ByteView taken = octets(wire_name_length(left_));
    if (taken.empty()) ok_ = false;
    return ok_ ? Name(NameView(taken.data(), taken.size())) : Name();
  }
  /// A count of items that take at least `least_octets` each: damage cannot make it huge.
  std::uint32_t count(std::size_t least_octets) noexcept {
    const std::uint32_t value = u32();
    if (value > left_.size() / least_octets) ok_ = false;
    return ok_ ? value : 0;
  }
  /// A field was wrong.
  void reject() noexcept { ok_ = false; }

  [[nodiscard]] ByteView left() const noexcept { return left_; }
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// Whether all fields were right and nothing is left.
  [[nodiscard]] bool done() const noexcept { return ok_ && left_.empty(); }

 private:
  const std::uint8_t* take(std::size_t count) noexcept {
    static constexpr std::uint8_t kZeros[8] = {};
    const ByteView taken = octets(count);
    return taken.empty() ? kZeros : taken.data();
  }

  ByteView left_;
  bool ok_ = true;
};

}  // namespace pando::dns

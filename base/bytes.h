#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace pando {

/// Bytes that are read, not owned.
using ByteView = std::span<const std::uint8_t>;
using Bytes = std::vector<std::uint8_t>;

/// Big-endian ("network order", RFC 1035 §2.3.2) loads and stores; no alignment needed.
inline std::uint16_t load_be16(const std::uint8_t* p) noexcept {
  return static_cast<std::uint16_t>((p[0] << 8) | p[1]);
}
inline std::uint32_t load_be32(const std::uint8_t* p) noexcept {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return __builtin_bswap32(value);
}
inline std::uint64_t load_be64(const std::uint8_t* p) noexcept {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return __builtin_bswap64(value);
}
inline void store_be16(std::uint8_t* p, std::uint16_t value) noexcept {
  p[0] = static_cast<std::uint8_t>(value >> 8);
  p[1] = static_cast<std::uint8_t>(value);
}
inline void store_be32(std::uint8_t* p, std::uint32_t value) noexcept {
  value = __builtin_bswap32(value);
  std::memcpy(p, &value, sizeof value);
}
inline void store_be64(std::uint8_t* p, std::uint64_t value) noexcept {
  value = __builtin_bswap64(value);
  std::memcpy(p, &value, sizeof value);
}

inline void append_be16(Bytes& out, std::uint16_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}
inline void append_be32(Bytes& out, std::uint32_t value) {
  append_be16(out, static_cast<std::uint16_t>(value >> 16));
  append_be16(out, static_cast<std::uint16_t>(value));
}
inline void append_be64(Bytes& out, std::uint64_t value) {
  append_be32(out, static_cast<std::uint32_t>(value >> 32));
  append_be32(out, static_cast<std::uint32_t>(value));
}
inline void append(Bytes& out, ByteView bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

[[nodiscard]] inline ByteView bytes_of_text(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Order of two texts of bytes, below, at or above 0: a text comes before those that begin with it.
[[nodiscard]] inline int compare_bytes(ByteView a, ByteView b) noexcept {
  const std::size_t shorter = a.size() < b.size() ? a.size() : b.size();
  const int order = shorter == 0 ? 0 : std::memcmp(a.data(), b.data(), shorter);
  if (order != 0 || a.size() == b.size()) return order;
  return a.size() < b.size() ? -1 : 1;
}

}  // namespace pando

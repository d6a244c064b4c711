#pragma once

#include <string>
#include <string_view>

#include "dns/name.h"

namespace pando::dns {

/// The name's octets in wire format and lower case, as a key of maps and sets. Two names have the
/// same key if, and only if, they are equal (RFC 4343 §3).
[[nodiscard]] inline std::string folded_key(NameView name) {
  const Name folded = Name(name).folded();
  return {reinterpret_cast<const char*>(folded.data()), folded.size()};
}

/// The name, in lower case, from which folded_key() made `key`. Valid as long as the key.
[[nodiscard]] inline NameView name_of_key(std::string_view key) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(key.data()), key.size()};
}

}  // namespace pando::dns

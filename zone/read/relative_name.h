#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"

/// The names of servers below the delegation that they serve, as records store them: without the
/// owner's part, which the record has already. The name is cut octet by octet, so the restored name
/// keeps its spelling.
namespace pando::zone {

/// The type whose RDATA, one name, is stored in relative form.
inline constexpr dns::RRType kRelativeType = dns::RRType::kNS;

/// A record's owner. The labels are as stored, so they may be damaged. The apex's spelling does not
/// matter: versions of a zone may spell it differently.
struct OwnerName {
  ByteView labels;
  dns::NameView apex;
};

/// A whole name ends with the root's octet, which is 0; a name without the owner's part does not.
[[nodiscard]] inline bool is_relative(ByteView stored) noexcept {
  return stored.empty() || stored.back() != 0;
}

/// The stored form of a server's name. When the name ends with exactly the owner's labels and the
/// apex in lower case, the form is the octets before these. Else the form is the whole name.
[[nodiscard]] ByteView relative_form(ByteView name, const OwnerName& owner) noexcept;

/// Room for the longest name, for whole_name().
using NameRoom = std::array<std::uint8_t, dns::kMaxNameOctets>;

/// Restores a name for which is_relative() is true, in `room`. In a sound store the octets form a
/// name; empty when they are too many for one.
[[nodiscard]] ByteView whole_name(ByteView stored, const OwnerName& owner, NameRoom& room) noexcept;

}  // namespace pando::zone

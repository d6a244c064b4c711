#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"

/// The names of servers below the delegation that they serve, as records have them: without the
/// owner's part, which the record has already. Since the name is cut by octets, what is made whole
/// again is what was there, in its spelling.
namespace pando::zone {

/// The type whose RDATA, one name, is kept so.
inline constexpr dns::RRType kRelativeType = dns::RRType::kNS;

/// A record's owner. The labels are as stored, so they may be damaged; of the apex only the name
/// counts, not how it is spelt: versions of a zone may spell it differently.
struct OwnerName {
  ByteView labels;
  dns::NameView apex;
};

/// A whole name ends with the root's octet, which is 0; one without the owner's part does not.
[[nodiscard]] inline bool is_relative(ByteView stored) noexcept {
  return stored.empty() || stored.back() != 0;
}

/// What is stored for a server's name: the octets before the owner's labels and the apex in lower
/// case, when the name ends with just these; else all of it.
[[nodiscard]] ByteView relative_form(ByteView name, const OwnerName& owner) noexcept;

/// Octets of the longest name, for whole_name().
using NameRoom = std::array<std::uint8_t, dns::kMaxNameOctets>;

/// The name that is_relative(), made whole in `room`. The octets of a sound store are a name then;
/// empty when they are too many for one.
[[nodiscard]] ByteView whole_name(ByteView stored, const OwnerName& owner, NameRoom& room) noexcept;

}  // namespace pando::zone

#include "zone/read/relative_name.h"

#include <algorithm>

#include "dns/octet_words.h"

namespace pando::zone {

namespace {

std::uint8_t fold(std::uint8_t octet) noexcept { return dns::kFoldCase[octet]; }

std::uint8_t* copy_labels(std::uint8_t* out, ByteView in) noexcept {
  dns::copy_octets(out, in.data(), in.size());
  return out + in.size();
}

}  // namespace

ByteView relative_form(ByteView name, const OwnerName& owner) noexcept {
  const std::size_t rest = owner.labels.size() + owner.apex.size();
  if (name.size() < rest) return name;
  const ByteView before = name.first(name.size() - rest);
  // If the rest ended with octet 0, its relative form would look like a whole name.
  if (!is_relative(before)) return name;
  const auto* const labels = before.data() + before.size();
  const auto* const apex = labels + owner.labels.size();
  const ByteView to = owner.apex.bytes();
  const bool same = std::equal(owner.labels.begin(), owner.labels.end(), labels) &&
                    std::equal(to.begin(), to.end(), apex,
                               [](std::uint8_t a, std::uint8_t b) { return fold(a) == b; });
  return same ? before : name;
}

ByteView whole_name(ByteView stored, const OwnerName& owner, NameRoom& room) noexcept {
  const std::size_t octets = stored.size() + owner.labels.size() + owner.apex.size();
  if (octets > room.size()) return {};
  auto* out = copy_labels(copy_labels(room.data(), stored), owner.labels);
  const ByteView apex = owner.apex.bytes();
  std::transform(apex.begin(), apex.end(), out, fold);
  return {room.data(), octets};
}

}  // namespace pando::zone

#include "zone/dnssec/nsec3_chain.h"

#include <algorithm>
#include <utility>

namespace pando::zone {

void Nsec3Chain::add(const dns::Nsec3Hash& hash, ByteView type_bitmap) {
  links_.push_back({hash, number_of(type_bitmap)});
}

std::uint32_t Nsec3Chain::number_of(ByteView type_bitmap) {
  const auto [found, is_new] = numbers_.try_emplace(Bytes(type_bitmap.begin(), type_bitmap.end()),
                                                    static_cast<std::uint32_t>(bitmaps_.size()));
  if (is_new) bitmaps_.push_back(&found->first);
  return found->second;
}

void Nsec3Chain::add_all(Nsec3Chain&& other) {
  if (links_.empty() && bitmaps_.empty()) return static_cast<void>(*this = std::move(other));
  std::vector<std::uint32_t> numbers;
  for (const Bytes* bitmap : other.bitmaps_) numbers.push_back(number_of(*bitmap));
  links_.reserve(links_.size() + other.links_.size());
  for (const Link& link : other.links_) links_.push_back({link.hash, numbers[link.bitmap]});
  other = {};
}

Status Nsec3Chain::close() {
  std::ranges::sort(links_, {}, &Link::hash);
  if (std::ranges::adjacent_find(links_, {}, &Link::hash) == links_.end()) return {};
  return fail(Errc::kInvalid, "two names have the same NSEC3 hash: the zone needs another salt");
}

}  // namespace pando::zone

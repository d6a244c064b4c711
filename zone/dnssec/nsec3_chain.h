#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/dnssec/nsec3_hash.h"

namespace pando::zone {

/// The links of an NSEC3 chain. All hashes must be known before a record can name the next one, so
/// they are collected: 24 bytes each, since names share type bitmaps.
class Nsec3Chain {
 public:
  Nsec3Chain() = default;
  Nsec3Chain(Nsec3Chain&&) = default;
  Nsec3Chain& operator=(Nsec3Chain&&) = default;
  Nsec3Chain(const Nsec3Chain&) = delete;  // bitmaps_ points into the other one
  Nsec3Chain& operator=(const Nsec3Chain&) = delete;

  void add(const dns::Nsec3Hash& hash, ByteView type_bitmap);
  /// Adds the links of another chain of the same zone.
  void add_all(Nsec3Chain&& other);
  /// Puts the links in the order of their hashes. kInvalid: two names have one hash, so the zone
  /// needs another salt (RFC 5155 §7.1).
  Status close();

  [[nodiscard]] std::size_t size() const noexcept { return links_.size(); }
  // After close():
  [[nodiscard]] const dns::Nsec3Hash& hash(std::size_t index) const { return links_[index].hash; }
  /// The hash of the next link; behind the last one it is the first.
  [[nodiscard]] const dns::Nsec3Hash& next(std::size_t index) const {
    return links_[index + 1 == links_.size() ? 0 : index + 1].hash;
  }
  [[nodiscard]] ByteView type_bitmap(std::size_t index) const {
    return *bitmaps_[links_[index].bitmap];
  }

 private:
  struct Link {
    dns::Nsec3Hash hash;
    std::uint32_t bitmap;  // index in bitmaps_
  };
  std::uint32_t number_of(ByteView type_bitmap);

  std::vector<Link> links_;
  std::map<Bytes, std::uint32_t, std::less<>> numbers_;
  std::vector<const Bytes*> bitmaps_;  // keys of numbers_, which do not move
};

}  // namespace pando::zone

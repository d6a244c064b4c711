#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "dns/name.h"

namespace pando::dns {

/// An owned name as a pointer to exactly its octets. In lists of millions, the 256 octets of a Name
/// would be most of the memory. The root and a moved-from name have no octets.
class HeapName {
 public:
  HeapName() noexcept = default;
  HeapName(const Name& name) : HeapName(name.view()) {}  // NOLINT: a Name may be kept as one
  explicit HeapName(NameView name) {
    if (name.is_root()) return;
    octets_ = std::make_unique_for_overwrite<std::uint8_t[]>(name.size() + 1);
    octets_[0] = static_cast<std::uint8_t>(name.size());
    std::memcpy(octets_.get() + 1, name.data(), name.size());
  }
  HeapName(const HeapName& other) : HeapName(other.view()) {}
  HeapName& operator=(const HeapName& other) {
    *this = HeapName(other.view());
    return *this;
  }
  HeapName(HeapName&&) noexcept = default;
  HeapName& operator=(HeapName&&) noexcept = default;
  ~HeapName() = default;

  operator NameView() const noexcept { return view(); }  // NOLINT: as Name
  [[nodiscard]] NameView view() const noexcept {
    return octets_ ? NameView(octets_.get() + 1, octets_[0]) : NameView();
  }
  [[nodiscard]] std::size_t size() const noexcept { return view().size(); }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return view().data(); }

 private:
  std::unique_ptr<std::uint8_t[]> octets_;  // length, name
};

static_assert(sizeof(HeapName) == sizeof(void*), "lists of records would grow");

}  // namespace pando::dns

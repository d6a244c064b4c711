#pragma once

#include <cstddef>
#include <cstdint>

namespace pando::shm {

/// Bytes a reference counts in. 8 gives a reach of 32 GiB; a layout constant.
inline constexpr std::size_t kUnit = 8;
inline constexpr std::uint64_t kReach = (std::uint64_t{1} << 32) * kUnit;
/// Offset of the first block. Before it are tables with holes, where a read would take memory.
inline constexpr std::uint64_t kFirstBlock = std::uint64_t{132} << 20;

/// Position of a T in the store, in units from its start; 0 is "none" (the header is there).
/// Four bytes, trivially copyable, valid in each process wherever the store is mapped.
template <class T = std::byte>
struct Ref {
  std::uint32_t units = 0;

  constexpr explicit operator bool() const noexcept { return units != 0; }
  constexpr bool operator==(const Ref&) const noexcept = default;
  [[nodiscard]] constexpr std::uint64_t offset() const noexcept {
    return std::uint64_t{units} * kUnit;
  }
  template <class U>
  [[nodiscard]] constexpr Ref<U> as() const noexcept {
    return Ref<U>{units};
  }
};

/// Size of a block as allocated: rounded up to whole units.
[[nodiscard]] constexpr std::size_t block_bytes(std::size_t bytes) noexcept {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// A reader's window on the mapped store. Every reference that a reader follows is checked against
/// `limit`, so a corrupted store gives "none" (hence SERVFAIL) and never a fault.
class Window {
 public:
  constexpr Window() noexcept = default;
  constexpr Window(const std::byte* base, std::uint64_t limit) noexcept
      : base_(base), limit_(limit) {}

  /// The block at `ref` when [ref, ref + bytes) lies where blocks are, else nullptr.
  template <class T>
  [[nodiscard]] const T* at(Ref<T> ref, std::size_t bytes = sizeof(T)) const noexcept {
    const std::uint64_t offset = ref.offset();
    if (offset < kFirstBlock || offset + bytes > limit_) [[unlikely]]
      return nullptr;
    return reinterpret_cast<const T*>(base_ + offset);
  }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] const std::byte* base() const noexcept { return base_; }
  /// Bytes from `p` (a pointer into the window) to the end.
  [[nodiscard]] std::uint64_t room_after(const void* p) const noexcept {
    return limit_ - static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base_);
  }

 private:
  const std::byte* base_ = nullptr;
  std::uint64_t limit_ = 0;
};

}  // namespace pando::shm

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

struct xdp_ring_offset;

namespace pando::worker {

/// One ring that this process and the kernel share (AF_XDP, Documentation/networking/af_xdp.rst).
/// The producer's and the consumer's positions only increase (modulo 2^32). Each side writes its
/// own position with release and reads the other's with acquire, so that entries are whole when
/// they are seen.
class XdpRing {
 public:
  XdpRing() = default;
  ~XdpRing();
  XdpRing(const XdpRing&) = delete;
  XdpRing& operator=(const XdpRing&) = delete;

  /// Maps the ring at `page_offset` of `socket`. It has `entries` entries, a power of two.
  Status map(int socket, const xdp_ring_offset& offsets, std::uint64_t page_offset,
             std::uint32_t entries, std::size_t entry_bytes);

  /// Entries that the kernel has produced and this process has not consumed.
  [[nodiscard]] std::uint32_t filled() const noexcept {
    return __atomic_load_n(producer_, __ATOMIC_ACQUIRE) - *consumer_;
  }
  /// Entries that this process may produce.
  [[nodiscard]] std::uint32_t room() const noexcept {
    return entries_ - (*producer_ - __atomic_load_n(consumer_, __ATOMIC_ACQUIRE));
  }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return entries_; }
  /// The `i`-th entry after the last one that this process has consumed, or produced.
  template <class Entry>
  [[nodiscard]] const Entry& to_consume(std::uint32_t i) const noexcept {
    return static_cast<const Entry*>(entries_at_)[(*consumer_ + i) & (entries_ - 1)];
  }
  template <class Entry>
  [[nodiscard]] Entry& to_produce(std::uint32_t i) noexcept {
    return static_cast<Entry*>(entries_at_)[(*producer_ + i) & (entries_ - 1)];
  }
  void consumed(std::uint32_t count) noexcept {
    __atomic_store_n(consumer_, *consumer_ + count, __ATOMIC_RELEASE);
  }
  void produced(std::uint32_t count) noexcept {
    __atomic_store_n(producer_, *producer_ + count, __ATOMIC_RELEASE);
  }
  /// The kernel sleeps and must be woken for produced entries.
  [[nodiscard]] bool needs_wakeup() const noexcept;

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::uint32_t* producer_ = nullptr;
  std::uint32_t* consumer_ = nullptr;
  const std::uint32_t* flags_ = nullptr;
  void* entries_at_ = nullptr;
  std::uint32_t entries_ = 0;
};

}  // namespace pando::worker

#include "worker/xdp/xdp_ring.h"

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/types.h>

namespace pando::worker {

XdpRing::~XdpRing() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

Status XdpRing::map(int socket, const xdp_ring_offset& offsets, std::uint64_t page_offset,
                    std::uint32_t entries, std::size_t entry_bytes) {
  mapped_bytes_ = offsets.desc + entries * entry_bytes;
  void* const mapping = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_POPULATE, socket, static_cast<off_t>(page_offset));
  if (mapping == MAP_FAILED) return fail_errno("mmap of an AF_XDP ring");
  mapping_ = mapping;
  auto* const base = static_cast<std::uint8_t*>(mapping);
  producer_ = reinterpret_cast<std::uint32_t*>(base + offsets.producer);
  consumer_ = reinterpret_cast<std::uint32_t*>(base + offsets.consumer);
  flags_ = reinterpret_cast<const std::uint32_t*>(base + offsets.flags);
  entries_at_ = base + offsets.desc;
  entries_ = entries;
  return {};
}

bool XdpRing::needs_wakeup() const noexcept {
  return (__atomic_load_n(flags_, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP) != 0;
}

}  // namespace pando::worker

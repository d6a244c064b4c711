#include "manager/xdp/queue_socket.h"

#include <fcntl.h>
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

namespace pando::manager {

namespace {

constexpr std::size_t kMemoryBytes =
    std::size_t{kXdpReceiveFrames + kXdpSendFrames} * kXdpFrameBytes;

Result<Fd> make_memory() {
  Fd memory(::memfd_create("pando-xdp", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return fail_errno("memfd_create");
  if (::ftruncate(memory.get(), kMemoryBytes) != 0) return fail_errno("ftruncate");
  // A hijacked worker could change its length, and then other processes that map it would end.
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("fcntl(F_ADD_SEALS)");
  return memory;
}

template <class Value>
Status set_xdp_option(const Fd& socket, int option, const Value& value, std::string_view name) {
  if (::setsockopt(socket.get(), SOL_XDP, option, &value, sizeof value) != 0)
    return fail_errno(name);
  return {};
}

/// The kernel pins the pages by this process's mapping, which is not needed any more afterwards.
Status register_memory(const Fd& socket, const Fd& memory) {
  void* const mapping = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (mapping == MAP_FAILED) return fail_errno("mmap");
  xdp_umem_reg frames{};
  frames.addr = reinterpret_cast<std::uintptr_t>(mapping);
  frames.len = kMemoryBytes;
  frames.chunk_size = kXdpFrameBytes;
  auto registered = set_xdp_option(socket, XDP_UMEM_REG, frames, "setsockopt(XDP_UMEM_REG)");
  if (!registered && errno == ENOBUFS)
    registered.error().text += " (the limit of locked memory is too low)";
  ::munmap(mapping, kMemoryBytes);
  return registered;
}

Status make_rings(const Fd& socket) {
  Status made = set_xdp_option(socket, XDP_UMEM_FILL_RING, kXdpReceiveFrames, "XDP_UMEM_FILL_RING");
  if (made) made = set_xdp_option(socket, XDP_RX_RING, kXdpReceiveFrames, "XDP_RX_RING");
  if (made) made = set_xdp_option(socket, XDP_TX_RING, kXdpSendFrames, "XDP_TX_RING");
  if (made)
    made = set_xdp_option(socket, XDP_UMEM_COMPLETION_RING, kXdpSendFrames,
                          "XDP_UMEM_COMPLETION_RING");
  return made;
}

Status bind_to(const Fd& socket, int interface, std::uint32_t queue, bool copies) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags =
      static_cast<std::uint16_t>(XDP_USE_NEED_WAKEUP | (copies ? XDP_COPY : 0));
  address.sxdp_ifindex = static_cast<std::uint32_t>(interface);
  address.sxdp_queue_id = queue;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return {};
  if (errno == EBUSY) return fail(Errc::kExists, "queue {} has an AF_XDP socket", queue);
  return fail_errno("bind of an AF_XDP socket");
}

/// Without this option a call sends 32 frames at most. Kernels before 6.17 do not know the option.
void send_batches_at_once(const Fd& socket) {
  constexpr int kMaxTxSkbBudget = 9;
  constexpr std::uint32_t kFramesOfBatch = 64;
  static_cast<void>(
      set_xdp_option(socket, kMaxTxSkbBudget, kFramesOfBatch, "XDP_MAX_TX_SKB_BUDGET"));
}

}  // namespace

Result<QueueSocket> open_queue_socket(int interface, std::uint32_t queue, bool copies) {
  QueueSocket made;
  made.socket = Fd(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.socket) return fail_errno("socket(AF_XDP)");
  auto memory = make_memory();
  if (!memory) return pass(memory);
  made.memory = std::move(*memory);
  if (auto done = register_memory(made.socket, made.memory); !done) return pass(done);
  if (auto done = make_rings(made.socket); !done) return pass(done);
  if (auto done = bind_to(made.socket, interface, queue, copies); !done) return pass(done);
  send_batches_at_once(made.socket);
  made.zero_copy = is_zero_copy(made.socket);
  return made;
}

bool is_xdp_socket(const Fd& socket) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
         domain == AF_XDP;
}

bool is_zero_copy(const Fd& socket) {
  xdp_options options{};
  socklen_t length = sizeof options;
  return ::getsockopt(socket.get(), SOL_XDP, XDP_OPTIONS, &options, &length) == 0 &&
         (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

}  // namespace pando::manager

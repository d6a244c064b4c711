#include "worker/xdp/xdp_socket.h"

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/files/file_status.h"

namespace pando::worker {

namespace {

/// Bound of what a manager may ask for; a mistake must not map all memory.
constexpr std::uint32_t kMaxFrames = 1U << 16;
constexpr std::uint32_t kLeastFrameBytes = 2048;
constexpr std::uint32_t kMaxFrameBytes = 4096;

Status check_frames(const ipc::ServeXdp& what, const Fd& memory) {
  const auto is_count = [](std::uint32_t frames) {
    return std::has_single_bit(frames) && frames >= XdpSocket::kBatch && frames <= kMaxFrames;
  };
  if (!is_count(what.receive_frames) || !is_count(what.send_frames) ||
      !std::has_single_bit(what.frame_bytes) || what.frame_bytes < kLeastFrameBytes ||
      what.frame_bytes > kMaxFrameBytes)
    return fail(Errc::kInvalid, "frames of another size or number");
  struct stat status{};
  if (!file_status(memory.get(), status)) return fail_errno("fstat");
  const std::uint64_t wanted =
      (std::uint64_t{what.receive_frames} + what.send_frames) * what.frame_bytes;
  if (static_cast<std::uint64_t>(status.st_size) < wanted)
    return fail(Errc::kInvalid, "the memory is smaller than its frames");
  return {};
}

}  // namespace

void XdpSocket::Unmap::operator()(std::uint8_t* memory) const noexcept {
  ::munmap(memory, bytes);
}

XdpSocket::XdpSocket(const ipc::ServeXdp& what, Fd socket,
                     std::unique_ptr<std::uint8_t, Unmap> memory)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      memory_bytes_(memory_.get_deleter().bytes),
      frame_bytes_(what.frame_bytes) {}

XdpSocket::~XdpSocket() = default;

Result<std::unique_ptr<XdpSocket>> XdpSocket::open(const ipc::ServeXdp& what, Fd socket,
                                                   const Fd& memory) {
  if (auto checked = check_frames(what, memory); !checked) return pass(checked);
  const std::size_t bytes =
      (std::size_t{what.receive_frames} + what.send_frames) * what.frame_bytes;
  void* const mapping =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (mapping == MAP_FAILED) return fail_errno("mmap of AF_XDP frames");
  std::unique_ptr<std::uint8_t, Unmap> frames(static_cast<std::uint8_t*>(mapping), {bytes});
  std::unique_ptr<XdpSocket> made(new XdpSocket(what, std::move(socket), std::move(frames)));
  if (auto mapped = made->map_rings(what); !mapped) return pass(mapped);
  for (std::uint32_t i = 0; i < what.receive_frames; ++i)
    made->fill_.to_produce<std::uint64_t>(i) = std::uint64_t{i} * what.frame_bytes;
  made->fill_.produced(what.receive_frames);
  made->free_.reserve(what.send_frames);
  for (std::uint32_t i = 0; i < what.send_frames; ++i)
    made->free_.push_back((std::uint64_t{what.receive_frames} + i) * what.frame_bytes);
  return made;
}

Status XdpSocket::map_rings(const ipc::ServeXdp& what) {
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (::getsockopt(socket_.get(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0)
    return fail_errno("getsockopt(XDP_MMAP_OFFSETS)");
  if (length != sizeof offsets)
    return fail(Errc::kUnsupported, "this kernel's rings have no flags");
  const int fd = socket_.get();
  Status mapped = fill_.map(fd, offsets.fr, XDP_UMEM_PGOFF_FILL_RING, what.receive_frames,
                            sizeof(std::uint64_t));
  if (mapped)
    mapped = receive_.map(fd, offsets.rx, XDP_PGOFF_RX_RING, what.receive_frames, sizeof(xdp_desc));
  if (mapped)
    mapped = send_.map(fd, offsets.tx, XDP_PGOFF_TX_RING, what.send_frames, sizeof(xdp_desc));
  if (mapped)
    mapped = completion_.map(fd, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, what.send_frames,
                             sizeof(std::uint64_t));
  return mapped;
}

std::span<const ByteView> XdpSocket::receive() noexcept {
  reclaim();  // each time, so that few frames are used again and again, and stay in the cache
  received_ = std::min<std::uint32_t>(receive_.filled(), kBatch);
  std::size_t good = 0;
  for (std::uint32_t i = 0; i < received_; ++i) {
    const auto& entry = receive_.to_consume<xdp_desc>(i);
    if (entry.addr >= memory_bytes_ || entry.len > memory_bytes_ - entry.addr) continue;
    const std::uint8_t* const frame = memory_.get() + entry.addr;
    __builtin_prefetch(frame);  // headers
    __builtin_prefetch(frame + 64);
    batch_[good++] = ByteView(frame, entry.len);
  }
  return {batch_.data(), good};
}

/// The fill ring has room for all received frames: its length is their number.
void XdpSocket::done() noexcept {
  const std::uint64_t frame_mask = ~(std::uint64_t{frame_bytes_} - 1);
  for (std::uint32_t i = 0; i < received_; ++i)
    fill_.to_produce<std::uint64_t>(i) = receive_.to_consume<xdp_desc>(i).addr & frame_mask;
  fill_.produced(received_);
  receive_.consumed(received_);
  received_ = 0;
  if (fill_.needs_wakeup()) ::recvfrom(socket_.get(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

void XdpSocket::reclaim() noexcept {
  const std::uint32_t count = completion_.filled();
  for (std::uint32_t i = 0; i < count; ++i)
    free_.push_back(completion_.to_consume<std::uint64_t>(i));
  completion_.consumed(count);
}

std::span<std::uint8_t> XdpSocket::free_frame() noexcept {
  if (free_.empty()) reclaim();
  if (free_.empty()) return {};
  return {memory_.get() + free_.back(), frame_bytes_};
}

void XdpSocket::queue_frame(std::size_t octets) noexcept {
  send_.to_produce<xdp_desc>(queued_) = {free_.back(), static_cast<std::uint32_t>(octets), 0};
  free_.pop_back();
  ++queued_;
}

bool XdpSocket::flush() noexcept {
  constexpr int kMaxCalls = 16;  // the kernel sends 32 frames in one call at least
  send_.produced(queued_);
  queued_ = 0;
  const auto is_empty = [this] { return send_.room() == send_.capacity(); };
  for (int call = 0; call < kMaxCalls && !is_empty() && send_.needs_wakeup(); ++call) {
    const auto sent = ::sendto(socket_.get(), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    if (sent < 0 && errno != EAGAIN && errno != EBUSY && errno != ENOBUFS) break;
  }
  return is_empty() || !send_.needs_wakeup();
}

std::uint64_t XdpSocket::take_missed() noexcept {
  xdp_statistics now{};
  socklen_t length = sizeof now;
  if (::getsockopt(socket_.get(), SOL_XDP, XDP_STATISTICS, &now, &length) != 0) return 0;
  const std::uint64_t total = now.rx_dropped + now.rx_ring_full;
  return total - std::exchange(missed_, total);
}

}  // namespace pando::worker

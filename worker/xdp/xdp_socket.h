#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "ipc/worker_messages.h"
#include "worker/xdp/xdp_ring.h"

namespace pando::worker {

/// An AF_XDP socket of the manager's making, with its rings and frames. Received frames lie in the
/// first part of the memory and go back to the kernel when their batch is answered; frames to send
/// have the second part. Used by one thread.
class XdpSocket {
 public:
  /// The most frames of a batch.
  static constexpr std::size_t kBatch = 64;

  /// `memory` is as `what` says, or the result is an error. The first received frames are given to
  /// the kernel.
  static Result<std::unique_ptr<XdpSocket>> open(const ipc::ServeXdp& what, Fd socket,
                                                 const Fd& memory);
  ~XdpSocket();
  XdpSocket(const XdpSocket&) = delete;
  XdpSocket& operator=(const XdpSocket&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  [[nodiscard]] int release() noexcept { return socket_.release(); }

  /// The frames that wait, at most kBatch; until done().
  std::span<const ByteView> receive() noexcept;
  /// Gives the frames of the batch back to the kernel.
  void done() noexcept;

  /// A free frame to write a response into; empty when all are under way. The same one is given
  /// until it is queued.
  std::span<std::uint8_t> free_frame() noexcept;
  /// Sends the first `octets` of free_frame() with the next flush().
  void queue_frame(std::size_t octets) noexcept;
  /// Makes the kernel send what is queued. False when the kernel has not taken all: call it again a
  /// moment later.
  bool flush() noexcept;
  /// Frames that the kernel has dropped since the last call because a ring was full or empty.
  std::uint64_t take_missed() noexcept;

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::uint8_t* memory) const noexcept;
  };
  XdpSocket(const ipc::ServeXdp& what, Fd socket, std::unique_ptr<std::uint8_t, Unmap> memory);
  Status map_rings(const ipc::ServeXdp& what);
  void reclaim() noexcept;

  Fd socket_;
  std::unique_ptr<std::uint8_t, Unmap> memory_;
  std::uint64_t memory_bytes_;
  std::uint32_t frame_bytes_;
  XdpRing fill_;
  XdpRing receive_;
  XdpRing send_;
  XdpRing completion_;
  std::array<ByteView, kBatch> batch_{};
  std::uint32_t received_ = 0;        ///< frames of the batch, including frames out of bounds
  std::vector<std::uint64_t> free_;   ///< offsets of free frames to send
  std::uint32_t queued_ = 0;          ///< entries of send_ that the kernel does not know yet
  std::uint64_t missed_ = 0;
};

}  // namespace pando::worker

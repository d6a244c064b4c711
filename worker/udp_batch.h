#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/address.h"
#include "base/bytes.h"

namespace pando::worker {

/// Memory of one recvmmsg and one sendmmsg, shared by all UDP sockets of the worker. Each receive
/// buffer takes the largest datagram (UPDATE messages above 512 octets come without EDNS); only the
/// pages that are written become real.
class UdpBatch {
 public:
  static constexpr std::size_t kMessages = 64;
  static constexpr std::size_t kReceiveOctets = 65536;
  static constexpr std::size_t kSendOctets = 4096;

  UdpBatch();
  ~UdpBatch();
  UdpBatch(const UdpBatch&) = delete;
  UdpBatch& operator=(const UdpBatch&) = delete;

  /// Receives what waits, at most kMessages; the number, 0 when nothing does. `wildcard`:
  /// destination addresses are asked for.
  std::size_t receive(int socket, bool wildcard) noexcept;
  [[nodiscard]] ByteView message(std::size_t i) const noexcept;
  [[nodiscard]] Endpoint sender(std::size_t i) const noexcept;
  /// Where a datagram to a wildcard socket was sent.
  [[nodiscard]] std::optional<IpAddress> destination(std::size_t i) const noexcept;

  /// Room for the response to message `i`.
  [[nodiscard]] std::span<std::uint8_t> space(std::size_t i) noexcept;
  /// Queues the first `size` octets of space(i) as the response to message `i`.
  void respond(std::size_t i, std::size_t size) noexcept;
  /// Sends what is queued; the number of responses that the kernel did not take.
  std::size_t send(int socket, bool wildcard) noexcept;
  [[nodiscard]] std::size_t octets_queued() const noexcept { return octets_queued_; }

 private:
  // Room for the destination of either family.
  struct Control {
    alignas(cmsghdr) std::array<std::uint8_t, CMSG_SPACE(sizeof(in6_pktinfo))> octets;
  };
  void prepare_source(msghdr& header, Control& control, const Control& received,
                      std::size_t received_length) const noexcept;

  std::uint8_t* receive_memory_ = nullptr;
  std::uint8_t* send_memory_ = nullptr;
  std::array<mmsghdr, kMessages> in_{};
  std::array<iovec, kMessages> in_parts_{};
  std::array<sockaddr_storage, kMessages> senders_{};
  std::array<Control, kMessages> in_control_{};
  std::array<mmsghdr, kMessages> out_{};
  std::array<iovec, kMessages> out_parts_{};
  std::array<Control, kMessages> out_control_{};
  std::array<std::uint8_t, kMessages> answers_{};  // index of the message each response is to
  std::size_t queued_ = 0;
  std::size_t octets_queued_ = 0;
};

/// Sends one datagram from `source` (given for wildcard sockets) without blocking.
bool send_datagram(int socket, ByteView message, const Endpoint& to,
                   const std::optional<IpAddress>& source) noexcept;

}  // namespace pando::worker

#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/address.h"
#include "base/bytes.h"
#include "base/datagram.h"
#include "base/result.h"

namespace pando::worker {

/// Memory of one recvmmsg and one sendmmsg, shared by all UDP sockets of the worker. Each receive
/// buffer takes the largest datagram, since UPDATE messages above 512 octets come without EDNS.
/// Only pages that are written take physical memory.
///
/// Received messages lie in memory that outlives the process (keep_in). A worker that is killed
/// between receive() and done() leaves its batch to its successor. Requests longer than
/// kLongestKept are lost, and their clients have to ask again.
///
/// Messages and responses begin at different places of their pages: the processor's caches have few
/// lines for each place, and would lose the first ones to the next.
class UdpBatch {
 public:
  static constexpr std::size_t kMessages = 64;
  static constexpr std::size_t kSendOctets = 4096;
  static constexpr std::size_t kPage = 4096;
  /// Octets of a message that are in its page wherever it begins there.
  static constexpr std::size_t kLongestKept = 2048;

  UdpBatch();
  ~UdpBatch();
  UdpBatch(const UdpBatch&) = delete;
  UdpBatch& operator=(const UdpBatch&) = delete;

  /// Origin of a socket's datagrams.
  struct Source {
    int socket = -1;
    Endpoint local;
    bool wildcard = false;  ///< the kernel reports destination addresses
  };

  /// Makes all later receives go into `octets` bytes of `file` at `offset`. The batch of the slot's
  /// previous worker stays there until the next receive(): see inherited().
  static constexpr std::size_t kKeptOctets = 16384 + kMessages * kPage;
  Status keep_in(int file, off_t offset, std::size_t octets);
  /// True when the previous worker's last batch came to `local` and was not answered to the end.
  [[nodiscard]] bool inherited(const Endpoint& local) const noexcept;
  /// Takes over message `i` of the inherited batch; returns false when none exists. Each message is
  /// given once: a message that killed one worker can kill one successor, but not all of them.
  bool inherit(std::size_t i) noexcept;

  /// Receives the waiting datagrams, at most kMessages; returns their number, 0 when none waits.
  std::size_t receive(const Source& source) noexcept;
  [[nodiscard]] ByteView message(std::size_t i) const noexcept;
  [[nodiscard]] const sockaddr* sender(std::size_t i) const noexcept {
    return reinterpret_cast<const sockaddr*>(&record_->senders[i]);
  }
  /// Destination address of a datagram to a wildcard socket.
  [[nodiscard]] std::optional<IpAddress> destination(std::size_t i) const noexcept;

  /// Room for the response to message `i`.
  [[nodiscard]] std::span<std::uint8_t> space(std::size_t i) noexcept;
  /// Queues the first `size` octets of space(i) as the response to message `i`.
  void respond(std::size_t i, std::size_t size) noexcept;
  /// Sends the queued responses; returns the number of responses that the kernel did not take.
  std::size_t send(int socket, bool wildcard) noexcept;
  /// Marks the whole batch as answered or dropped: a successor inherits nothing.
  void done() noexcept;
  [[nodiscard]] std::size_t queued() const noexcept { return queued_; }
  [[nodiscard]] std::size_t octets_queued() const noexcept { return octets_queued_; }

 private:
  /// Memory that outlives the process, beside the messages. The kernel writes senders and control
  /// data here. No pointer lies here, nor a length that the kernel follows: the file is not this
  /// process's alone, and the kernel would read or write where a changed pointer leads.
  struct Record {
    std::uint64_t magic;
    Endpoint local;
    bool wildcard;
    /// 1 from before recvmmsg until done(). Only a successor reads this, after this process is
    /// dead. Therefore only the order of the instructions matters, which release keeps.
    std::atomic<std::uint32_t> held;
    /// 1 once `lengths` belongs to this batch. A process that is killed within recvmmsg leaves 0:
    /// its successor measures the messages that have a sender.
    std::atomic<std::uint32_t> counted;
    std::array<std::uint32_t, kMessages> lengths;
    std::array<sockaddr_storage, kMessages> senders;  ///< family 0: no message
    std::array<SourceControl, kMessages> controls;
  };
  static_assert(sizeof(Record) <= kKeptOctets - kMessages * kPage,
                "the first message would lie in the record");
  static constexpr std::uint64_t kMagic = 0x3248435441425055 ^ sizeof(Record);  // "UPBATCH2"

  /// The page in which message `i` begins.
  [[nodiscard]] std::uint8_t* page_of(std::size_t i) const noexcept;
  void point(std::size_t i) noexcept;
  void count(std::size_t received) noexcept;
  void measure() noexcept;

  std::uint8_t* receive_memory_ = nullptr;
  std::uint8_t* send_memory_ = nullptr;
  Record* record_ = nullptr;  ///< private memory at first, then the file's
  bool inherited_ = false;    ///< the record comes from the slot's previous worker
  std::array<mmsghdr, kMessages> in_{};
  std::array<iovec, kMessages> in_parts_{};
  std::array<mmsghdr, kMessages> out_{};
  std::array<iovec, kMessages> out_parts_{};
  std::array<SourceControl, kMessages> out_control_{};
  std::array<std::uint8_t, kMessages> answers_{};  // index of the message each response is to
  std::array<std::uint32_t, kMessages> lengths_{};
  std::size_t counted_ = kMessages;  ///< messages whose headers and places may have been used
  std::size_t queued_ = 0;
  std::size_t octets_queued_ = 0;
};

}  // namespace pando::worker

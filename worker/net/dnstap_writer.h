#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/fd.h"
#include "ipc/worker_messages.h"
#include "worker/net/dnstap_message.h"
#include "worker/net/frame_buffer.h"

namespace pando::worker {

/// Writes dnstap messages to the stream that the manager has opened. Nothing here waits: messages
/// go to a buffer, and the buffer to the stream after the answers. A message without room in the
/// buffer, or without a stream, is dropped and counted.
class DnstapWriter {
 public:
  /// Octets that may wait for the collector.
  static constexpr std::size_t kMostWaiting = std::size_t{256} << 10;
  /// Octets that are worth a system call of their own.
  static constexpr std::size_t kWorthSending = std::size_t{32} << 10;
  /// Fewer octets are sent after this time.
  static constexpr std::chrono::milliseconds kPause{50};

  struct Calls {
    std::function<void(std::uint64_t frames, std::uint64_t dropped)> count;
    std::function<void()> lost;  ///< the stream has broken and is closed
  };

  DnstapWriter(asio::io_context& io, Calls calls);
  DnstapWriter(const DnstapWriter&) = delete;
  DnstapWriter& operator=(const DnstapWriter&) = delete;

  /// Takes new settings, and a stream in place of the one before if there is a descriptor.
  void set(ipc::Dnstap settings, Fd stream);
  [[nodiscard]] bool on() const noexcept { return settings_.on; }

  /// Whether this request is in the sample. Call once a request.
  [[nodiscard]] bool takes(ByteView request) noexcept;
  /// Whether the response to such a request is written, too.
  [[nodiscard]] bool wants_response(ByteView request) const noexcept;
  /// Writes a request of the sample, or its response, which left at `sent`.
  void write(const DnstapExchange& exchange, ByteView message, const timespec& sent);
  /// To be called when answers have left: sends what waits if that is worth a call.
  void answers_sent();
  /// Sends what the stream takes now, and ends it.
  void end();

  [[nodiscard]] static timespec now() noexcept;

 private:
  using Stream = asio::posix::stream_descriptor;

  [[nodiscard]] bool wants(DnstapType type) const noexcept;
  void open(Fd descriptor);
  void send_later();
  void flush();
  void wait_writable();
  void watch();
  void lose();
  void close() noexcept;

  asio::io_context& io_;
  Calls calls_;
  ipc::Dnstap settings_;
  Bytes prefix_;  ///< of all messages
  Bytes head_;    ///< of the message in hand
  std::optional<FrameBuffer> buffer_;
  std::shared_ptr<Stream> stream_;
  asio::steady_timer pause_;
  bool sends_later_ = false;
  bool waits_writable_ = false;
  std::uint64_t requests_ = 0;  ///< since the last one of the sample
};

}  // namespace pando::worker

#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/fd.h"
#include "worker/tap/frame_buffer.h"

namespace pando::worker {

/// Sends frames to a stream that the manager has lent. Nothing here waits: frames go to a buffer,
/// and the buffer to the stream after the answers. A frame without room in the buffer, or without a
/// stream, is dropped and counted.
class StreamSender {
 public:
  /// Octets that may wait for the reader.
  static constexpr std::size_t kMaxBufferedBytes = std::size_t{256} << 10;
  /// Octets that are worth a system call of their own.
  static constexpr std::size_t kWorthSending = std::size_t{32} << 10;
  /// Fewer octets are sent after this time.
  static constexpr std::chrono::milliseconds kPause{50};

  struct Calls {
    std::function<void(std::uint64_t frames, std::uint64_t dropped)> count;
    std::function<void()> lost;  ///< the stream has broken and is closed
  };

  StreamSender(asio::io_context& io, FrameBuffer::Form form, Calls calls);
  StreamSender(const StreamSender&) = delete;
  StreamSender& operator=(const StreamSender&) = delete;

  /// Sends frames to this stream from now on. The one before has ended.
  void open(Fd descriptor);
  [[nodiscard]] bool is_open() const noexcept { return stream_ != nullptr; }
  /// Counts a frame as dropped that was not made, since there is no stream.
  void drop() { calls_.count(0, 1); }
  /// Sends the frame that `parts` make up, some time later.
  void push(std::initializer_list<ByteView> parts);
  /// To be called when answers were sent: sends what waits if that is worth a call.
  void answers_sent();
  /// Sends what the stream takes now, then `last` if no frame is cut, and closes the stream.
  void end(ByteView last);
  /// Frees the buffer of a sender without a stream.
  void release() noexcept { buffer_.reset(); }

 private:
  using Stream = asio::posix::stream_descriptor;

  void send_later();
  void flush();
  void wait_writable();
  void watch();
  void lose();
  void close() noexcept;

  asio::io_context& io_;
  FrameBuffer::Form form_;
  Calls calls_;
  std::optional<FrameBuffer> buffer_;
  std::shared_ptr<Stream> stream_;
  asio::steady_timer pause_;
  bool sends_later_ = false;
  bool waits_writable_ = false;
};

}  // namespace pando::worker

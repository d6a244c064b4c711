#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// Opens one stream to a collector that listens on a Unix socket: connects, and sends READY, waits
/// for ACCEPT and sends START (ipc/frame_stream.h). The collector is another program, so its octets
/// are checked and its time is limited.
class FrameStreamHandshake : public std::enable_shared_from_this<FrameStreamHandshake> {
 public:
  /// Receives the descriptor, to which data frames may be written from now on.
  using Done = std::function<void(Result<Fd>)>;

  /// `done` is called once, never from within start(). `limit` is the time of the whole.
  static std::shared_ptr<FrameStreamHandshake> start(asio::io_context& io, const std::string& path,
                                                     std::string_view content_type,
                                                     std::chrono::milliseconds limit, Done done);
  /// Ends it without a call of `done`.
  void cancel() noexcept;

 private:
  FrameStreamHandshake(asio::io_context& io, std::string_view content_type, Done done);
  Status connect(const std::string& path);
  Status send(const Bytes& frame);
  void read();
  void end(Result<Fd> result);

  asio::posix::stream_descriptor stream_;
  asio::steady_timer deadline_;
  std::string content_type_;
  Done done_;
  Bytes received_;
};

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <ctime>

#include "base/bytes.h"
#include "base/fd.h"
#include "ipc/worker_messages.h"
#include "worker/tap/dnstap_message.h"
#include "worker/tap/stream_sender.h"

namespace pando::worker {

/// Writes dnstap messages to the stream that the manager has opened (worker/tap/stream_sender.h).
class DnstapWriter {
 public:
  using Calls = StreamSender::Calls;

  DnstapWriter(asio::io_context& io, Calls calls);
  DnstapWriter(const DnstapWriter&) = delete;
  DnstapWriter& operator=(const DnstapWriter&) = delete;

  /// Takes new settings, and a stream in place of the one before if there is a descriptor.
  void set(ipc::Dnstap settings, Fd stream);
  [[nodiscard]] bool on() const noexcept { return settings_.on; }

  /// Whether this request is in the sample. Call once a request.
  [[nodiscard]] bool takes(ByteView request) noexcept;
  /// Whether the response to this request is written, too.
  [[nodiscard]] bool wants_response(ByteView request) const noexcept;
  /// Writes a request of the sample, or its response, which left at `sent`.
  void write(const Exchange& exchange, ByteView message, const timespec& sent);
  /// To be called when answers were sent: sends what waits if that is worth a call.
  void answers_sent() { sender_.answers_sent(); }
  /// Sends what the stream takes now, and ends it.
  void end();

 private:
  [[nodiscard]] bool wants(DnstapType type) const noexcept;

  ipc::Dnstap settings_;
  Bytes prefix_;  ///< of all messages
  Bytes head_;    ///< of the message in hand
  StreamSender sender_;
  std::uint64_t requests_ = 0;  ///< since the last one of the sample
};

}  // namespace pando::worker

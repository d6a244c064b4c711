#include "worker/tap/stream_sender.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace pando::worker {

namespace {
constexpr int kNoWait = MSG_DONTWAIT | MSG_NOSIGNAL;
}  // namespace

StreamSender::StreamSender(asio::io_context& io, FrameBuffer::Form form, Calls calls)
    : io_(io), form_(form), calls_(std::move(calls)), pause_(io) {}

void StreamSender::push(std::initializer_list<ByteView> parts) {
  if (!stream_ || !buffer_->push(parts)) return drop();
  send_later();
}

void StreamSender::answers_sent() {
  if (stream_ && buffer_->waiting().size() >= kWorthSending) flush();
}

/// Small buffers are gathered: a system call for each answer would cost as much as the answer.
void StreamSender::send_later() {
  if (std::exchange(sends_later_, true)) return;
  pause_.expires_after(kPause);
  pause_.async_wait([this](const asio::error_code& error) {
    sends_later_ = false;
    if (!error && stream_) flush();
  });
}

void StreamSender::open(Fd descriptor) {
  auto stream = std::make_shared<Stream>(io_);
  asio::error_code error;
  stream->assign(descriptor.get(), error);
  if (error) return calls_.lost();
  [[maybe_unused]] const int owned_by_asio_now = descriptor.release();
  if (!buffer_) buffer_.emplace(kMaxBufferedBytes, form_);
  stream_ = std::move(stream);
  watch();
}

/// A reader sends nothing before the end of the stream, so any readable data is that end.
void StreamSender::watch() {
  stream_->async_wait(Stream::wait_read, [this, stream = stream_](const asio::error_code& error) {
    if (error || stream != stream_) return;
    lose();
  });
}

void StreamSender::flush() {
  if (waits_writable_) return;
  std::uint64_t frames = 0;
  int failed = 0;
  for (ByteView waiting = buffer_->waiting(); !waiting.empty(); waiting = buffer_->waiting()) {
    const ssize_t sent =
        ::send(stream_->native_handle(), waiting.data(), waiting.size(), kNoWait);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      failed = errno;
      break;
    }
    frames += buffer_->take(static_cast<std::size_t>(sent));
  }
  if (frames > 0) calls_.count(frames, 0);
  if (failed == EAGAIN) return wait_writable();
  if (failed != 0) lose();
}

void StreamSender::wait_writable() {
  waits_writable_ = true;
  stream_->async_wait(Stream::wait_write, [this, stream = stream_](const asio::error_code& error) {
    if (stream != stream_) return;
    waits_writable_ = false;
    if (!error) flush();
  });
}

void StreamSender::lose() {
  close();
  calls_.lost();
}

void StreamSender::end(ByteView last) {
  if (!stream_) return;
  flush();
  if (!stream_) return;
  // After a part of a frame it would be read as the frame's rest.
  if (!last.empty() && buffer_->waiting().empty()) {
    [[maybe_unused]] const ssize_t sent =
        ::send(stream_->native_handle(), last.data(), last.size(), kNoWait);
  }
  close();
}

/// Frames that the stream has not taken as a whole are lost.
void StreamSender::close() noexcept {
  waits_writable_ = false;
  asio::error_code ignored;
  std::exchange(stream_, nullptr)->close(ignored);
  if (const std::size_t frames = buffer_->frames(); frames > 0) calls_.count(0, frames);
  buffer_->clear();
}

}  // namespace pando::worker

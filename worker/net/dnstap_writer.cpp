#include "worker/net/dnstap_writer.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "dns/message/message.h"
#include "ipc/frame_stream.h"

namespace pando::worker {

namespace {
constexpr int kNoWait = MSG_DONTWAIT | MSG_NOSIGNAL;
}  // namespace

DnstapWriter::DnstapWriter(asio::io_context& io, Calls calls)
    : io_(io), calls_(std::move(calls)), pause_(io) {}

timespec DnstapWriter::now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

void DnstapWriter::set(ipc::Dnstap settings, Fd stream) {
  settings_ = std::move(settings);
  settings_.sample = std::max(settings_.sample, std::uint32_t{1});
  if (!settings_.on) {
    end();
    buffer_.reset();
    return;
  }
  prefix_ = dnstap_prefix(settings_.identity, settings_.version);
  if (!buffer_) buffer_.emplace(kMostWaiting);
  if (!stream) return;
  end();
  open(std::move(stream));
}

bool DnstapWriter::wants(DnstapType type) const noexcept {
  if (is_update(type)) return settings_.updates;
  return is_response(type) ? settings_.responses : settings_.queries;
}

/// A response is no request, and what is shorter than a header is none either.
bool DnstapWriter::takes(ByteView request) noexcept {
  if (request.size() < dns::kHeaderOctets) return false;
  const DnstapType type = dnstap_type(request);
  if (is_response(type) || !(wants(type) || wants_response(request))) return false;
  if (++requests_ < settings_.sample) return false;
  requests_ = 0;
  return true;
}

bool DnstapWriter::wants_response(ByteView request) const noexcept {
  return is_update(dnstap_type(request)) ? settings_.updates : settings_.responses;
}

void DnstapWriter::write(const DnstapExchange& exchange, ByteView message, const timespec& sent) {
  if (!settings_.on || message.size() < dns::kHeaderOctets || !wants(dnstap_type(message))) return;
  if (!stream_) return calls_.count(0, 1);
  put_dnstap_head(exchange, message, sent, head_);
  if (!buffer_->push({prefix_, head_, message})) return calls_.count(0, 1);
  send_later();
}

void DnstapWriter::answers_sent() {
  if (stream_ && buffer_->waiting().size() >= kWorthSending) flush();
}

/// Small buffers are gathered: a system call for each answer would cost as much as the answer.
void DnstapWriter::send_later() {
  if (std::exchange(sends_later_, true)) return;
  pause_.expires_after(kPause);
  pause_.async_wait([this](const asio::error_code& error) {
    sends_later_ = false;
    if (!error && stream_) flush();
  });
}

void DnstapWriter::open(Fd descriptor) {
  auto stream = std::make_shared<Stream>(io_);
  asio::error_code error;
  stream->assign(descriptor.get(), error);
  if (error) return calls_.lost();
  [[maybe_unused]] const int owned_by_asio_now = descriptor.release();
  stream_ = std::move(stream);
  watch();
}

/// A collector sends nothing before the end of the stream, so whatever can be read is that end.
void DnstapWriter::watch() {
  stream_->async_wait(Stream::wait_read, [this, stream = stream_](const asio::error_code& error) {
    if (error || stream != stream_) return;
    lose();
  });
}

void DnstapWriter::flush() {
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

void DnstapWriter::wait_writable() {
  waits_writable_ = true;
  stream_->async_wait(Stream::wait_write, [this, stream = stream_](const asio::error_code& error) {
    if (stream != stream_) return;
    waits_writable_ = false;
    if (!error) flush();
  });
}

void DnstapWriter::lose() {
  close();
  calls_.lost();
}

void DnstapWriter::end() {
  if (!stream_) return;
  flush();
  if (!stream_) return;
  const Bytes stop = ipc::control_frame(ipc::FrameControl::kStop, {});
  // Behind a part of a frame it would be read as the frame's rest.
  if (buffer_->waiting().empty()) {
    [[maybe_unused]] const ssize_t sent =
        ::send(stream_->native_handle(), stop.data(), stop.size(), kNoWait);
  }
  close();
}

/// Frames that the stream has not taken as a whole are lost.
void DnstapWriter::close() noexcept {
  waits_writable_ = false;
  asio::error_code ignored;
  std::exchange(stream_, nullptr)->close(ignored);
  if (const std::size_t frames = buffer_->frames(); frames > 0) calls_.count(0, frames);
  buffer_->clear();
}

}  // namespace pando::worker

#include "manager/net/frame_stream_handshake.h"

#include <sys/socket.h>

#include <array>
#include <asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/unix_socket.h"
#include "ipc/frame_stream.h"

namespace pando::manager {

FrameStreamHandshake::FrameStreamHandshake(asio::io_context& io, std::string_view content_type,
                                           Done done)
    : stream_(io), deadline_(io), content_type_(content_type), done_(std::move(done)) {}

std::shared_ptr<FrameStreamHandshake> FrameStreamHandshake::start(asio::io_context& io,
                                                                  const std::string& path,
                                                                  std::string_view content_type,
                                                                  std::chrono::milliseconds limit,
                                                                  Done done) {
  std::shared_ptr<FrameStreamHandshake> self(
      new FrameStreamHandshake(io, content_type, std::move(done)));
  Status begun = self->connect(path);
  if (begun) begun = self->send(ipc::control_frame(ipc::FrameControl::kReady, content_type));
  if (!begun) {
    asio::post(io, [self, error = begun.error()] { self->end(pass(error)); });
    return self;
  }
  self->deadline_.expires_after(limit);
  self->deadline_.async_wait([self](const asio::error_code& error) {
    if (!error) self->end(fail(Errc::kTruncated, "the collector did not accept in time"));
  });
  self->read();
  return self;
}

void FrameStreamHandshake::cancel() noexcept {
  done_ = nullptr;
  asio::error_code ignored;
  stream_.close(ignored);
  deadline_.cancel();
}

Status FrameStreamHandshake::connect(const std::string& path) {
  auto socket = connect_unix_stream(path);
  if (!socket) return pass(socket);
  asio::error_code error;
  stream_.assign(socket->get(), error);
  if (error) return fail(Errc::kIo, "the connection cannot be watched: {}", error.message());
  [[maybe_unused]] const int owned_by_asio_now = socket->release();
  return {};
}

/// The buffer of a new socket holds both frames of a handshake.
Status FrameStreamHandshake::send(const Bytes& frame) {
  const ssize_t sent = ::send(stream_.native_handle(), frame.data(), frame.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return fail_errno("send");
  if (static_cast<std::size_t>(sent) != frame.size())
    return fail(Errc::kIo, "the collector's socket took a part of a frame");
  return {};
}

void FrameStreamHandshake::read() {
  stream_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
    if (error || !self->done_) return;
    std::array<std::uint8_t, 2 * ipc::kFrameHeaderOctets + ipc::kMaxControlOctets> octets;
    const ssize_t got =
        ::recv(self->stream_.native_handle(), octets.data(), octets.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return self->read();
    if (got < 0) return self->end(fail_errno("recv"));
    if (got == 0) return self->end(fail(Errc::kTruncated, "the collector closed the connection"));
    append(self->received_, ByteView(octets).first(static_cast<std::size_t>(got)));
    auto size = ipc::control_frame_size(self->received_);
    if (!size) return self->end(pass(size));
    if (*size == 0 || self->received_.size() < *size) return self->read();
    Status good = ipc::check_accept(self->received_, self->content_type_);
    if (good)
      good = self->send(ipc::control_frame(ipc::FrameControl::kStart, self->content_type_));
    if (!good) return self->end(pass(good));
    self->end(Fd(self->stream_.release()));
  });
}

void FrameStreamHandshake::end(Result<Fd> result) {
  const Done done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(std::move(result));
}

}  // namespace pando::manager

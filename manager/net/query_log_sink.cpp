#include "manager/net/query_log_sink.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/pause_point.h"
#include "base/unix_socket.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

/// Files of a log may be read by the group: its readers are people, not the world.
constexpr mode_t kLogMode = 0640;

std::uint64_t lines_in(std::string_view octets) {
  return static_cast<std::uint64_t>(std::count(octets.begin(), octets.end(), '\n'));
}

}  // namespace

void QueryLogSink::push(std::string_view line) {
  if (waiting_.size() - done_ + line.size() > kMaxWaitingBytes) {
    ++counters_.dropped;
    return;
  }
  waiting_ += line;
}

int QueryLogSink::waits_for() const noexcept {
  return target_.is_socket && fd_ && !waiting_.empty() ? fd_.get() : -1;
}

void QueryLogSink::flush(Clock::time_point now) {
  if (waiting_.empty()) return;
  if (failed_ && now < try_again_) return drop_waiting();
  if (auto opened = open(now); !opened) return failed(opened.error(), now);
  auto written = write_waiting();
  if (!written && target_.is_socket) written = write_to_next_reader(now);
  if (!written) return failed(written.error(), now);
  if (std::exchange(failed_, false)) log::info("query_log_resumed", "path", target_.path);
}

Status QueryLogSink::open(Clock::time_point now) {
  if (!target_.is_socket && fd_ && now >= looked_ + kPause) {
    looked_ = now;
    if (was_rotated()) fd_.reset();
  }
  if (fd_) return {};
  auto opened = target_.is_socket ? connect() : open_file();
  if (!opened) return opened;
  looked_ = now;
  log::info("query_log_opened", "path", target_.path);
  return {};
}

/// O_NONBLOCK: the open of a FIFO without a reader would wait.
Status QueryLogSink::open_file() {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  Fd file(::open(target_.path.c_str(), kFlags, kLogMode));
  if (!file) return fail_errno("open");
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return fail_errno("fstat");
  if (!S_ISREG(status.st_mode)) return fail(Errc::kInvalid, "is not a regular file");
  device_ = status.st_dev;
  inode_ = status.st_ino;
  fd_ = std::move(file);
  return {};
}

Status QueryLogSink::connect() {
  auto socket = connect_unix_stream(target_.path);
  if (!socket) return pass(socket);
  fd_ = std::move(*socket);
  return {};
}

bool QueryLogSink::was_rotated() const {
  struct stat status{};
  if (::stat(target_.path.c_str(), &status) != 0) return true;
  return status.st_dev != device_ || status.st_ino != inode_;
}

Status QueryLogSink::write_waiting() {
  if (!target_.is_socket) pause_point("query-log-write");
  while (!waiting_.empty()) {
    const char* from = waiting_.data() + done_;
    const std::size_t size = waiting_.size() - done_;
    const ssize_t wrote = target_.is_socket
                              ? ::send(fd_.get(), from, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::write(fd_.get(), from, size);
    if (wrote > 0) {
      taken(static_cast<std::size_t>(wrote));
      continue;
    }
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN && target_.is_socket) return {};
    return fail_errno(target_.is_socket ? "send" : "write");
  }
  return {};
}

/// A reader that was started anew gets all lines that the one before did not take as a whole.
Status QueryLogSink::write_to_next_reader(Clock::time_point now) {
  fd_.reset();
  done_ = 0;
  if (auto opened = open(now); !opened) return opened;
  return write_waiting();
}

/// Counts whole lines, and forgets octets before the first line that was not taken as a whole.
void QueryLogSink::taken(std::size_t octets) noexcept {
  done_ += octets;
  const std::size_t newline = done_ == 0 ? std::string::npos : waiting_.rfind('\n', done_ - 1);
  if (newline == std::string::npos) return;
  counters_.written += lines_in(std::string_view(waiting_).substr(0, newline + 1));
  waiting_.erase(0, newline + 1);
  done_ -= newline + 1;
}

/// A full disk may have taken a part of a line. The file then ends before that part again, unless
/// it was truncated meanwhile.
void QueryLogSink::take_back_part() noexcept {
  struct stat status{};
  if (done_ == 0 || target_.is_socket || !fd_ || ::fstat(fd_.get(), &status) != 0) return;
  const auto part = static_cast<off_t>(done_);
  if (status.st_size < part) return;
  [[maybe_unused]] const int truncated = ::ftruncate(fd_.get(), status.st_size - part);
}

void QueryLogSink::drop_waiting() noexcept {
  counters_.dropped += lines_in(waiting_);
  waiting_.clear();
  done_ = 0;
}

/// The file is opened anew, too: a failed disk may be another one next time.
void QueryLogSink::failed(const Error& error, Clock::time_point now) {
  take_back_part();
  drop_waiting();
  fd_.reset();
  try_again_ = now + kPause;
  if (!std::exchange(failed_, true))
    log::warning("query_log_failed", "path", target_.path, "error", error.text);
}

}  // namespace pando::manager

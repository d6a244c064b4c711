#include "dns/zonefile/zone_scanner_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/words.h"

namespace pando::dns {

namespace {

/// Most text of one record. 65,535 octets of RDATA as \DDD escapes are 256 KiB; the rest is for
/// comments and white space between parentheses.
constexpr std::size_t kMaxRecordText = 16U << 20;

bool same_time(const timespec& a, const timespec& b) noexcept {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

Result<std::size_t> MemorySource::read(char* out, std::size_t size) {
  const std::size_t taken = text_.copy(out, size);
  text_.remove_prefix(taken);
  return taken;
}

Status FileSource::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  fd_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd_) return fail_errno("open");
  if (::fstat(fd_.get(), &opened_) != 0) return fail_errno("fstat");
  if (!S_ISREG(opened_.st_mode)) return fail(Errc::kInvalid, "not a regular file");
  return {};
}

Result<std::size_t> FileSource::read(char* out, std::size_t size) {
  std::size_t total = 0;
  while (total < size) {
    const ssize_t got = ::read(fd_.get(), out + total, size - total);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read");
    if (read_ == 0 && got > 0 && out[total] == kByteOrderMark[0]) {
      const auto skipped = skip_byte_order_mark();
      if (!skipped) return pass(skipped);
      if (*skipped) continue;
    }
    total += static_cast<std::size_t>(got);
    read_ += static_cast<std::uint64_t>(got);
    // At the size that the file had at open(), no further read is needed.
    const bool ended = got == 0 || read_ == static_cast<std::uint64_t>(opened_.st_size);
    if (!ended || total == size) continue;
    if (Status unchanged = check_unchanged(); !unchanged) return pass(unchanged);
    ended_ = true;
    break;
  }
  hash_.add(out, total);
  return total;
}

/// Skips a byte order mark, which is part of the file's hash. False: the file has none.
Result<bool> FileSource::skip_byte_order_mark() {
  char octets[kByteOrderMark.size()];
  const ssize_t got = ::pread(fd_.get(), octets, sizeof octets, 0);
  if (got < 0) return fail_errno("read");
  if (std::string_view(octets, static_cast<std::size_t>(got)) != kByteOrderMark) return false;
  if (::lseek(fd_.get(), sizeof octets, SEEK_SET) < 0) return fail_errno("lseek");
  hash_.add(octets, sizeof octets);
  read_ = sizeof octets;
  return true;
}

Status FileSource::check_unchanged() const {
  struct stat now{};
  if (::fstat(fd_.get(), &now) != 0) return fail_errno("fstat");
  if (now.st_size != opened_.st_size || !same_time(now.st_mtim, opened_.st_mtim))
    return fail(Errc::kInvalid, "file was changed while it was read");
  return {};
}

void TextWindow::reserve(std::size_t octets) {
  auto larger = std::make_unique_for_overwrite<char[]>(octets + kLexerPadding);
  if (used_ != 0) std::memcpy(larger.get(), buffer_.get(), used_);
  buffer_ = std::move(larger);
  capacity_ = octets;
}

Result<std::size_t> TextWindow::refill(RecordLexer& lexer, ZoneSource& source) {
  const std::string_view rest = lexer.rest();
  if (rest.size() > kMaxRecordText)
    return fail(Errc::kFull, "record is longer than {} octets of text", kMaxRecordText);
  if (!rest.empty()) std::memmove(buffer_.get(), rest.data(), rest.size());
  used_ = rest.size();
  if (capacity_ < used_ * 2) reserve(used_ * 2);
  const std::size_t room = capacity_ - used_;
  Result<std::size_t> got = source.read(buffer_.get() + used_, room);
  if (!got) return pass(got);
  used_ += *got;
  std::memset(buffer_.get() + used_, 0, kLexerPadding);
  buffer_[used_] = '\n';
  lexer.set_text({buffer_.get(), used_}, *got < room);
  return got;
}

}  // namespace pando::dns

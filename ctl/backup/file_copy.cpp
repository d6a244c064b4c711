#include "ctl/backup/file_copy.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.h"
#include "base/content_hash.h"

namespace pando::ctl {

namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

template <class T>
tl::unexpected<Error> of_file(const std::string& path, const Result<T>& result) {
  return fail(result.error().code, "{}: {}", path, result.error().text);
}

/// Calls `take(octets)` for all that is left of `from`. Returns their number and hash.
template <class Take>
Result<CopiedFile> read_through(const Fd& from, const std::string& path, Take take) {
  Bytes bytes(kCopyBytes);
  ContentHash hash;
  CopiedFile seen;
  for (;;) {
    const auto got = read_some(from.get(), bytes);
    if (!got) return of_file(path, got);
    hash.add(bytes.data(), *got);
    seen.bytes += *got;
    if (Status taken = take(ByteView(bytes).first(*got)); !taken) return pass(taken);
    if (*got < bytes.size()) break;
  }
  seen.hash = hash.value();
  return seen;
}

}  // namespace

Result<std::size_t> read_some(int fd, std::span<std::uint8_t> into) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t part = ::read(fd, into.data() + got, into.size() - got);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return fail_errno("read");
    if (part == 0) break;
    got += static_cast<std::size_t>(part);
  }
  return got;
}

Status write_all(int fd, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t part = ::write(fd, bytes.data(), bytes.size());
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return fail_errno("write");
    bytes = bytes.subspan(static_cast<std::size_t>(part));
  }
  return {};
}

Result<CopiedFile> copy_contents(const Fd& from, const std::string& from_path, const Fd& to,
                                 const std::string& to_path) {
  auto copied = read_through(from, from_path, [&](ByteView octets) -> Status {
    const auto put = write_all(to.get(), octets);
    return put ? Status() : Status(of_file(to_path, put));
  });
  if (copied && ::fsync(to.get()) != 0) return fail_errno("fsync of " + to_path);
  return copied;
}

Result<CopiedFile> hash_contents(const Fd& file, const std::string& path) {
  return read_through(file, path, [](ByteView) { return Status(); });
}

bool is_regular(const Fd& file) noexcept {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace pando::ctl

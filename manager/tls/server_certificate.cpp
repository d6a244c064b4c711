#include "manager/tls/server_certificate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.h"
#include "base/secret.h"
#include "ipc/tls_messages.h"

namespace pando::manager {

namespace {

/// Keys have some 3 KB, chains some 10 KB.
constexpr off_t kMaxFileBytes = off_t{1} << 20;

/// Appends the file to `pem`, which has room for it.
Status append_file(const std::string& path, Bytes& pem) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno(path);
  if (!S_ISREG(status.st_mode) || status.st_size > kMaxFileBytes)
    return fail(Errc::kInvalid, "{}: no regular file of at most {} bytes", path, kMaxFileBytes);
  const std::size_t begin = pem.size();
  pem.resize(begin + static_cast<std::size_t>(status.st_size));
  std::size_t at = begin;
  while (at < pem.size()) {
    const ssize_t got = ::read(file.get(), pem.data() + at, pem.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(path);
    if (got == 0) return fail(Errc::kTruncated, "{}: cut while it was read", path);
    at += static_cast<std::size_t>(got);
  }
  pem.push_back('\n');  // in case the last line has no end
  return {};
}

}  // namespace

Result<Fd> read_server_certificate(const config::TlsPair& tls) {
  Bytes pem;
  pem.reserve(2 * (static_cast<std::size_t>(kMaxFileBytes) + 1));  // so that no copy is left behind
  Status read = append_file(tls.certificate, pem);
  if (read) read = append_file(tls.key, pem);
  auto file = read ? ipc::make_tls_file(pem) : Result<Fd>(pass(read));
  wipe(pem);
  return file;
}

}  // namespace pando::manager

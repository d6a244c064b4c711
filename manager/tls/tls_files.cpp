#include "manager/tls/tls_files.h"

#include <fmt/format.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files/guarded_path.h"
#include "base/secret.h"
#include "config/files.h"

namespace pando::manager {

namespace {

/// A chain of long RSA certificates takes some 20 KiB.
constexpr std::size_t kMaxPairBytes = std::size_t{256} << 10;
/// All authorities of a system take some 250 KiB.
constexpr std::size_t kMaxAuthorityBytes = std::size_t{8} << 20;
/// Debian's own place: the file of OpenSSL's default need not exist there.
constexpr const char* kUsualAuthorities = "/etc/ssl/certs/ca-certificates.crt";

/// The whole file, in one allocation: a buffer that grows would leave copies of a key behind.
Result<Bytes> read_whole(const Fd& file, const std::string& path, std::size_t most) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return fail_errno("cannot stat " + path);
  if (status.st_size == 0) return fail(Errc::kInvalid, "{} is empty", path);
  if (static_cast<std::size_t>(status.st_size) > most)
    return fail(Errc::kInvalid, "{} has more than {} bytes", path, most);
  Bytes content(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::pread(file.get(), content.data() + done, content.size() - done,
                                static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot read " + path);
    if (got == 0) break;  // somebody cuts it just now; its new mark will come
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
}

Result<Bytes> read_certificate_file(const std::string& path, std::size_t most) {
  const auto file = config::open_regular_file(path);
  if (!file) return pass(file);
  return read_whole(*file, path, most);
}

Result<Bytes> read_key_file(const std::string& path) {
  const auto file = config::open_regular_file(path);
  if (!file) return pass(file);
  if (config::is_open_to_others(*file))
    return fail(Errc::kDenied, "other users can read or write {}: chmod o= {}", path, path);
  return read_whole(*file, path, kMaxPairBytes);
}

std::int64_t nanoseconds(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileMark mark_of(const std::string& path) noexcept {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_ctim),
          nanoseconds(status.st_mtim)};
}

FileMarks marks_of(const std::vector<std::string>& paths) {
  FileMarks marks(paths.size());
  std::ranges::transform(paths, marks.begin(), mark_of);
  return marks;
}

Result<CertificatePair> read_pair(const config::TlsPair& paths, std::uint64_t now) {
  const WipeFreed wipe_freed;
  auto certificates = read_certificate_file(paths.certificate, kMaxPairBytes);
  if (!certificates) return pass(certificates);
  if (const auto own = read_certificate(*certificates, now); !own)
    return fail(own.error().code, "{}: {}", paths.certificate, own.error().text);
  auto key = read_key_file(paths.key);
  if (!key) return pass(key);
  auto pair = check_pair(*certificates, *key, now);
  if (!pair) return fail(pair.error().code, "{}: {}", paths.key, pair.error().text);
  return pair;
}

std::string system_authorities() {
  const char* const path = X509_get_default_cert_file();
  return ::access(path, R_OK) == 0 ? path : kUsualAuthorities;
}

Result<Bytes> read_authorities(const std::string& path) {
  const std::string from = path.empty() ? system_authorities() : path;
  auto content = read_certificate_file(from, kMaxAuthorityBytes);
  if (!content) return content;
  if (const auto checked = check_authorities(*content); !checked)
    return fail(checked.error().code, "{}: {}", from, checked.error().text);
  return content;
}

}  // namespace pando::manager

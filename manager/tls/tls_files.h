#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "manager/tls/certificate_pair.h"

/// The files of certificates, keys and authorities that the configuration names, as the manager's
/// user reads them. Each error names the file and the cause. For pool threads.
namespace pando::manager {

/// By these a file that was replaced or changed differs from the one before.
struct FileMark {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = -1;  ///< -1: there is none, or it may not be looked at
  std::int64_t changed_ns = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileMark&) const = default;
};
/// Without opening the file: a check each few seconds costs a system call for each.
[[nodiscard]] FileMark mark_of(const std::string& path) noexcept;
using FileMarks = std::vector<FileMark>;
[[nodiscard]] FileMarks marks_of(const std::vector<std::string>& paths);

/// Reads and checks the pair at `now` (seconds since 1970). kDenied: users beside owner and group
/// can read or write the key, or a link of another user leads to a file.
Result<CertificatePair> read_pair(const config::TlsPair& paths, std::uint64_t now);

/// The authorities' certificates in PEM, at `path` or, if that is empty, at system_authorities().
Result<Bytes> read_authorities(const std::string& path);
/// The file of authorities that the system trusts, where OpenSSL looks for it.
[[nodiscard]] std::string system_authorities();

}  // namespace pando::manager

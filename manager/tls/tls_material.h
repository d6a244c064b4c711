#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "config/settings/settings.h"
#include "manager/io/store_file.h"
#include "manager/tls/tls_files.h"

/// Everything that pando-tls needs of files, as it was read last. A pool thread works on one
/// TlsMaterial at a time; the commit thread gets copies, which have no secret in them.
namespace pando::manager {

/// A pair that is in use. The key is in a sealed file in memory, which no process of ours maps and
/// which every new pando-tls gets by descriptor.
struct SealedPair {
  std::shared_ptr<const Fd> pem;
  CertificateFacts facts;
};

/// A pair of files and what became of it.
struct WatchedPair {
  config::TlsPair paths;             ///< empty: the server's own keys
  std::optional<SealedPair> in_use;  ///< none: no content of the files could be used so far
  std::string problem;               ///< why the files' content now is not in use; empty: it is
  FileMarks marks{};
};

/// A file of authorities and what became of it.
struct WatchedAuthorities {
  std::shared_ptr<const Bytes> pem;  ///< null: no content of the file could be used so far
  std::string problem;               ///< as in WatchedPair
  FileMarks marks{};
};

/// What the configuration wants.
struct WantedMaterial {
  bool serves = false;                  ///< server.listen-tls names an address
  std::optional<config::TlsPair> pair;  ///< server.tls; none: own keys
  std::string journal;                  ///< own keys are beside it
  std::vector<config::Remote> remotes;  ///< those with `tls` alone
  static WantedMaterial of(const config::Settings& settings);
  bool operator==(const WantedMaterial&) const = default;
};

struct TlsMaterial {
  std::optional<WatchedPair> server;  ///< none: no address is served
  Bytes next_pin;                     ///< of own keys
  /// Pairs that are shown to remotes, by the remote's name.
  std::map<std::string, WatchedPair> of_remotes;
  /// By path; that of the system's is empty.
  std::map<std::string, WatchedAuthorities> authorities;

  /// Reads files that are new, have changed since the last call, or could not be used then. What
  /// cannot be used leaves what was in use. True if anything that a pando-tls gets has changed.
  bool refresh(const WantedMaterial& wanted, Files& files, std::uint64_t now);
  /// Puts the next own key into use (roll_own_keys()); for a server that has own keys.
  Status roll(const WantedMaterial& wanted, Files& files, std::uint64_t now);

 private:
  bool refresh_server(const WantedMaterial& wanted, Files& files, std::uint64_t now);
  bool refresh_remotes(const WantedMaterial& wanted, std::uint64_t now);
};

}  // namespace pando::manager

#include "manager/tls/tls_material.h"

#include <set>
#include <utility>

#include "base/secret.h"
#include "ipc/log.h"
#include "ipc/tls_messages.h"
#include "manager/tls/own_keys.h"

namespace pando::manager {

namespace {

Result<SealedPair> seal(Result<CertificatePair> pair) {
  if (!pair) return pass(pair);
  auto file = ipc::make_tls_file(pair->pem);
  wipe(pair->pem);
  if (!file) return pass(file);
  return SealedPair{std::make_shared<const Fd>(std::move(*file)), std::move(pair->facts)};
}

/// Takes what was read, or keeps what was there and says why.
bool take(WatchedPair& watched, Result<SealedPair> read) {
  const std::string before = std::exchange(watched.problem, {});
  if (!read) {
    watched.problem = read.error().text;
    if (watched.problem != before)
      log::error("tls_certificate_refused", "error", watched.problem, "effect",
                 watched.in_use ? "the pair before stays in use" : "there is none");
    return false;
  }
  const std::string& file = watched.paths.certificate;
  log::info("tls_certificate_taken", "file", file.empty() ? "own key" : file, "subject",
            read->facts.subject, "until", time_text(read->facts.not_after), "pin",
            pin_text(read->facts.pin));
  watched.in_use = std::move(*read);
  return true;
}

/// Marks are taken before the files are read: a change meanwhile gives other marks next time.
bool is_changed(FileMarks& known, const std::vector<std::string>& paths) {
  FileMarks marks = marks_of(paths);
  const bool changed = marks != known;
  known = std::move(marks);
  return changed;
}

bool refresh_files(WatchedPair& watched, const config::TlsPair& paths, std::uint64_t now) {
  watched.paths = paths;
  // Time alone may make a certificate valid, and a folder's rights a file readable.
  if (!is_changed(watched.marks, {paths.certificate, paths.key}) && watched.problem.empty())
    return false;
  return take(watched, seal(read_pair(paths, now)));
}

bool refresh_authorities(WatchedAuthorities& watched, const std::string& path) {
  const std::string file = path.empty() ? system_authorities() : path;
  if (!is_changed(watched.marks, {file}) && watched.problem.empty()) return false;
  const std::string before = std::exchange(watched.problem, {});
  auto read = read_authorities(path);
  if (!read) {
    watched.problem = read.error().text;
    if (watched.problem != before)
      log::error("tls_authorities_refused", "error", watched.problem);
    return false;
  }
  if (watched.pem && *watched.pem == *read) return false;
  watched.pem = std::make_shared<const Bytes>(std::move(*read));
  return true;
}

/// Removes entries that are not wanted any more.
template <class Map>
void keep_only(Map& map, const std::set<std::string>& wanted) {
  std::erase_if(map, [&](const auto& entry) { return !wanted.contains(entry.first); });
}

}  // namespace

WantedMaterial WantedMaterial::of(const config::Settings& settings) {
  WantedMaterial wanted{!settings.server.listen_tls.empty(), settings.server.tls,
                        settings.store.journal, {}};
  for (const config::Remote& remote : settings.remotes)
    if (remote.tls) wanted.remotes.push_back(remote);
  return wanted;
}

bool TlsMaterial::refresh(const WantedMaterial& wanted, Files& files, std::uint64_t now) {
  const WipeFreed wipe_freed;
  const bool server_changed = refresh_server(wanted, files, now);
  return refresh_remotes(wanted, now) || server_changed;
}

bool TlsMaterial::refresh_server(const WantedMaterial& wanted, Files& files, std::uint64_t now) {
  if (!wanted.serves) {
    server.reset();
    return false;
  }
  const bool has_own = server && server->paths.certificate.empty();
  if (server && has_own == wanted.pair.has_value()) server.reset();  // the source is another one
  if (!server) server.emplace();
  if (wanted.pair) {
    next_pin.clear();
    return refresh_files(*server, *wanted.pair, now);
  }
  if (server->in_use) return false;  // nobody else changes own keys
  auto own = open_own_keys(files, wanted.journal, now);
  if (own) next_pin = own->next.pin;
  return take(*server, own ? seal(std::move(own->current)) : pass(own));
}

bool TlsMaterial::refresh_remotes(const WantedMaterial& wanted, std::uint64_t now) {
  bool changed = false;
  std::set<std::string> named;
  std::set<std::string> paths;
  for (const config::Remote& remote : wanted.remotes) {
    const config::RemoteTls& tls = *remote.tls;
    if (!tls.certificate.empty()) {
      named.insert(remote.name);
      changed |= refresh_files(of_remotes[remote.name], {tls.certificate, tls.key}, now);
    }
    if (tls.hostname.empty() || !paths.insert(tls.ca).second) continue;
    changed |= refresh_authorities(authorities[tls.ca], tls.ca);
  }
  keep_only(of_remotes, named);
  keep_only(authorities, paths);
  return changed;
}

Status TlsMaterial::roll(const WantedMaterial& wanted, Files& files, std::uint64_t now) {
  const WipeFreed wipe_freed;
  auto own = roll_own_keys(files, wanted.journal, now);
  if (!own) return pass(own);
  auto sealed = seal(std::move(own->current));
  if (!sealed) return pass(sealed);
  if (!server) server.emplace();
  next_pin = own->next.pin;
  take(*server, std::move(sealed));
  return {};
}

}  // namespace pando::manager

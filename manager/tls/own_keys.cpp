#include "manager/tls/own_keys.h"

#include <fmt/format.h>

#include <utility>

#include "base/crash_point.h"
#include "base/secret.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{16} << 10;

std::string folder_of(const std::string& journal) { return journal + "/tls"; }
std::string current_of(const std::string& journal) { return folder_of(journal) + "/current.pem"; }
std::string next_of(const std::string& journal) { return folder_of(journal) + "/next.pem"; }

/// The file's name appears when the key is whole and on disk.
Status write_pair(Files& files, const std::string& path, const CertificatePair& pair) {
  const std::string partial = path + ".partial";
  {
    auto file = files.open(partial, OpenMode::kSecret);
    if (!file) return pass(file);
    auto written = (*file)->write_at(0, pair.pem);
    if (written) written = (*file)->sync();
    if (!written) return written;
  }
  return files.rename(partial, path);
}

/// The pair at `path`. Its certificate and its key stand in one file.
Result<CertificatePair> read_own(Files& files, const std::string& path, std::uint64_t now) {
  auto text = read_file(files, path, kMaxFileBytes);
  if (!text) return pass(text);
  auto pair = check_pair(*text, *text, now);
  if (!pair) return fail(pair.error().code, "{}: {}", path, pair.error().text);
  return pair;
}

Result<CertificatePair> open_one(Files& files, const std::string& journal, const std::string& path,
                                 std::uint64_t now) {
  auto found = read_own(files, path, now);
  if (found || found.error().code != Errc::kNotFound) return found;
  auto made = make_own_pair();
  if (!made) return made;
  if (auto folder = files.make_directory(folder_of(journal)); !folder) return pass(folder);
  if (auto written = write_pair(files, path, *made); !written) return pass(written);
  if (auto synced = files.sync_directory(folder_of(journal)); !synced) return pass(synced);
  log::info("tls_key_made", "file", path, "pin", pin_text(made->facts.pin));
  return made;
}

}  // namespace

Result<OwnKeys> open_own_keys(Files& files, const std::string& journal, std::uint64_t now) {
  const WipeFreed wipe_freed;
  auto current = open_one(files, journal, current_of(journal), now);
  if (!current) return pass(current);
  auto next = open_one(files, journal, next_of(journal), now);
  if (!next) return pass(next);
  return OwnKeys{std::move(*current), std::move(next->facts)};
}

Result<OwnKeys> roll_own_keys(Files& files, const std::string& journal, std::uint64_t now) {
  const WipeFreed wipe_freed;
  // Both are there from here on, so the rename below replaces one whole pair by another.
  if (auto opened = open_own_keys(files, journal, now); !opened) return opened;
  if (auto moved = files.rename(next_of(journal), current_of(journal)); !moved) return pass(moved);
  crash_point("tls-key-rolled");
  if (auto synced = files.sync_directory(folder_of(journal)); !synced) return pass(synced);
  return open_own_keys(files, journal, now);
}

}  // namespace pando::manager

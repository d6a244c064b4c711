#include "ctl/backup/backup_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bytes.h"
#include "base/unix_time.h"
#include "config/added_list.h"
#include "config/files.h"
#include "config/load.h"
#include "config/secret_text.h"
#include "ctl/backup/file_copy.h"
#include "ctl/backup/manifest.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

SavedFile description_of(const std::string& path, const struct stat& seen) {
  SavedFile file;
  file.path = path;
  if (const passwd* user = ::getpwuid(seen.st_uid)) file.user = user->pw_name;
  if (const group* group = ::getgrgid(seen.st_gid)) file.group = group->gr_name;
  file.mode = seen.st_mode & 07777U;
  file.modified_ns = nanoseconds(seen.st_mtim);
  return file;
}

/// Makes the folder of a saved file and opens the file for writing.
Result<Fd> open_saved(const std::string& folder, const std::string& path) {
  const std::string saved = saved_path(folder, path);
  std::error_code error;
  fs::create_directories(fs::path(saved).parent_path(), error);
  if (error) return fail(Errc::kIo, "{}: {}", saved, error.message());
  return open_file(saved, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

/// One backup in the making: a folder that is not yet named as asked for.
class Making {
 public:
  Making(const BackupRequest& request, std::string partial)
      : request_(request), partial_(std::move(partial)) {}

  Result<Manifest> make() {
    const auto loaded = config::load(request_.config);
    if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
    if (auto saved = save_dump(loaded.settings.store.journal); !saved) return pass(saved);
    if (auto saved = save_configuration(); !saved) return pass(saved);
    for (const std::string& list : loaded.sources.lists)
      if (auto saved = save(list); !saved) return pass(saved);
    if (auto saved = save_state(loaded.settings.store.journal); !saved) return pass(saved);
    if (auto saved = save_keys(loaded); !saved) return pass(saved);
    if (auto saved = save_zone_files(loaded.settings.zones); !saved) return pass(saved);
    manifest_.program = PANDO_VERSION;
    manifest_.made = unix_seconds();
    if (auto written = write_manifest(manifest_, partial_); !written) return pass(written);
    return manifest_;
  }

 private:
  /// The manager may not be allowed to write elsewhere: it writes into a folder beside the journal,
  /// from where this process takes the dump.
  Status save_dump(const std::string& journal) {
    const std::string place = absolute(journal) + "/backup";
    std::error_code error;
    fs::create_directory(place, error);
    if (error) return fail(Errc::kIo, "{}: {}", place, error.message());
    Status saved = save_dump_by(place, journal);
    fs::remove_all(place, error);
    return saved;
  }

  /// By descriptor: the manager's user may put a link in the place of the folder.
  Status save_dump_by(const std::string& place, const std::string& journal) {
    auto folder = open_file(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) return pass(folder);
    struct stat owner{};
    if (::stat(journal.c_str(), &owner) != 0) return fail_errno("stat of " + journal);
    if (::geteuid() == 0 && ::fchown(folder->get(), owner.st_uid, owner.st_gid) != 0)
      return fail_errno("chown of " + place);
    if (auto written = request_.write_dump(place + "/dump"); !written) return written;
    const Fd dump(::openat(folder->get(), "dump", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!dump) return fail_errno("open " + place + "/dump");
    return take_dump(dump, place + "/dump");
  }

  Status take_dump(const Fd& from, const std::string& path) {
    auto to = open_file(saved_dump(partial_), O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!to) return pass(to);
    auto copied = copy_contents(from, path, *to, saved_dump(partial_));
    if (!copied) return pass(copied);
    manifest_.dump_bytes = copied->bytes;
    manifest_.dump_hash = copied->hash;
    return {};
  }

  Status save_configuration() {
    manifest_.configuration = absolute(request_.config);
    if (request_.with_keys) return save(request_.config);
    const auto text = config::read_regular_file(request_.config);
    if (!text) return tl::unexpected<Error>(text.error());
    auto cleaned = config::without_secrets(*text);
    if (!cleaned)
      return fail(cleaned.error().code, "{}: {} (--with-keys saves it as it is)", request_.config,
                  cleaned.error().text);
    manifest_.keys_left_out = cleaned->names;
    return save_text(request_.config, cleaned->text);
  }

  Status save_text(const std::string& path, const std::string& text) {
    struct stat seen{};
    if (::stat(path.c_str(), &seen) != 0) return fail_errno("stat of " + path);
    SavedFile file = description_of(absolute(path), seen);
    auto to = open_saved(partial_, file.path);
    if (!to) return pass(to);
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    if (auto put = write_all(to->get(), bytes); !put) return put;
    if (::fsync(to->get()) != 0) return fail_errno("fsync of the copy of " + path);
    auto saved = hash_file(saved_path(partial_, file.path));
    return note(std::move(file), std::move(saved));
  }

  Status note(SavedFile file, Result<CopiedFile> saved) {
    if (!saved) return pass(saved);
    file.bytes = saved->bytes;
    file.hash = saved->hash;
    manifest_.files.push_back(std::move(file));
    return {};
  }

  /// A file counts once, however many settings name it.
  Status save(const std::string& path) {
    const std::string whole = absolute(path);
    if (!saved_.insert(whole).second) return {};
    auto from = config::open_regular_file(whole);
    if (!from) return pass(from);
    struct stat seen{};
    if (::fstat(from->get(), &seen) != 0) return fail_errno("fstat of " + whole);
    auto to = open_saved(partial_, whole);
    if (!to) return pass(to);
    return note(description_of(whole, seen),
                copy_contents(*from, whole, *to, saved_path(partial_, whole)));
  }

  /// The lists that the manager keeps beside the journal, as far as they are there.
  Status save_state(const std::string& journal) {
    for (const std::string& path : {config::added_list_path(journal),
                                    config::added_mark_path(journal),
                                    journal + "/frozen-zones.list"}) {
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      if (auto saved = save(path); !saved) return saved;
    }
    return {};
  }

  Status save_secret(const std::string& path) {
    if (request_.with_keys) return save(path);
    manifest_.files_left_out.push_back(absolute(path));
    return {};
  }

  Status save_keys(const config::LoadResult& loaded) {
    std::vector<std::string> secret = loaded.sources.secrets;
    std::vector<std::string> open;
    const config::Settings& settings = loaded.settings;
    if (settings.server.tls) {
      secret.push_back(settings.server.tls->key);
      open.push_back(settings.server.tls->certificate);
      if (!settings.server.tls->client_ca.empty()) open.push_back(settings.server.tls->client_ca);
    }
    if (settings.http && settings.http->tls) {
      secret.push_back(settings.http->tls->key);
      open.push_back(settings.http->tls->certificate);
    }
    for (const config::Remote& remote : settings.remotes)
      if (remote.tls && !remote.tls->ca.empty()) open.push_back(remote.tls->ca);
    for (const std::string& path : secret)
      if (auto saved = save_secret(path); !saved) return saved;
    for (const std::string& path : open)
      if (auto saved = save(path); !saved) return saved;
    return {};
  }

  /// A zone without its file is whole in the dump.
  Status save_zone_files(const config::ZoneTable& zones) {
    for (std::size_t i = 0; i < zones.size(); ++i) {
      const std::string path = zones.path(i);
      if (path.empty()) continue;
      std::error_code error;
      if (!fs::exists(path, error))
        manifest_.files_missing.push_back(path);
      else if (auto saved = save(path); !saved)
        return saved;
    }
    return {};
  }

  const BackupRequest& request_;
  std::string partial_;
  Manifest manifest_;
  std::set<std::string> saved_;
};

Result<Manifest> make_backup(const BackupRequest& request, const std::string& folder) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error)))
    return fail(Errc::kExists, "{} is there already", folder);
  const std::string partial = folder + ".partial";
  fs::remove_all(partial, error);
  if (::mkdir(partial.c_str(), 0700) != 0) return fail_errno("mkdir " + partial);
  auto manifest = Making(request, partial).make();
  if (manifest && ::rename(partial.c_str(), folder.c_str()) != 0)
    manifest = fail_errno("rename " + partial);
  if (!manifest) {
    fs::remove_all(partial, error);
    return manifest;
  }
  if (auto synced = sync_folder(fs::path(folder).parent_path().string()); !synced)
    return pass(synced);
  return manifest;
}

void tell(const Manifest& manifest, const std::string& folder, const Output& output) {
  std::uint64_t bytes = 0;
  for (const SavedFile& file : manifest.files) bytes += file.bytes;
  if (output.json) {
    output.out << nlohmann::json{{"folder", folder},
                                 {"files", manifest.files.size()},
                                 {"file-bytes", bytes},
                                 {"dump-bytes", manifest.dump_bytes},
                                 {"keys-left-out", manifest.keys_left_out},
                                 {"files-left-out", manifest.files_left_out},
                                 {"files-missing", manifest.files_missing}}
                      .dump()
               << '\n';
    return;
  }
  output.out << fmt::format("{}: a dump of {} and {} of {}\n", folder,
                            bytes_text(manifest.dump_bytes),
                            counted(manifest.files.size(), "file"), bytes_text(bytes));
  for (const std::string& key : manifest.keys_left_out)
    output.out << fmt::format("left out: the secret of key {}\n", key);
  for (const std::string& path : manifest.files_left_out)
    output.out << fmt::format("left out: {}\n", path);
  for (const std::string& path : manifest.files_missing)
    output.out << fmt::format("not there: {}; the zone is in the dump\n", path);
}

}  // namespace

int backup(const BackupRequest& request, Output output) {
  std::string folder = absolute(request.folder);
  if (folder.ends_with('/')) folder.pop_back();
  const auto manifest = make_backup(request, folder);
  if (!manifest) return refuse(output, manifest.error());
  tell(*manifest, folder, output);
  return kDone;
}

}  // namespace pando::ctl

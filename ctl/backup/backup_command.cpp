#include "ctl/backup/backup_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/bytes.h"
#include "base/content_hash.h"
#include "base/files/guarded_path.h"
#include "base/unix_time.h"
#include "config/added_list.h"
#include "config/files.h"
#include "config/load.h"
#include "config/yaml/secret_text.h"
#include "ctl/backup/file_copy.h"
#include "ctl/backup/manifest.h"
#include "ipc/privileges.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

/// Beside the journal, while a backup is made.
constexpr const char* kDumpFolder = "backup";

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

/// An unfinished backup: its folder does not have its final name yet.
class Making {
 public:
  Making(const BackupRequest& request, const BackupFolder& partial)
      : request_(request), partial_(partial) {}

  Result<Manifest> make() {
    const auto loaded = config::load(request_.config);
    if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
    if (auto saved = save_dump(loaded.settings.store.journal); !saved) return pass(saved);
    manifest_.configuration = absolute(request_.config);
    if (auto saved = save_configuration(request_.config); !saved) return pass(saved);
    for (const std::string& included : loaded.sources.included) {
      manifest_.included.push_back(absolute(included));
      if (auto saved = save_configuration(included); !saved) return pass(saved);
    }
    for (const std::string& list : loaded.sources.lists)
      if (auto saved = save(list); !saved) return pass(saved);
    if (auto saved = save_state(loaded.settings.store.journal); !saved) return pass(saved);
    if (auto saved = save_keys(loaded); !saved) return pass(saved);
    if (auto saved = save_zone_files(loaded.settings); !saved) return pass(saved);
    manifest_.program = PANDO_VERSION;
    manifest_.made = unix_seconds();
    if (auto written = write_manifest(manifest_, partial_); !written) return pass(written);
    return manifest_;
  }

 private:
  /// The manager may not be allowed to write elsewhere: it writes into a folder beside the journal,
  /// from where this process takes the dump. All by descriptor: the manager's user may put links
  /// in the place of any of these names.
  Status save_dump(const std::string& journal) {
    auto home = open_folder(absolute(journal));
    if (!home) return fail(home.error().code, "{}: {}", journal, home.error().text);
    if (auto cleared = remove_below(*home, kDumpFolder); !cleared)
      return fail(cleared.error().code, "{}/{}: {}", journal, kDumpFolder, cleared.error().text);
    if (::mkdirat(home->get(), kDumpFolder, 0700) != 0)
      return fail_errno(fmt::format("mkdir {}/{}", journal, kDumpFolder));
    Status saved = save_dump_by(*home, absolute(journal) + "/" + kDumpFolder);
    static_cast<void>(remove_below(*home, kDumpFolder));
    return saved;
  }

  Status save_dump_by(const Fd& home, const std::string& place) {
    const Fd folder(
        ::openat(home.get(), kDumpFolder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat owner{};
    if (!folder || ::fstat(home.get(), &owner) != 0) return fail_errno("open " + place);
    if (::geteuid() == 0 && ::fchown(folder.get(), owner.st_uid, owner.st_gid) != 0)
      return fail_errno("chown of " + place);
    if (auto written = request_.write_dump(place + "/dump"); !written) return written;
    const Fd dump(
        ::openat(folder.get(), "dump", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat seen{};
    if (!dump || ::fstat(dump.get(), &seen) != 0) return fail_errno("open " + place + "/dump");
    // A second name of a file that only root may read would be no link.
    if (!S_ISREG(seen.st_mode) || seen.st_nlink != 1)
      return fail(Errc::kDenied, "{}/dump is not the manager's dump", place);
    return take_dump(dump, place + "/dump");
  }

  Status take_dump(const Fd& from, const std::string& path) {
    auto to = create(kSavedDump);
    if (!to) return pass(to);
    auto copied = copy_contents(from, path, *to, path_of(kSavedDump));
    if (!copied) return pass(copied);
    manifest_.dump_bytes = copied->bytes;
    manifest_.dump_hash = copied->hash;
    return {};
  }

  [[nodiscard]] std::string path_of(const std::string& name) const {
    return partial_.path + "/" + name;
  }

  Result<Fd> create(const std::string& name) const {
    auto made = create_below(partial_.fd, name);
    if (!made) return fail(made.error().code, "{}: {}", path_of(name), made.error().text);
    return made;
  }

  /// One of the files of the configuration.
  Status save_configuration(const std::string& path) {
    if (request_.with_keys) return save(path);
    const auto text = config::read_regular_file(path);
    if (!text) return tl::unexpected<Error>(text.error());
    auto cleaned = config::without_secrets(*text);
    if (!cleaned)
      return fail(cleaned.error().code, "{}: {} (--with-keys saves it as it is)", path,
                  cleaned.error().text);
    for (std::string& name : cleaned->names) {
      manifest_.keys_left_out.push_back(std::move(name));
      manifest_.files_of_keys.push_back(absolute(path));
    }
    return save_text(path, cleaned->text);
  }

  Status save_text(const std::string& path, const std::string& text) {
    struct stat seen{};
    if (::stat(path.c_str(), &seen) != 0) return fail_errno("stat of " + path);
    SavedFile file = description_of(absolute(path), seen);
    auto to = create(saved_path(file.path));
    if (!to) return pass(to);
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    if (auto put = write_all(to->get(), bytes); !put) return put;
    if (::fsync(to->get()) != 0) return fail_errno("fsync of the copy of " + path);
    ContentHash hash;
    hash.add(text.data(), text.size());
    return note(std::move(file), CopiedFile{text.size(), hash.value()});
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
    auto to = create(saved_path(whole));
    if (!to) return pass(to);
    return note(description_of(whole, seen),
                copy_contents(*from, whole, *to, path_of(saved_path(whole))));
  }

  /// The lists that the manager keeps beside the journal, as far as they are there.
  Status save_state(const std::string& journal) {
    for (const std::string& path : {config::added_list_path(journal),
                                    config::added_mark_path(journal),
                                    journal + "/frozen-zones.list",
                                    journal + "/signed-zones.list"}) {
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      if (auto saved = save(path); !saved) return saved;
    }
    return save_zone_keys(journal + "/dnssec");
  }

  /// The keys of the zones that are signed here. Without these, the list of such zones keeps a
  /// restored server from making other ones.
  Status save_zone_keys(const std::string& folder) {
    std::error_code error;
    for (const auto& zone : fs::directory_iterator(folder, error)) {
      if (!zone.is_directory(error) || zone.is_symlink(error)) continue;
      for (const auto& file : fs::directory_iterator(zone.path(), error)) {
        const std::string suffix = file.path().extension().string();
        if (suffix != ".pem" && suffix != ".private" && suffix != ".key") continue;
        if (auto saved = save_secret(file.path().string()); !saved) return saved;
      }
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
    }
    if (settings.http && settings.http->tls) {
      secret.push_back(settings.http->tls->key);
      open.push_back(settings.http->tls->certificate);
    }
    for (const config::Remote& remote : settings.remotes) {
      if (!remote.tls) continue;
      if (!remote.tls->ca.empty()) open.push_back(remote.tls->ca);
      if (remote.tls->key.empty()) continue;
      secret.push_back(remote.tls->key);
      open.push_back(remote.tls->certificate);
    }
    for (const std::string& path : secret)
      if (auto saved = save_secret(path); !saved) return saved;
    for (const std::string& path : open)
      if (auto saved = save(path); !saved) return saved;
    return {};
  }

  /// The list of added zones is the manager's, and could name any file of root's.
  static Status check_zone_file(const std::string& path, const std::string& user) {
    const ipc::ActingUser manager(user);
    if (!manager.acts() || ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0) return {};
    return fail(Errc::kDenied, "user {} cannot read {}: {}", user, path, std::strerror(errno));
  }

  /// A zone without its file is whole in the dump.
  Status save_zone_files(const config::Settings& settings) {
    const config::ZoneTable& zones = settings.zones;
    for (std::size_t i = 0; i < zones.size(); ++i) {
      const std::string path = zones.path(i);
      if (path.empty()) continue;
      std::error_code error;
      if (!fs::exists(path, error)) {
        manifest_.files_missing.push_back(path);
        continue;
      }
      // First what the file is: its reason tells more.
      if (auto saved = save(path); !saved) return saved;
      if (auto allowed = check_zone_file(path, settings.server.user); !allowed) return allowed;
    }
    return {};
  }

  const BackupRequest& request_;
  const BackupFolder& partial_;
  Manifest manifest_;
  std::set<std::string> saved_;
};

/// A new folder for root alone. Its parent may be another user's.
Result<BackupFolder> make_partial(const Fd& parent, const std::string& name,
                                  const std::string& path) {
  if (::mkdirat(parent.get(), name.c_str(), 0700) != 0) return fail_errno("mkdir " + path);
  BackupFolder made{Fd(::openat(parent.get(), name.c_str(),
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
                    path};
  struct stat status{};
  if (!made.fd || ::fstat(made.fd.get(), &status) != 0) return fail_errno("open " + path);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return fail(Errc::kDenied, "{} was replaced by user {}", path, status.st_uid);
  return made;
}

Result<Manifest> make_backup(const BackupRequest& request, const std::string& folder) {
  const SplitPath place = split_path(folder);
  auto parent = open_folder(place.folder);
  if (!parent) return fail(parent.error().code, "mkdir {}: {}", folder, parent.error().text);
  struct stat there{};
  if (::fstatat(parent->get(), place.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0)
    return fail(Errc::kExists, "{} is there already", folder);
  const std::string partial = place.name + ".partial";
  if (auto cleared = remove_below(*parent, partial); !cleared)
    return fail(cleared.error().code, "{}.partial: {}", folder, cleared.error().text);
  auto made = make_partial(*parent, partial, folder + ".partial");
  if (!made) return pass(made);
  auto manifest = Making(request, *made).make();
  if (manifest && ::renameat(parent->get(), partial.c_str(), parent->get(), place.name.c_str()) != 0)
    manifest = fail_errno(fmt::format("rename {}.partial", folder));
  if (!manifest) {
    static_cast<void>(remove_below(*parent, partial));
    return manifest;
  }
  if (auto synced = sync_folder(*parent, place.folder); !synced) return pass(synced);
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

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/guarded_path.h"
#include "config/files.h"
#include "config/load.h"
#include "config/yaml/secret_text.h"
#include "ctl/backup/backup_command.h"
#include "ctl/backup/dump_commands.h"
#include "ctl/backup/file_copy.h"
#include "ctl/backup/manifest.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

/// A secret for reading a configuration from which the backup left it out.
constexpr std::string_view kStandIn = "\"c3RhbmRzIGluIGZvciBhIGtleQ==\"";

/// The restore of one backup.
class Restoring {
 public:
  Restoring(std::string folder, bool replace, const Output& output)
      : folder_{Fd(), std::move(folder)}, replace_(replace), output_(output) {}

  Result<zone::DumpCounts> run() {
    auto opened = open_folder(folder_.path);
    if (!opened) return fail(opened.error().code, "{}: {}", folder_.path, opened.error().text);
    folder_.fd = std::move(*opened);
    auto manifest = read_manifest(folder_);
    if (!manifest) return pass(manifest);
    manifest_ = std::move(*manifest);
    if (auto fine = check_saved(); !fine) return pass(fine);
    if (auto read = read_settings(); !read) return pass(read);
    if (auto fine = check_place(); !fine) return pass(fine);
    if (auto made = make_folders(); !made) return pass(made);
    for (const SavedFile* file : missing_)
      if (auto put = put_back(*file); !put) return pass(put);
    auto dump = open_saved(kSavedDump);
    if (!dump) return pass(dump);
    return place_dump(*dump, path_of(kSavedDump), settings_, output_);
  }

  [[nodiscard]] const Manifest& manifest() const noexcept { return manifest_; }
  /// Files that were not there as they are in the backup.
  [[nodiscard]] std::size_t written() const noexcept { return missing_.size(); }

 private:
  Status check_saved() const {
    for (const SavedFile& file : manifest_.files) {
      if (!file.path.starts_with('/') || fs::path(file.path).lexically_normal() != file.path)
        return fail(Errc::kCorrupt, "{}: no absolute path", file.path);
      const CopiedFile saved{file.bytes, file.hash};
      if (auto fine = check_file(saved_path(file.path), saved); !fine) return fine;
    }
    return check_file(kSavedDump, {manifest_.dump_bytes, manifest_.dump_hash});
  }

  [[nodiscard]] std::string path_of(const std::string& name) const {
    return folder_.path + "/" + name;
  }

  /// Root writes what the backup contains, so each file must be root's own.
  Result<Fd> open_saved(const std::string& name) const {
    auto file = open_below(folder_.fd, name);
    if (!file) return fail(file.error().code, "{}: {}", path_of(name), file.error().text);
    if (!is_regular(*file)) return fail(Errc::kCorrupt, "{}: not a file", path_of(name));
    return file;
  }

  Status check_file(const std::string& name, const CopiedFile& saved) const {
    auto file = open_saved(name);
    if (!file) return pass(file);
    auto seen = hash_contents(*file, path_of(name));
    if (!seen) return pass(seen);
    if (seen->hash == saved.hash && seen->bytes == saved.bytes) return {};
    return fail(Errc::kCorrupt, "{}: damaged, not what was saved", path_of(name));
  }

  /// The saved configuration as it will be read at its place. Its lists and zone files may not be
  /// there yet, and the secrets need not be.
  Status read_settings() {
    const auto text = read_saved_text(manifest_.configuration);
    if (!text) return tl::unexpected<Error>(text.error());
    config::FileTexts included;
    for (const std::string& path : manifest_.included) {
      auto one = read_saved_text(path);
      if (!one) return pass(one);
      included[path] = std::move(*one);
    }
    auto loaded = config::load_text(*text, manifest_.configuration,
                                    {.read_zone_lists = false,
                                     .read_key_files = false,
                                     .read_http_key_files = false,
                                     .included = &included});
    if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
    settings_ = std::move(loaded.settings);
    return {};
  }

  /// A file of the configuration, with a secret in the place of each that was left out.
  Result<std::string> read_saved_text(const std::string& path) const {
    const std::string saved = saved_path(path);
    auto file = open_saved(saved);
    if (!file) return pass(file);
    auto text = config::read_open_file(*file, path_of(saved));
    if (!text) return text;
    for (std::size_t at = text->find(config::kNoSecret); at != std::string::npos;
         at = text->find(config::kNoSecret, at))
      text->replace(at, config::kNoSecret.size(), kStandIn);
    return text;
  }

  Status check_place() {
    if (auto stopped = check_stopped(settings_); !stopped) return stopped;
    std::error_code error;
    std::size_t in_the_way = 0;
    for (const SavedFile& file : manifest_.files) {
      const bool there = fs::exists(fs::symlink_status(file.path, error));
      if (there && is_equal(file)) continue;
      missing_.push_back(&file);
      if (!there || replace_) continue;
      ++in_the_way;
      output_.err << fmt::format("{} is there, and differs from the backup\n", file.path);
    }
    if (in_the_way > 0)
      return fail(Errc::kExists, "nothing is restored: --replace would replace {} that differ{}",
                  counted(in_the_way, "file"), in_the_way == 1 ? "s" : "");
    return {};
  }

  /// Whether the file at its place is the saved one. A link of a lesser user is not.
  static bool is_equal(const SavedFile& file) {
    const auto there = open_to_read(file.path);
    if (!there || !is_regular(*there)) return false;
    const auto seen = hash_contents(*there, file.path);
    return seen && seen->hash == file.hash && seen->bytes == file.bytes;
  }

  /// The folders of journal, store and image, for the user whose server it is.
  Status make_folders() const {
    const std::string& image = settings_.store.image;
    for (const std::string& folder :
         {settings_.store.journal, fs::path(settings_.store.path).parent_path().string(),
          image.empty() ? std::string() : fs::path(image).parent_path().string()}) {
      std::error_code error;
      if (folder.empty() || fs::exists(folder, error)) continue;
      auto made = make_folder(folder, 0750);
      if (!made) return fail(made.error().code, "{}: {}", folder, made.error().text);
      if (auto owned = give_to(*made, folder, settings_.server.user, ""); !owned) return owned;
    }
    return {};
  }

  /// Only root can give files away; a user or group that this host does not have is left.
  static Status give_to(const Fd& file, const std::string& path, const std::string& user,
                        const std::string& group) {
    if (::geteuid() != 0) return {};
    const passwd* owner = user.empty() ? nullptr : ::getpwnam(user.c_str());
    const uid_t uid = owner != nullptr ? owner->pw_uid : static_cast<uid_t>(-1);
    gid_t gid = owner != nullptr ? owner->pw_gid : static_cast<gid_t>(-1);
    if (const struct group* named = group.empty() ? nullptr : ::getgrnam(group.c_str()))
      gid = named->gr_gid;
    if (::fchownat(file.get(), "", uid, gid, AT_EMPTY_PATH) != 0)
      return fail_errno("chown of " + path);
    return {};
  }

  /// By the folder's descriptor: between two uses of its path, the owner of a folder above it could
  /// put a link there.
  Status put_back(const SavedFile& file) const {
    const SplitPath place = split_path(file.path);
    auto parent = make_folder(place.folder, 0755);
    if (!parent) return fail(parent.error().code, "{}: {}", file.path, parent.error().text);
    const std::string partial = place.name + ".partial";
    const Status written = write_file(file, *parent, partial);
    if (written &&
        ::renameat(parent->get(), partial.c_str(), parent->get(), place.name.c_str()) == 0)
      return sync_folder(*parent, place.folder);
    const Status failed =
        written ? Status(fail_errno(fmt::format("rename {}.partial", file.path))) : written;
    ::unlinkat(parent->get(), partial.c_str(), 0);
    return failed;
  }

  Status write_file(const SavedFile& file, const Fd& parent, const std::string& name) const {
    const std::string saved = saved_path(file.path);
    const std::string partial = file.path + ".partial";
    auto from = open_saved(saved);
    if (!from) return pass(from);
    ::unlinkat(parent.get(), name.c_str(), 0);
    const Fd to(::openat(parent.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!to) return fail_errno("create " + partial);
    if (auto copied = copy_contents(*from, path_of(saved), to, partial); !copied)
      return pass(copied);
    if (auto owned = give_to(to, partial, file.user, file.group); !owned) return owned;
    // The bits for set-user-ID and the like are never a zone's or a configuration's.
    if (::fchmod(to.get(), static_cast<mode_t>(file.mode & 0777U)) != 0)
      return fail_errno("fchmod of " + partial);
    // An equal file with its time is known as unchanged by the next start.
    const timespec modified{file.modified_ns / 1'000'000'000, file.modified_ns % 1'000'000'000};
    const timespec times[] = {{0, UTIME_NOW}, modified};
    if (::futimens(to.get(), times) != 0) return fail_errno("futimens of " + partial);
    return {};
  }

  BackupFolder folder_;
  bool replace_;
  const Output& output_;
  Manifest manifest_;
  config::Settings settings_;
  std::vector<const SavedFile*> missing_;
};

void tell(const Restoring& restored, const zone::DumpCounts& counts, const Output& output) {
  const Manifest& manifest = restored.manifest();
  if (output.json) {
    output.out << nlohmann::json{{"configuration", manifest.configuration},
                                 {"files-written", restored.written()},
                                 {"zones", counts.zones},
                                 {"records", counts.records},
                                 {"keys-left-out", manifest.keys_left_out},
                                 {"files-left-out", manifest.files_left_out}}
                      .dump()
               << '\n';
    return;
  }
  output.out << fmt::format(
      "{} of {} written; {} with {}\n", restored.written(),
      counted(manifest.files.size(), "file"), counted(counts.zones, "zone"),
      counted(counts.records, "record"));
  for (std::size_t i = 0; i < manifest.keys_left_out.size(); ++i)
    output.out << fmt::format("write into {}: the secret of key {}\n", manifest.files_of_keys[i],
                              manifest.keys_left_out[i]);
  for (const std::string& path : manifest.files_left_out)
    output.out << fmt::format("put there: {}\n", path);
  output.out << fmt::format("then start: pando-manager --config {}\n", manifest.configuration);
}

}  // namespace

int restore(const std::string& folder, bool replace, Output output) {
  Restoring restoring(fs::absolute(folder).lexically_normal().string(), replace, output);
  const auto counts = restoring.run();
  if (!counts) return refuse(output, counts.error());
  tell(restoring, *counts, output);
  return kDone;
}

}  // namespace pando::ctl

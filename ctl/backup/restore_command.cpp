#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/files.h"
#include "config/load.h"
#include "config/secret_text.h"
#include "ctl/backup/backup_command.h"
#include "ctl/backup/dump_commands.h"
#include "ctl/backup/file_copy.h"
#include "ctl/backup/manifest.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

/// A secret for reading a configuration from which the backup left it out.
constexpr std::string_view kStandIn = "\"c3RhbmRzIGluIGZvciBhIGtleQ==\"";

/// One backup on its way back.
class Restoring {
 public:
  Restoring(std::string folder, bool replace, const Output& output)
      : folder_(std::move(folder)), replace_(replace), output_(output) {}

  Result<zone::DumpCounts> run() {
    auto manifest = read_manifest(folder_);
    if (!manifest) return pass(manifest);
    manifest_ = std::move(*manifest);
    if (auto fine = check_saved(); !fine) return pass(fine);
    if (auto read = read_settings(); !read) return pass(read);
    if (auto fine = check_place(); !fine) return pass(fine);
    if (auto made = make_folders(); !made) return pass(made);
    for (const SavedFile* file : missing_)
      if (auto put = put_back(*file); !put) return pass(put);
    return place_dump(saved_dump(folder_), settings_, output_);
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
      if (auto fine = check_file(saved_path(folder_, file.path), saved); !fine) return fine;
    }
    return check_file(saved_dump(folder_), {manifest_.dump_bytes, manifest_.dump_hash});
  }

  static Status check_file(const std::string& path, const CopiedFile& saved) {
    auto seen = hash_file(path);
    if (!seen) return pass(seen);
    if (seen->hash == saved.hash && seen->bytes == saved.bytes) return {};
    return fail(Errc::kCorrupt, "{}: damaged, not what was saved", path);
  }

  /// The saved configuration as it will be read at its place. Its lists and zone files may not be
  /// there yet, and the secrets need not be.
  Status read_settings() {
    auto text = config::read_regular_file(saved_path(folder_, manifest_.configuration));
    if (!text) return pass(text);
    for (std::size_t at = text->find(config::kNoSecret); at != std::string::npos;
         at = text->find(config::kNoSecret, at))
      text->replace(at, config::kNoSecret.size(), kStandIn);
    auto loaded = config::load_text(*text, manifest_.configuration,
                                    {.read_zone_lists = false,
                                     .read_key_files = false,
                                     .read_http_key_files = false});
    if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
    settings_ = std::move(loaded.settings);
    return {};
  }

  Status check_place() {
    if (auto stopped = check_stopped(settings_); !stopped) return stopped;
    std::error_code error;
    std::size_t in_the_way = 0;
    for (const SavedFile& file : manifest_.files) {
      const bool there = fs::exists(fs::symlink_status(file.path, error));
      const auto seen = there ? hash_file(file.path) : Result<CopiedFile>(CopiedFile{});
      if (there && seen && seen->hash == file.hash && seen->bytes == file.bytes) continue;
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

  /// The folders of journal, store and image, for the user whose server it is.
  Status make_folders() const {
    const std::string& image = settings_.store.image;
    for (const std::string& folder :
         {settings_.store.journal, fs::path(settings_.store.path).parent_path().string(),
          image.empty() ? std::string() : fs::path(image).parent_path().string()}) {
      std::error_code error;
      if (folder.empty() || fs::exists(folder, error)) continue;
      fs::create_directories(folder, error);
      if (error) return fail(Errc::kIo, "{}: {}", folder, error.message());
      auto made = open_file(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (!made) return pass(made);
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
    if (::fchown(file.get(), uid, gid) != 0) return fail_errno("chown of " + path);
    return {};
  }

  Status put_back(const SavedFile& file) const {
    std::error_code error;
    const std::string parent = fs::path(file.path).parent_path().string();
    fs::create_directories(parent, error);
    if (error) return fail(Errc::kIo, "{}: {}", parent, error.message());
    const std::string partial = file.path + ".partial";
    const Status written = write_file(file, partial);
    if (written && ::rename(partial.c_str(), file.path.c_str()) == 0) return sync_folder(parent);
    const Status failed = written ? Status(fail_errno("rename " + partial)) : written;
    ::unlink(partial.c_str());
    return failed;
  }

  Status write_file(const SavedFile& file, const std::string& partial) const {
    const std::string saved = saved_path(folder_, file.path);
    auto from = open_file(saved, O_RDONLY | O_NOFOLLOW);
    if (!from) return pass(from);
    ::unlink(partial.c_str());
    auto to = open_file(partial, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!to) return pass(to);
    if (auto copied = copy_contents(*from, saved, *to, partial); !copied) return pass(copied);
    if (auto owned = give_to(*to, partial, file.user, file.group); !owned) return owned;
    if (::fchmod(to->get(), static_cast<mode_t>(file.mode)) != 0)
      return fail_errno("fchmod of " + partial);
    // An equal file with its time is known as unchanged by the next start.
    const timespec modified{file.modified_ns / 1'000'000'000, file.modified_ns % 1'000'000'000};
    const timespec times[] = {{0, UTIME_NOW}, modified};
    if (::futimens(to->get(), times) != 0) return fail_errno("futimens of " + partial);
    return {};
  }

  std::string folder_;
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
  for (const std::string& key : manifest.keys_left_out)
    output.out << fmt::format("write into {}: the secret of key {}\n", manifest.configuration, key);
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

#include "manager/zonefile/export_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/merge/merge_base.h"

namespace pando::manager {

namespace {

/// A suffix of its own, distinct from kPartial: a leftover `.export` file may be the merge base and
/// must not be removed as garbage.
constexpr const char* kExport = ".export";

/// Resolves a symbolic link, so that an export replaces the target and keeps the link.
std::string file_behind(const std::string& path) {
  std::error_code error;
  const auto resolved = std::filesystem::canonical(path, error);
  return error ? path : resolved.string();
}

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// The start of an export's first comment, up to the serial; also recognises exports.
std::string comment_of(const zone::ZoneView& zone) {
  return fmt::format("zone {} at serial ", to_text(zone.apex()));
}

/// True if a sticky folder such as /tmp forbids replacing the other user's file.
bool is_protected_by_its_folder(const struct statx& file, const std::string& folder) {
  struct stat parent{};
  if (::stat(folder.c_str(), &parent) != 0 || (parent.st_mode & S_ISVTX) == 0) return false;
  const uid_t own = ::geteuid();
  return own != 0 && own != file.stx_uid && own != parent.st_uid;
}

/// kDenied if the file at `path` could not be replaced by a rename. The check precedes the journal
/// record: a failed rename afterwards would leave the zone between two files.
Status check_replaceable(const std::string& path) {
  struct statx file{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &file) != 0)
    return errno == ENOENT ? Status() : Status(fail_errno("statx " + path));
  constexpr std::uint64_t kFixed = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_MOUNT_ROOT;
  if ((file.stx_attributes & kFixed) != 0)
    return fail(Errc::kDenied,
                "{} cannot be replaced: it is a mount point, immutable or append-only", path);
  if (is_protected_by_its_folder(file, folder_of(path)))
    return fail(Errc::kDenied, "{} cannot be replaced: it is another user's in a sticky folder",
                path);
  return {};
}

/// Copies owner and mode as far as the process may: users who could read the old file must be able
/// to read the new one.
void take_over_owner_and_mode(const std::string& from, const std::string& to) {
  struct stat old{};
  if (::stat(from.c_str(), &old) != 0) return;
  const auto none = static_cast<uid_t>(-1);
  const bool owner = ::chown(to.c_str(), old.st_uid, old.st_gid) == 0;
  const bool group = owner || ::chown(to.c_str(), none, old.st_gid) == 0;
  // Without the right group, group permissions are dropped: they would apply to another group.
  ::chmod(to.c_str(), old.st_mode & (group ? 0777U : 0707U));
}

/// Returns the hash of the written text.
Result<std::uint64_t> write_and_sync(Files& files, const zone::ZoneView& zone,
                                     const std::string& path) {
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return pass(file);
  auto hash =
      write_zone_text(**file, zone, fmt::format("{}{}", comment_of(zone), zone.serial().value));
  const Status done = hash ? (*file)->sync() : Status(pass(hash));
  if (!done) return fail(done.error().code, "{}: {}", path, done.error().text);
  return *hash;
}

/// Compares the change time: tools that copy modification times cannot set the change time.
bool was_changed_after(const std::string& path, const zone::ZoneFileInfo& written) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return false;
  const std::int64_t changed =
      std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
  return changed > written.file_mtime_ns;
}

Status keep_edit(Files& files, const std::string& path, const zone::ZoneFileInfo& base) {
  const std::string kept = fmt::format("{}.edited.{}", path, base.file_mtime_ns);
  log::error("file_edit_kept", "path", path, "kept", kept, "reason",
             "the file was changed in the moment in which it was exported");
  return files.rename(path, kept);
}

}  // namespace

Result<zone::ZoneFileInfo> write_export(Files& files, const zone::ZoneView& zone,
                                        const std::string& path) {
  const std::string target = file_behind(path);
  const std::string beside = target + kExport;
  if (auto may = check_replaceable(target); !may) return pass(may);
  auto hash = write_and_sync(files, zone, beside);
  Status done = status_of(hash);
  if (done) {
    take_over_owner_and_mode(target, beside);
    done = files.sync_directory(folder_of(target));
  }
  auto written = done ? stat_source(beside) : std::nullopt;
  crash_point("export-written");
  if (written) {
    written->hash = *hash;
    return *written;
  }
  drop_export(files, path);
  if (!done) return pass(done);
  return fail(Errc::kNotFound, "{} was removed while it was written", beside);
}

void drop_export(Files& files, const std::string& path) {
  static_cast<void>(files.remove(file_behind(path) + kExport));
}

Result<bool> finish_export(Files& files, const std::string& path, const zone::ZoneFileInfo& base) {
  static std::mutex mutex;  // an export and a reload may both get here at the same time
  const std::lock_guard lock(mutex);
  const std::string target = file_behind(path);
  const std::string beside = target + kExport;
  const auto written = stat_source(beside);
  if (!written || !same_source(*written, base)) return false;
  if (was_changed_after(target, base))
    if (auto kept = keep_edit(files, target, base); !kept) return pass(kept);
  if (auto renamed = files.rename(beside, target); !renamed) return pass(renamed);
  crash_point("export-renamed");
  if (auto synced = files.sync_directory(folder_of(target)); !synced) return pass(synced);
  return true;
}

namespace {

/// True when the second line of a regular file is an export's comment; $ORIGIN stands before it.
Result<bool> is_export(Files& files, const zone::ZoneView& zone, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error))) return false;
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return pass(file);
  std::string text(4096, '\0');  // enough for two lines with a domain name each
  auto read = (*file)->read_at(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (!read) return pass(read);
  const auto end = text.find('\n');
  return end != std::string::npos &&
         std::string_view(text).substr(end + 1).starts_with("; " + comment_of(zone));
}

/// kExists if `path` holds anything but an export of `zone`.
Status check_is_export(Files& files, const zone::ZoneView& zone, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) return {};
  const auto is = is_export(files, zone, path);
  if (!is) return pass(is);
  if (*is) return {};
  return fail(Errc::kExists, "{} is there already, and is no export of {}", path,
              to_text(zone.apex()));
}

}  // namespace

Status write_zone_into(StoreFile& file, const zone::ZoneView& zone) {
  auto hash =
      write_zone_text(file, zone, fmt::format("{}{}", comment_of(zone), zone.serial().value));
  return hash ? file.sync() : Status(pass(hash));
}

Status write_zone_to(Files& files, const zone::ZoneView& zone, const std::string& path) {
  if (auto may = check_is_export(files, zone, path); !may) return may;
  const std::string partial = path + kPartial;
  auto written = write_and_sync(files, zone, partial);
  Status done = status_of(written);
  if (done) take_over_owner_and_mode(path, partial);
  if (done) done = files.rename(partial, path);
  if (done) return files.sync_directory(folder_of(path));
  static_cast<void>(files.remove(partial));
  return done;
}

}  // namespace pando::manager

#include "ctl/backup/dump_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/files/guarded_path.h"
#include "config/load.h"
#include "ctl/backup/file_copy.h"
#include "ctl/view/progress_bar.h"
#include "ipc/control.h"
#include "zone/dump/dump_reader.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

bool has_records(const std::string& journal) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(journal, error)) {
    const fs::path extension = entry.path().extension();
    if (extension == ".journal" || extension == ".snapshot") return true;
  }
  return false;
}

/// Where the manager finds the dump. The journal's folder is the manager's: its user may put links
/// there, and may exchange what is there at any moment.
struct DumpPlace {
  Fd folder;
  std::string path;  ///< of the folder, for messages
  std::string partial = std::string(zone::kPlacedDumpName) + ".partial";

  [[nodiscard]] std::string path_of(const std::string& name) const { return path + "/" + name; }
};

/// The identity in the journal's file; empty: no journal.
std::string identity_of(const DumpPlace& place) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const Fd file(::openat(place.folder.get(), "identity", kFlags));
  std::array<std::uint8_t, 256> text{};
  if (!file || !is_regular(file)) return {};
  const auto got = read_some(file.get(), text);
  const auto end = std::find(text.begin(), text.begin() + got.value_or(0), ' ');
  std::string identity(text.begin(), end);  // the checksum follows
  while (identity.ends_with('\n')) identity.pop_back();
  return identity;
}

Status check_owner(const zone::DumpHeader& header, const DumpPlace& place) {
  const std::string owner = fmt::format("{:016x}{:016x}", header.owner[0], header.owner[1]);
  if (owner == identity_of(place) || !has_records(place.path)) return {};
  return fail(Errc::kDenied, "the dump is of another journal, and {} has records of its own",
              place.path);
}

/// A new file for root alone: while it is written and checked, nobody reads or changes it.
Result<Fd> make_copy(const Fd& from, const std::string& from_path, const DumpPlace& place) {
  const std::string path = place.path_of(place.partial);
  if (::unlinkat(place.folder.get(), place.partial.c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno("unlink " + path);
  Fd to(::openat(place.folder.get(), place.partial.c_str(),
                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!to) return fail_errno("create " + path);
  if (auto copied = copy_contents(from, from_path, to, path); !copied) return pass(copied);
  if (::lseek(to.get(), 0, SEEK_SET) != 0) return fail_errno("lseek of " + path);
  return to;
}

/// Checks the copy, which no process changes any more, rather than the original.
Result<zone::DumpCounts> check_copy(const Fd& copy, const std::string& path,
                                    const DumpPlace& place, ProgressBar& bar) {
  const auto read = [&, bytes = std::uint64_t{0}](std::span<std::uint8_t> into) mutable {
    auto got = read_some(copy.get(), into);
    bar.at(bytes += got.value_or(0));
    return got;
  };
  auto reader = zone::DumpReader::open(read, path);
  if (!reader) return pass(reader);
  if (auto fine = check_owner(reader->header(), place); !fine) return pass(fine);
  return zone::check_dump(*reader);
}

/// Gives the copy to the folder's owner, and its name. A copy of a file that is no dump is never
/// given: the one who placed that file may not be allowed to read it.
Status put_in_place(const Fd& copy, const DumpPlace& place) {
  struct stat folder{};
  if (::fstat(place.folder.get(), &folder) != 0) return fail_errno("stat of " + place.path);
  const std::string partial = place.path_of(place.partial);
  if (::geteuid() == 0 && ::fchown(copy.get(), folder.st_uid, folder.st_gid) != 0)
    return fail_errno("fchown of " + partial);
  if (::renameat(place.folder.get(), place.partial.c_str(), place.folder.get(),
                 zone::kPlacedDumpName) != 0)
    return fail_errno("rename " + partial);
  return sync_folder(place.folder, place.path);
}

Result<zone::DumpCounts> check_and_place(const Fd& dump, const std::string& path,
                                         const config::Settings& settings, ProgressBar& bar) {
  if (auto fine = check_stopped(settings); !fine) return pass(fine);
  const std::string& journal = settings.store.journal;
  if (std::error_code error; !fs::is_directory(journal, error))
    return fail(Errc::kNotFound, "{}: no such folder (store.journal)", journal);
  auto folder = open_folder(journal);
  if (!folder) return fail(folder.error().code, "{}: {}", journal, folder.error().text);
  const DumpPlace place{std::move(*folder), journal};
  auto copy = make_copy(dump, path, place);
  auto counts = copy ? check_copy(*copy, path, place, bar) : Result<zone::DumpCounts>(pass(copy));
  Status placed = counts ? put_in_place(*copy, place) : Status();
  if (counts && placed) return counts;
  ::unlinkat(place.folder.get(), place.partial.c_str(), 0);
  return counts ? Result<zone::DumpCounts>(pass(placed)) : counts;
}

}  // namespace

Status check_stopped(const config::Settings& settings) {
  if (ipc::connect_control(settings.server.run_directory))
    return fail(Errc::kExists, "a manager runs: stop it first");
  if (std::error_code error; fs::exists(settings.store.path, error))
    return fail(Errc::kExists, "{} is there, and the server would go on with it: remove it first",
                settings.store.path);
  return {};
}

Result<zone::DumpCounts> place_dump(const Fd& dump, const std::string& path,
                                    const config::Settings& settings, const Output& output) {
  struct stat status{};
  const bool known = ::fstat(dump.get(), &status) == 0 && status.st_size > 0;
  ProgressBar bar(output.err, !output.json && stderr_is_terminal(),
                  known ? static_cast<std::uint64_t>(status.st_size) : 0);
  return check_and_place(dump, path, settings, bar);
}

int load_dump(const std::string& path, const std::string& config, Output output) {
  const auto loaded = config::load(config, {.read_zone_lists = false});
  if (!loaded.ok()) {
    output.err << loaded.error_text() << '\n';
    return kFailed;
  }
  const auto dump = open_to_read(path);
  if (!dump) return refuse(output, dump.error());
  const auto counts = place_dump(*dump, path, loaded.settings, output);
  if (!counts) return refuse(output, counts.error());
  if (output.json)
    output.out << nlohmann::json{{"zones", counts->zones},
                                 {"records", counts->records},
                                 {"changesets", counts->changesets},
                                 {"snapshots", counts->snapshots}}
                      .dump()
               << '\n';
  else
    output.out << fmt::format("{}: {} with {}; the server starts on it\n", path,
                              counted(counts->zones, "zone"), counted(counts->records, "record"));
  return kDone;
}

}  // namespace pando::ctl

#include "ctl/backup/dump_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/fd.h"
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

/// The identity in the journal's file; empty: no journal.
std::string identity_of(const std::string& journal) {
  std::string text;
  std::ifstream(journal + "/identity") >> text;  // the checksum follows
  return text;
}

Status check_owner(const zone::DumpHeader& header, const std::string& journal) {
  const std::string owner = fmt::format("{:016x}{:016x}", header.owner[0], header.owner[1]);
  if (owner == identity_of(journal) || !has_records(journal)) return {};
  return fail(Errc::kDenied, "the dump is of another journal, and {} has records of its own",
              journal);
}

/// Copies the file for the owner of the folder `owner`, who may be another user. No other user may
/// read the copy.
Result<Fd> make_copy(const std::string& path, const std::string& partial,
                     const std::string& owner) {
  auto from = open_file(path, O_RDONLY);
  if (!from) return from;
  auto to = open_file(partial, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (!to) return to;
  struct stat folder{};
  if (::stat(owner.c_str(), &folder) != 0) return fail_errno("stat of " + owner);
  if (::fchmod(to->get(), 0600) != 0) return fail_errno("fchmod of " + partial);
  if (::geteuid() == 0 && ::fchown(to->get(), folder.st_uid, folder.st_gid) != 0)
    return fail_errno("fchown of " + partial);
  if (auto copied = copy_contents(*from, path, *to, partial); !copied) return pass(copied);
  if (::lseek(to->get(), 0, SEEK_SET) != 0) return fail_errno("lseek of " + partial);
  return to;
}

/// Checks the copy, which no process changes any more, rather than the original.
Result<zone::DumpCounts> check_copy(const Fd& copy, const std::string& path,
                                    const std::string& journal, ProgressBar& bar) {
  const auto read = [&, bytes = std::uint64_t{0}](std::span<std::uint8_t> into) mutable {
    auto got = read_some(copy.get(), into);
    bar.at(bytes += got.value_or(0));
    return got;
  };
  auto reader = zone::DumpReader::open(read, path);
  if (!reader) return pass(reader);
  if (auto fine = check_owner(reader->header(), journal); !fine) return pass(fine);
  return zone::check_dump(*reader);
}

Status put_in_place(const std::string& partial, const std::string& place,
                    const std::string& folder) {
  if (::rename(partial.c_str(), place.c_str()) != 0) return fail_errno("rename " + partial);
  return sync_folder(folder);
}

Result<zone::DumpCounts> check_and_place(const std::string& path,
                                         const config::Settings& settings, ProgressBar& bar) {
  if (auto fine = check_stopped(settings); !fine) return pass(fine);
  const std::string& journal = settings.store.journal;
  if (std::error_code error; !fs::is_directory(journal, error))
    return fail(Errc::kNotFound, "{}: no such folder (store.journal)", journal);
  const std::string place = fmt::format("{}/{}", journal, zone::kPlacedDumpName);
  const std::string partial = place + ".partial";
  auto copy = make_copy(path, partial, journal);
  auto counts = copy ? check_copy(*copy, path, journal, bar) : Result<zone::DumpCounts>(pass(copy));
  Status placed = counts ? put_in_place(partial, place, journal) : Status();
  if (counts && placed) return counts;
  ::unlink(partial.c_str());
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

Result<zone::DumpCounts> place_dump(const std::string& path, const config::Settings& settings,
                                    const Output& output) {
  std::error_code unknown;
  const auto bytes = fs::file_size(path, unknown);
  ProgressBar bar(output.err, !output.json && stderr_is_terminal(), unknown ? 0 : bytes);
  return check_and_place(path, settings, bar);
}

int load_dump(const std::string& path, const std::string& config, Output output) {
  const auto loaded = config::load(config, {.read_zone_lists = false});
  if (!loaded.ok()) {
    output.err << loaded.error_text() << '\n';
    return kFailed;
  }
  const auto counts = place_dump(path, loaded.settings, output);
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

#include "ctl/commands/scratch_zone.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "zone/builder/broken_rules.h"
#include "zone/draft/draft.h"

namespace pando::ctl {

namespace {

/// The caller's folder may be closed to an ActingUser.
std::string temporary_folder() {
  const char* named = ::getenv("TMPDIR");
  const bool is_open =
      named != nullptr && ::faccessat(AT_FDCWD, named, W_OK | X_OK, AT_EACCESS) == 0;
  return is_open ? named : "/tmp";
}

}  // namespace

Result<shm::Store> scratch_store() {
  std::string folder = fmt::format("{}/pandoctl-XXXXXX", temporary_folder());
  if (::mkdtemp(folder.data()) == nullptr) return fail_errno("cannot create " + folder);
  shm::StoreOptions options;
  options.path = folder + "/zone.store";
  options.layout = zone::layout_fingerprint();
  options.mode = 0600;
  options.allow_any_filesystem = true;
  auto store = shm::Store::create(options);
  ::unlink(options.path.c_str());
  ::rmdir(folder.c_str());
  return store;
}

dns::ScanReport read_zone_file(const std::string& path, dns::ScanOptions options,
                               zone::ZoneBuilder& builder, Progress& progress) {
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(path, unknown);
  progress.begin(Progress::Phase::kReading, unknown ? 0 : bytes);
  options.bytes_read = &progress.done();
  return dns::scan_zone_file(path, options, [&](const dns::ScannedRecord& record) {
    return builder.add(record.owner, record.type, record.ttl, record.rdata);
  });
}

std::vector<std::string> lines_about(const std::string& path, const dns::ScanOptions& options,
                                     const Error& error, Progress& progress) {
  progress.begin(Progress::Phase::kChecking, 0);
  auto lines = zone::find_broken_rules(path, options);
  if (lines.empty()) lines.push_back(fmt::format("{}: {}", path, error.text));
  return lines;
}

}  // namespace pando::ctl

#include "manager/zonefile/zone_writing.h"

#include <filesystem>
#include <optional>

#include "base/content_hash.h"
#include "base/crash_point.h"
#include "dns/zonefile/zone_text.h"
#include "manager/io/throttled_file.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/support/zone_text_records.h"

namespace pando::manager {

namespace {

/// With fewer files a sync of each is as cheap, and leaves alone what other programs have written.
constexpr std::size_t kFewestTogether = 16;

using Hashes = std::vector<Result<std::uint64_t>>;

std::string folder_holding(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

enum class IsSynced : std::uint8_t { kYes, kNo };

/// Writes the file beside its place; nothing is left of a file that failed.
Result<std::uint64_t> write_copy_text(Files& files, const ZoneFileToWrite& one, IsSynced synced) {
  const std::string partial = one.path + kPartial;
  auto file = files.open(partial, OpenMode::kCreate);
  if (!file) return pass(file);
  auto hash = write_zone_text(
      **file, one.zone,
      fmt::format("copy of {} at serial {}", to_text(one.zone.apex()), one.zone.serial().value));
  Status done = status_of(hash);
  if (done && synced == IsSynced::kYes) done = (*file)->sync();
  if (done) return hash;
  static_cast<void>(files.remove(partial));
  return pass(done);
}

/// Puts a durable file in its place.
Status give_name(Files& files, const std::string& path) {
  Status done = files.rename(path + kPartial, path);
  if (!done) static_cast<void>(files.remove(path + kPartial));
  return done;
}

/// Makes the names of all files in `folder` durable; if that fails, none counts.
void sync_names(Files& files, const std::string& folder, Hashes& hashes) {
  const Status named = files.sync_directory(folder);  // an error is passed on more than once
  if (named) return;
  for (Result<std::uint64_t>& hash : hashes)
    if (hash) hash = pass(named);
}

/// Nullopt: the files cannot be synced together. The error of a group may be that of another
/// program's file, so it says nothing about these.
std::optional<Hashes> write_together(Files& files, std::span<const ZoneFileToWrite> zones) {
  const std::string folder = folder_holding(zones.front().path);
  if (!files.make_directory(folder)) return std::nullopt;
  auto group = files.begin_group(folder);
  if (!group) return std::nullopt;
  Hashes hashes;
  for (const ZoneFileToWrite& one : zones)
    hashes.push_back(write_copy_text(files, one, IsSynced::kNo));
  if (!(*group)->sync()) return std::nullopt;
  crash_point("zone-copy-written");
  for (std::size_t i = 0; i < zones.size(); ++i)
    if (hashes[i])
      if (auto named = give_name(files, zones[i].path); !named) hashes[i] = pass(named);
  sync_names(files, folder, hashes);
  return hashes;
}

}  // namespace

Result<std::uint64_t> write_zone_text(StoreFile& file, const zone::ZoneView& zone,
                                      std::string_view comment) {
  ThrottledFile trickled(file);
  std::uint64_t offset = 0;
  ContentHash hash;
  dns::ZoneTextWriter writer(zone.apex(), {.relative_owners = true}, [&](std::string_view text) {
    auto written = trickled.write_at(offset, bytes_of_text(text));
    offset += text.size();
    hash.add(text.data(), text.size());
    return written;
  });
  auto done = writer.comment(comment);
  const bool is_source = is_signed_here(zone);  // the file is the source of the signed zone
  if (done)
    done = write_zone_records(writer, zone,
                              is_source ? WrittenRecords::kSource : WrittenRecords::kAll);
  if (!done) return pass(done);
  return hash.value();
}

Result<std::uint64_t> write_zone_file(Files& files, const zone::ZoneView& zone,
                                      const std::string& path) {
  const std::string folder = folder_holding(path);
  if (auto made = files.make_directory(folder); !made) return pass(made);
  auto hash = write_copy_text(files, {zone, path}, IsSynced::kYes);
  crash_point("zone-copy-written");
  if (!hash) return hash;
  if (auto done = give_name(files, path); !done) return pass(done);
  if (auto synced = files.sync_directory(folder); !synced) return pass(synced);
  return hash;
}

std::vector<Result<std::uint64_t>> write_zone_files(Files& files,
                                                    std::span<const ZoneFileToWrite> zones) {
  if (zones.size() >= kFewestTogether)
    if (auto written = write_together(files, zones)) return std::move(*written);
  std::vector<Result<std::uint64_t>> results;
  for (const ZoneFileToWrite& one : zones)
    results.push_back(write_zone_file(files, one.zone, one.path));
  return results;
}

}  // namespace pando::manager

#include "manager/zonefile/zone_writing.h"

#include <filesystem>

#include "base/content_hash.h"
#include "base/crash_point.h"
#include "dns/zonefile/zone_text.h"
#include "manager/io/throttled_file.h"
#include "manager/support/zone_text_records.h"

namespace pando::manager {

Result<std::uint64_t> write_zone_text(StoreFile& file, const zone::ZoneView& zone,
                                      std::string_view comment) {
  ThrottledFile trickled(file);
  std::uint64_t offset = 0;
  ContentHash hash;
  dns::ZoneTextWriter writer(zone.apex(), {.relative_owners = true}, [&](std::string_view text) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
    auto written = trickled.write_at(offset, {bytes, text.size()});
    offset += text.size();
    hash.add(text.data(), text.size());
    return written;
  });
  auto done = writer.comment(comment);
  if (done) done = write_zone_records(writer, zone);
  if (!done) return pass(done);
  return hash.value();
}

Result<std::uint64_t> write_zone_file(Files& files, const zone::ZoneView& zone,
                                      const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string partial = path + kPartial;
  if (auto made = files.make_directory(folder); !made) return pass(made);
  auto file = files.open(partial, OpenMode::kCreate);
  if (!file) return pass(file);
  auto hash = write_zone_text(
      **file, zone,
      fmt::format("copy of {} at serial {}", to_text(zone.apex()), zone.serial().value));
  Status done = hash ? (*file)->sync() : Status(pass(hash));
  crash_point("zone-copy-written");
  if (done) done = files.rename(partial, path);
  if (!done) {
    static_cast<void>(files.remove(partial));
    return pass(done);
  }
  if (auto synced = files.sync_directory(folder); !synced) return pass(synced);
  return *hash;
}

}  // namespace pando::manager

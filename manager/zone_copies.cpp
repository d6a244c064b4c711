#include "manager/zone_copies.h"

#include <xxhash.h>

#include <asio/post.hpp>
#include <filesystem>
#include <unordered_set>

#include "base/crash_point.h"
#include "dns/zone_text.h"
#include "ipc/log.h"
#include "manager/zone_diff.h"
#include "zone/each_record.h"

namespace pando::manager {

namespace {

constexpr const char* kPartial = ".partial";  // suffix of a copy that is being written

Status write_text(StoreFile& file, const zone::ZoneView& zone) {
  std::uint64_t offset = 0;
  dns::ZoneTextWriter writer(zone.apex(), {.relative_owners = true}, [&](std::string_view text) {
    const auto* octets = reinterpret_cast<const std::uint8_t*>(text.data());
    auto written = file.write_at(offset, {octets, text.size()});
    offset += text.size();
    return written;
  });
  auto done = writer.comment(
      fmt::format("copy of {} at serial {}", to_text(zone.apex()), zone.serial().value));
  // RFC 1035 §5.2 wants no order, but people and some tools look for the SOA at the top.
  const auto soa = soa_record(zone);
  if (done && soa) done = writer.add(soa->owner, soa->type, soa->ttl, soa->rdata);
  if (done)
    done = zone::for_each_record(
        zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          if (type == dns::RRType::kSOA) return {};
          return writer.add(owner, type, ttl, rdata);
        });
  if (done) done = writer.finish();
  if (done && writer.records() != zone.record_count())
    return fail(Errc::kCorrupt, "{} records where {} are counted", writer.records(),
                zone.record_count());
  return done;
}

}  // namespace

Status write_zone_file(Files& files, const zone::ZoneView& zone, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const std::string partial = path + kPartial;
  if (auto made = files.make_directory(folder); !made) return made;
  auto file = files.open(partial, OpenMode::kCreate);
  if (!file) return pass(file);
  auto done = write_text(**file, zone);
  if (done) done = (*file)->sync();
  crash_point("zone-copy-written");
  if (done) done = files.rename(partial, path);
  if (done) return files.sync_directory(folder);
  static_cast<void>(files.remove(partial));
  return done;
}

std::string copy_name(dns::NameView zone) {
  constexpr std::size_t kMaxStem = 200;  // of 255, with room for the suffixes
  std::string text = to_text(dns::Name(zone).folded());
  if (text.size() > 1) text.pop_back();  // the final dot; the root is nothing else
  std::string stem;
  for (const char c : text) {
    const bool dot = c == '.' && !stem.empty();
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (plain || dot)
      stem += c;
    else
      stem += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (stem.size() <= kMaxStem) return stem + ".zone";
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{}%{:016x}{:016x}.zone", stem.substr(0, 100), hash.high64, hash.low64);
}

ZoneCopies::ZoneCopies(asio::io_context& io, asio::thread_pool& pool, Files& files,
                       Committer& committer, shm::SlotTable& slots, std::string folder)
    : io_(io),
      pool_(pool),
      files_(files),
      committer_(committer),
      slots_(slots),
      folder_(std::move(folder)) {}

std::string ZoneCopies::path_of(const config::ZoneTable& zones, std::size_t index) const {
  std::string path = zones.path(index);
  return path.empty() ? fmt::format("{}/{}", folder_, copy_name(zones[index].name)) : path;
}

void ZoneCopies::keep_only(const RuntimePtr& runtime) {
  asio::post(pool_, [this, runtime] {
    auto names = files_.list(folder_);
    if (!names || names->empty()) return;  // mostly there is no such folder
    const config::ZoneTable& zones = runtime->settings.zones;
    std::unordered_set<std::string> kept;
    for (std::size_t i = 0; i < zones.size(); ++i)
      if (zones[i].options->is_secondary()) {
        kept.insert(copy_name(zones[i].name));
        kept.insert(copy_name(zones[i].name) + kPartial);
      }
    for (const std::string& name : *names)
      if (!kept.contains(name)) static_cast<void>(files_.remove(folder_ + "/" + name));
  });
}

void ZoneCopies::write(const dns::Name& zone, std::string path) {
  const auto [at, fresh] = running_.try_emplace(zone);
  at->second.path = std::move(path);
  if (fresh)
    begin(zone, at->second);
  else
    at->second.again = true;
}

void ZoneCopies::begin(const dns::Name& zone, const Copy& copy) {
  auto version = std::make_shared<zone::Snapshot>(committer_.current());
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots_.pin_own(version->version()));
  asio::post(pool_, [this, zone, path = copy.path, version, pin] {
    const zone::ZoneView view = version->zone_at(zone);
    const bool loaded = view && view.loaded();
    const dns::Serial serial = loaded ? view.serial() : dns::Serial{};
    const Status status = loaded ? write_zone_file(files_, view, path)
                                 : Status(fail(Errc::kNotFound, "the zone has gone"));
    asio::post(io_, [this, zone, pin, serial, status] { end(zone, serial, status); });
  });
}

void ZoneCopies::end(const dns::Name& zone, dns::Serial serial, const Status& status) {
  const auto at = running_.find(zone);
  Copy& copy = at->second;
  ++(status ? written_ : failures_);
  if (status)
    log::info("zone_copied", "zone", to_text(zone), "serial", serial.value, "path", copy.path);
  else
    log::warning("zone_not_copied", "zone", to_text(zone), "path", copy.path, "reason",
                 status.error().text);
  if (!std::exchange(copy.again, false)) {
    running_.erase(at);
    return;
  }
  begin(zone, copy);
}

}  // namespace pando::manager

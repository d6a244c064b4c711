#include "manager/journal_snapshot.h"

#include <sys/random.h>

#include "base/crash_point.h"
#include "manager/segment_reader.h"
#include "zone/changes.h"
#include "zone/each_record.h"

namespace pando::manager {

namespace {

constexpr std::size_t kPartOctets = std::size_t{1} << 20;  // of RDATA and names, before encoding
constexpr std::size_t kFlushOctets = std::size_t{4} << 20;

struct ByCanonicalOrder {
  bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
    return dns::compare_canonical(a, b) < 0;
  }
};
using ZoneNames = std::set<dns::Name, ByCanonicalOrder>;

/// Calls `visit` for each record of the snapshot, then of the segments, that took place. `damaged`
/// is set when some could not be read.
Status for_each_old_record(Files& files, const JournalFiles& sealed, const RecordVisit& visit,
                           bool& damaged) {
  if (auto done = for_each_snapshot_record(files, sealed, visit); !done) {
    if (done.error().code != Errc::kCorrupt) return done;
    damaged = true;
  }
  return for_each_record(files, sealed, 0, visit, [&](const JournalNote&) { damaged = true; });
}

/// Appends records to one file, in large writes.
class SnapshotWriter {
 public:
  SnapshotWriter(StoreFile& file, std::uint64_t position) : file_(file) {
    std::uint64_t nonce = position;
    static_cast<void>(::getrandom(&nonce, sizeof nonce, 0));
    nonce_ = nonce;
    buffer_ = encode_segment_header({FileKind::kSnapshot, position, 0, nonce});
  }

  Status put_zone(const zone::ZoneView& zone) {
    zone::Changes part;
    part.zone = dns::Name(zone.apex());
    std::uint64_t records = 0;
    auto added = zone::for_each_record(
        zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          part.added.push_back({dns::Name(owner), type, ttl, Bytes(rdata.begin(), rdata.end())});
          part_octets_ += owner.size() + rdata.size() + 16;
          if (part_octets_ < kPartOctets) return {};
          records += part.added.size();
          return flush_part(part);
        });
    if (!added) return added;
    records += part.added.size();
    if (auto put = flush_part(part); !put) return put;
    ++zones_;
    if (records != zone.record_count())
      return fail(Errc::kCorrupt, "{} has {} records where {} are counted", to_text(part.zone),
                  records, zone.record_count());
    return put_record(RecordKind::kZoneEnd, part.zone, {}, zone.serial(), count_payload(records));
  }

  Status put_old_record(JournalRecord&& record) {
    return put_record(record.kind, record.zone, record.from, record.to, std::move(record.payload));
  }

  Status finish() {
    auto put = put_record(RecordKind::kFileEnd, dns::Name(), {}, {}, count_payload(zones_));
    if (put) put = flush();
    if (!put) return put;
    crash_point("journal-snapshot-written");
    return file_.sync();
  }

 private:
  static Bytes count_payload(std::uint64_t count) {
    Bytes payload(8);
    store_be64(payload.data(), count);
    return payload;
  }

  Status flush_part(zone::Changes& part) {
    if (part.added.empty()) return {};
    auto put = put_record(RecordKind::kZonePart, part.zone, {}, {}, zone::encode(part));
    part.added.clear();
    part_octets_ = 0;
    return put;
  }

  Status put_record(RecordKind kind, const dns::Name& zone, dns::Serial from, dns::Serial to,
                    Bytes payload) {
    append_record(buffer_, {next_++, 1, kind, zone, from, to, std::move(payload)}, nonce_);
    return buffer_.size() < kFlushOctets ? Status() : flush();
  }

  Status flush() {
    auto written = file_.write_at(offset_, buffer_);
    offset_ += buffer_.size();
    buffer_.clear();
    return written;
  }

  StoreFile& file_;
  std::uint64_t nonce_ = 0;
  std::uint64_t next_ = 1;
  std::uint64_t offset_ = 0;
  std::uint64_t zones_ = 0;
  std::size_t part_octets_ = 0;
  Bytes buffer_;
};

}  // namespace

Result<std::string> write_snapshot(Files& files, const std::string& directory,
                                   const JournalFiles& sealed, const zone::Snapshot& version,
                                   std::uint64_t position) {
  ZoneNames names;
  bool damaged = false;
  auto collected = for_each_old_record(
      files, sealed,
      [&](JournalRecord&& record) -> Status {
        names.insert(record.zone);
        return {};
      },
      damaged);
  if (!collected) return pass(collected);
  // Nobody knows whose records the damage hit: all that is served is written, and the damage goes.
  if (damaged)
    version.for_each_zone(
        [&](const zone::ZoneView& zone) { names.insert(dns::Name(zone.apex())); });
  const std::string path = fmt::format("{}/{:016x}.snapshot.partial", directory, position);
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return pass(file);
  SnapshotWriter writer(**file, position);
  ZoneNames without_data;
  for (const dns::Name& name : names) {
    const zone::ZoneView zone = version.zone_at(name);
    if (zone && !zone.loaded()) without_data.insert(name);
    if (!zone || !zone.loaded()) continue;
    if (auto put = writer.put_zone(zone); !put) return pass(put);
  }
  if (!without_data.empty()) {
    auto kept = for_each_old_record(
        files, sealed,
        [&](JournalRecord&& record) -> Status {
          if (!without_data.contains(record.zone)) return {};
          return writer.put_old_record(std::move(record));
        },
        damaged);
    if (!kept) return pass(kept);
  }
  if (auto done = writer.finish(); !done) return pass(done);
  return path;
}

}  // namespace pando::manager

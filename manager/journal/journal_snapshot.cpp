#include "manager/journal/journal_snapshot.h"

#include "base/crash_point.h"
#include "base/random.h"
#include "manager/io/throttled_file.h"
#include "manager/journal/journal_history.h"
#include "manager/journal/journal_names.h"
#include "zone/read/each_record.h"
#include "zone/record/changeset.h"

namespace pando::manager {

namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;  // of RDATA and names, before encoding
constexpr std::size_t kFlushBytes = std::size_t{4} << 20;

struct ByCanonicalOrder {
  bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
    return dns::compare_canonical(a, b) < 0;
  }
};
using ZoneNames = std::set<dns::Name, ByCanonicalOrder>;

/// Calls `visit` for each record that took place: those of the journal snapshot, then those of the
/// segments. Damage is skipped.
Status for_each_old_record(Files& files, const JournalFiles& sealed, const RecordVisit& visit) {
  auto done = for_each_snapshot_record(files, sealed, visit);
  if (!done && done.error().code != Errc::kCorrupt) return done;
  const std::uint64_t folded = done ? sealed.snapshot_position : 0;
  return for_each_record(files, sealed, folded, visit, [](const JournalNote&) {});
}

/// Appends records to one file, in large writes.
class SnapshotWriter {
 public:
  SnapshotWriter(StoreFile& file, std::uint64_t position) : file_(file) {
    nonce_ = random_number<std::uint64_t>();
    buffer_ = encode_segment_header({FileKind::kSnapshot, position, 0, nonce_});
  }

  /// `state`: the zone's merge base.
  Status put_zone(const zone::ZoneView& zone, const MergeBase& state) {
    zone::Changeset part;
    part.zone = dns::Name(zone.apex());
    std::uint64_t records = 0;
    auto added = zone::for_each_record(
        zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          part.added.push_back({dns::Name(owner), type, ttl, Bytes(rdata.begin(), rdata.end())});
          part_bytes_ += owner.size() + rdata.size() + 16;
          if (part_bytes_ < kPartBytes) return {};
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
    auto put =
        put_record(RecordKind::kZoneEnd, part.zone, {}, zone.serial(), count_payload(records));
    if (put) put = put_overlay(part.zone, zone.serial(), state);
    // A zone that has just become a primary zone has no merge base in the store, but in the
    // journal.
    auto source = state.source;
    if (zone.source_mtime_ns() != 0) source = merge_base_file(zone);
    if (!put || !source) return put;
    return put_entry(source_entry(part.zone, zone.serial(), *source));
  }

  Status put_overlay(const dns::Name& zone, dns::Serial serial, const MergeBase& state) {
    const dns::Serial file = state.file_serial.value_or(serial);
    auto put = put_entry(dynamic_changes_entry(zone, file, serial, state.dynamic_changes));
    if (!put || !state.own) return put;
    return put_entry(dynamic_changes_entry(zone, file, serial, *state.own, true));
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

  Status put_entry(JournalEntry&& entry) {
    return put_record(entry.kind, entry.zone, entry.from, entry.to, std::move(entry.payload));
  }

  Status flush_part(zone::Changeset& part) {
    if (part.added.empty()) return {};
    auto put = put_record(RecordKind::kZonePart, part.zone, {}, {}, zone::encode(part));
    part.added.clear();
    part_bytes_ = 0;
    return put;
  }

  Status put_record(RecordKind kind, const dns::Name& zone, dns::Serial from, dns::Serial to,
                    Bytes payload) {
    append_record(buffer_, {next_++, 1, kind, zone, from, to, std::move(payload)}, nonce_);
    return buffer_.size() < kFlushBytes ? Status() : flush();
  }

  Status flush() {
    auto written = file_.write_at(offset_, buffer_);
    offset_ += buffer_.size();
    buffer_.clear();
    return written;
  }

  ThrottledFile file_;
  std::uint64_t nonce_ = 0;
  std::uint64_t next_ = 1;
  std::uint64_t offset_ = 0;
  std::uint64_t zones_ = 0;
  std::size_t part_bytes_ = 0;
  Bytes buffer_;
};

/// Keeps the records of zones without data. After damage their dynamic changes are unknown, here as
/// before.
Status keep_old_records(Files& files, const JournalFiles& sealed, const JournalHistory& history,
                        const ZoneNames& zones, SnapshotWriter& writer) {
  auto kept = for_each_old_record(files, sealed, [&](JournalRecord&& record) -> Status {
    if (!zones.contains(record.zone)) return {};
    return writer.put_old_record(std::move(record));
  });
  if (!kept || !history.damaged()) return kept;
  for (const dns::Name& name : zones) {
    auto state = history.merge_base(name, UINT64_MAX);
    if (!state || !state->serial) continue;
    if (auto put = writer.put_overlay(name, *state->serial, *state); !put) return put;
  }
  return {};
}

}  // namespace

MergeBase served_merge_base(const JournalHistory& history, const zone::ZoneView& zone,
                            std::uint64_t position) {
  if (!history.knows(zone.apex()) && !may_have_updates(zone)) return {};
  auto state = history.merge_base(zone.apex(), position);
  MergeBase known = state ? std::move(*state) : MergeBase{};
  if (!state || (known.serial && !(*known.serial == zone.serial()))) known.lose();
  return known;
}

Result<std::string> write_snapshot(Files& files, const std::string& directory,
                                   const JournalFiles& sealed, const zone::StoreView& version,
                                   std::uint64_t position) {
  const auto history = JournalHistory::read(files, sealed, [](const JournalNote&) {});
  if (!history->problem().empty()) return fail(Errc::kIo, "{}", history->problem());
  const std::vector<dns::Name> known = history->zone_names();
  ZoneNames names(known.begin(), known.end());
  // The damage may have hit any zone's records. So every served zone is written, which heals the
  // damage.
  if (history->damaged())
    version.for_each_zone(
        [&](const zone::ZoneView& zone) { names.insert(dns::Name(zone.apex())); });
  const std::string path = fmt::format(
      "{}/{}{}", directory, journal_file_name(position, kSnapshotSuffix), kPartialSuffix);
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return pass(file);
  SnapshotWriter writer(**file, position);
  ZoneNames without_data;
  for (const dns::Name& name : names) {
    const zone::ZoneView zone = version.zone_at(name);
    if (zone && !zone.loaded()) without_data.insert(name);
    if (!zone || !zone.loaded()) continue;
    if (auto put = writer.put_zone(zone, served_merge_base(*history, zone, position)); !put)
      return pass(put);
  }
  if (!without_data.empty())
    if (auto kept = keep_old_records(files, sealed, *history, without_data, writer); !kept)
      return pass(kept);
  if (auto done = writer.finish(); !done) return pass(done);
  return path;
}

}  // namespace pando::manager

#include "manager/journal/journal_snapshot.h"

#include <set>

#include "base/crash_point.h"
#include "base/unix_time.h"
#include "manager/io/throttled_file.h"
#include "manager/journal/record/journal_format.h"
#include "manager/journal/snapshot_file.h"
#include "zone/dump/dump_writer.h"

namespace pando::manager {

namespace {

using ZoneNames = std::set<dns::Name, dns::CanonicalLess>;

/// Zones that the snapshot is to have. Damage may have hit any zone's records. So every served zone
/// is written then, which heals the damage.
ZoneNames names_of(const JournalHistory& history, const zone::StoreView& version, bool lacks) {
  const std::vector<dns::Name> known = history.zone_names();
  ZoneNames names(known.begin(), known.end());
  if (lacks || history.damaged())
    version.for_each_zone(
        [&](const zone::ZoneView& zone) { names.insert(dns::Name(zone.apex())); });
  return names;
}

/// Keeps the records of a zone without data. After damage its dynamic changes are unknown, here as
/// before.
Status put_old_zone(const JournalHistory& history, const dns::Name& name,
                    zone::DumpWriter& writer) {
  auto put = history.for_each_item(
      name, [&](zone::DumpItem&& item) -> Status { return writer.put(item); });
  if (put && history.damaged()) {
    auto state = history.merge_base(name, UINT64_MAX);
    if (!state) return pass(state);
    // A serial ahead of all that is left tells readers that records may be lost. Data and other
    // records do not outlive this snapshot's next damage, but the index has the serial.
    auto serial = state->serial;
    if (const auto highest = history.highest_serial(name); highest && history.may_have_lost(name))
      serial = history.unused_serial(name, *highest);
    if (!(serial == state->serial)) state->lose();
    if (serial)
      for (const zone::DumpNote& note : notes_of(name, *serial, *state))
        if (put) put = writer.put(note);
    if (const auto time = history.removed_at(name); put && time)
      put = writer.put(note_of(removed_entry(name, serial.value_or(dns::Serial{}), *time)));
  }
  return put ? writer.put(zone::DumpZoneEnd{}) : put;
}

/// Where the journal lacks records, a zone that may have had some has unknown dynamic changes,
/// unless its last record leads to the served serial.
Status put_zone(const JournalHistory& history, const zone::ZoneView& zone, std::uint64_t position,
                bool lacks, zone::DumpWriter& writer) {
  const dns::Name name(zone.apex());
  MergeBase state = served_merge_base(history, zone, position);
  if (lacks && !state.serial && may_have_updates(zone)) state.lose();
  std::vector<zone::DumpNote> notes = notes_of(name, zone.serial(), state);
  // A zone that has just become a primary zone has no merge base in the store, but in the journal.
  auto source = state.source;
  if (zone.source().file_mtime_ns != 0) source = zone.source();
  if (source) notes.push_back(note_of(source_entry(name, zone.serial(), *source)));
  return writer.put_zone(zone, nullptr, notes);
}

}  // namespace

std::vector<zone::DumpNote> notes_of(const dns::Name& zone, dns::Serial serial,
                                     const MergeBase& state) {
  std::vector<zone::DumpNote> notes;
  const dns::Serial file = state.file_serial.value_or(serial);
  notes.push_back(note_of(dynamic_changes_entry(zone, file, serial, state.dynamic_changes)));
  if (state.own)
    notes.push_back(note_of(dynamic_changes_entry(zone, file, serial, *state.own, true)));
  return notes;
}

std::optional<dns::Name> zone_without_data(const zone::StoreView& version) {
  std::optional<dns::Name> found;
  version.for_each_zone([&](const zone::ZoneView& zone) {
    if (!found && !zone.loaded() && !is_secondary(zone)) found.emplace(zone.apex());
  });
  return found;
}

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
                                   std::uint64_t position,
                                   JournalHistory::Unreadable unreadable, std::string* unread) {
  const auto history =
      JournalHistory::read(files, sealed, [](const JournalNote&) {}, unreadable);
  if (unread != nullptr) *unread = history->problem();
  if (!history->problem().empty()) return fail(Errc::kIo, "{}", history->problem());
  const std::string path = fmt::format(
      "{}/{}{}", directory, journal_file_name(position, kSnapshotSuffix), kPartialSuffix);
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return pass(file);
  ThrottledFile out(**file);
  std::uint64_t offset = 0;
  zone::DumpWriter writer(
      [&](ByteView bytes) {
        auto written = out.write_at(offset, bytes);
        offset += bytes.size();
        return written;
      },
      {sealed.identity, unix_seconds(), version.version(), position, 0, 0},
      zone::DumpWriter::Contents::kZones);
  Status done;
  const bool lacks = sealed.health.lacks_records();
  for (const dns::Name& name : names_of(*history, version, lacks)) {
    const zone::ZoneView zone = version.zone_at(name);
    done = zone && zone.loaded() ? put_zone(*history, zone, position, lacks, writer)
                                 : put_old_zone(*history, name, writer);
    if (!done) return pass(done);
  }
  done = writer.finish();
  crash_point("journal-snapshot-written");
  if (done) done = out.sync();
  if (!done) return pass(done);
  return path;
}

}  // namespace pando::manager

#include "manager/journal/journal_examination.h"

#include "manager/journal/snapshot_file.h"
#include "manager/support/found_damage.h"

namespace pando::manager {

namespace {

class Examination {
 public:
  explicit Examination(Files& files) : files_(files) {}

  void read_snapshot(const std::string& path) {
    const auto snapshot = SnapshotFile::open(files_, path);
    if (!snapshot) return note(path, snapshot.error());
    const SnapshotFile::Zones zones = snapshot->zones();
    if (!zones.others) note(path, zones.others.error());
    for (const SnapshotFile::Place& place : zones.places) {
      const auto read =
          snapshot->for_each_item(place, [](zone::DumpItem&&) -> Status { return {}; });
      if (!read) note(path, read.error());
    }
  }

  void read_segments(const JournalFiles& journal) {
    const auto skip = [](JournalRecord&&) -> Status { return {}; };
    const auto take = [this](const JournalNote& told) {
      if (told.severe) faults_.damage = told.text;
    };
    const auto read = for_each_record(files_, journal, 0, skip, take);
    if (!read) note("", read.error());  // which has the file's name
  }

  JournalFaults take() { return std::move(faults_); }

 private:
  void note(const std::string& path, const Error& why) {
    std::string& text = why.code == Errc::kCorrupt ? faults_.damage : faults_.unreadable;
    text = path.empty() ? why.text : fmt::format("journal file {}: {}", path, why.text);
  }

  Files& files_;
  JournalFaults faults_;
};

}  // namespace

JournalFaults examine_journal(Files& files, const JournalFiles& journal) {
  Examination examination(files);
  if (!journal.snapshot.empty()) examination.read_snapshot(journal.snapshot);
  examination.read_segments(journal);
  return examination.take();
}

void tell_faults(const JournalFaults& faults, Journal& journal) {
  if (!faults.unreadable.empty())
    return journal.report(JournalHealth::State::kPartUnread, faults.unreadable);
  if (faults.damage.empty()) return;
  journal.report(JournalHealth::State::kBehind, faults.damage);
  found_damage().add(faults.damage);
}

}  // namespace pando::manager

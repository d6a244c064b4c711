#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "manager/journal/journal.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/journal/snapshot_file.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The places of each zone's records in the journal. After a host restart the store is new, and
/// each zone is loaded with its updates before it is served. After an edit of a zone file, the
/// history gives the dynamic changes. Threads may call the const functions.
///
/// There are two kinds of faults. Damaged records are lost. Records that cannot be read for now (an
/// error of the disk) may come back, so nothing may be concluded from their absence.
class JournalHistory {
 public:
  /// The meaning of a part that cannot be read for now.
  enum class Unreadable : std::uint8_t {
    kProblem,  ///< left out, since it may be readable later: see problem()
    kDamage,   ///< taken for lost, as damaged data are: a store has everything
  };
  static std::shared_ptr<const JournalHistory> read(Files& files, const JournalFiles& journal,
                                                    const NoteSink& note,
                                                    Unreadable unreadable = Unreadable::kProblem);
  /// Why a part of the journal could not be read; empty when all was read.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Whether records are missing that had been synced.
  [[nodiscard]] bool damaged() const noexcept { return damages_ != 0 || has_lost_zones_; }
  /// Why the zone may have records in a part that could not be read; empty: it has none there.
  /// `may_have_updates`: the answer's default for a zone of which no record could be read.
  [[nodiscard]] std::string unreadable(dns::NameView zone, bool may_have_updates) const;
  /// Whether synced records of the zone may be lost after the last one that says all of it.
  [[nodiscard]] bool may_have_lost(dns::NameView zone) const;
  /// For a zone that may_have_lost(): a serial that no version of the zone had. It is ahead of
  /// `present` and of each serial that the journal has, by more than the number of lost records.
  [[nodiscard]] dns::Serial unused_serial(dns::NameView zone, dns::Serial present) const;

  /// The highest serial of the zone in the journal, also where its data are lost.
  [[nodiscard]] std::optional<dns::Serial> highest_serial(dns::NameView zone) const;

  /// The treatment of records after lost ones.
  enum class Gaps : std::uint8_t {
    kUnknown,  ///< dynamic changes are unknown, and changesets that do not fit are skipped
    kPassed,   ///< all surviving records count
  };
  /// How to bring a zone up to date by serials alone, from a file with `file_serial` (nullopt:
  /// there is no file). A whole zone of the journal snapshot replaces an older file. A changeset up
  /// to position `up_to` applies when it starts at the serial reached. Other changesets are
  /// skipped: the file is newer than they are.
  struct Replay {
    bool from_snapshot = false;  ///< the base is the journal snapshot's zone, not the file
    std::optional<dns::Serial> serial;
    std::size_t applied = 0;
    std::size_t skipped = 0;
    /// The serial that the zone at `serial` has at its primary: see zone::primary_serial().
    std::optional<dns::Serial> primary_serial;
    DynamicChanges net{DynamicChanges::Limits::none()};  ///< sum of the applied changesets
  };
  [[nodiscard]] Result<Replay> replay(dns::NameView zone, std::optional<dns::Serial> file_serial,
                                      std::uint64_t up_to, Gaps gaps = Gaps::kUnknown) const;
  /// The zone's merge base: all its records up to position `up_to`, folded.
  [[nodiscard]] Result<MergeBase> merge_base(dns::NameView zone, std::uint64_t up_to,
                                             Gaps gaps = Gaps::kUnknown) const;
  /// The zone's records in the journal snapshot.
  [[nodiscard]] Status for_each_base_record(
      dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const;
  /// All that the journal has of the zone, as items of a dump without the last one.
  [[nodiscard]] Status for_each_item(dns::NameView zone,
                                     const SnapshotFile::ItemVisit& visit) const;
  [[nodiscard]] bool knows(dns::NameView zone) const;
  /// Whether the journal snapshot has the whole zone, so that no file is needed.
  [[nodiscard]] bool has_whole(dns::NameView zone) const;
  /// When the zone left the configuration, in seconds since 1970; nullopt: the journal's last record
  /// of the zone is another one.
  [[nodiscard]] std::optional<std::uint64_t> removed_at(dns::NameView zone) const;
  /// Whether the journal has all of the zone since a position after `position`, so that older data
  /// of it are of no use.
  [[nodiscard]] bool has_all_since(dns::NameView zone, std::uint64_t position) const;
  /// Whether synced records of the zone after `position` may be lost.
  [[nodiscard]] bool may_have_lost_behind(dns::NameView zone, std::uint64_t position) const;
  /// Names of all zones with records, in lower case.
  [[nodiscard]] std::vector<dns::Name> zone_names() const;

 private:
  struct Place {
    std::uint32_t file = 0;
    std::uint32_t damages = 0;  // places of damage before it
    std::uint64_t offset = 0;
  };
  struct ZonePlaces {
    std::optional<SnapshotFile::Place> snapshot;  // the zone in the journal snapshot
    std::optional<dns::Serial> whole;             // of its data there
    std::optional<dns::Serial> whole_at_primary;  // their serial at the primary
    bool may_lack = false;  // it was not served when a snapshot was written in spite of damage
    bool is_lost = false;                         // in the snapshot, which is damaged there
    std::string unreadable;                       // the same; why it cannot be read
    std::vector<Place> records;                   // in the segments, in order
    std::optional<dns::Serial> highest;           // of all records
    std::optional<std::uint64_t> removed_at;      // when the zone left the configuration
    std::uint64_t whole_from = 0;  // position of the last record that says all of it
  };
  /// Faults before the last record that says all of a zone.
  struct Passed {
    std::uint32_t damages = 0;
    std::uint32_t unreadable = 0;
  };
  struct OpenFile {
    std::unique_ptr<StoreFile> file;
    std::uint64_t nonce = 0;
  };
  using ZoneRecordVisit = std::function<Status(JournalRecord&&, std::uint32_t damages)>;
  void read_snapshot(Files& files, const JournalFiles& journal, const NoteSink& note);
  void read_snapshot_zone(SnapshotFile::Place&& place, const NoteSink& note);
  void read_segments(Files& files, const JournalFiles& journal, const NoteSink& note);
  Status read_segment(Files& files, const JournalFiles::Segment& segment,
                      const JournalFiles& journal, const NoteSink& note);
  void damage(const NoteSink& note, const std::string& text, std::uint64_t positions,
              std::uint64_t up_to);
  void take_error(const std::string& path, const Error& error, std::uint64_t up_to,
                  const NoteSink& note);
  void add_record(const JournalRecord& record, Place place);
  [[nodiscard]] const ZonePlaces* find(dns::NameView zone) const;
  [[nodiscard]] Passed passed(dns::NameView zone) const;
  Status for_each_zone_record(const ZonePlaces& places, dns::NameView zone, std::uint64_t up_to,
                              const ZoneRecordVisit& visit) const;

  /// Whether the journal snapshot may lack records of the zone, because the zone was not served
  /// when the snapshot took the place of damaged or unread files.
  [[nodiscard]] bool snapshot_may_lack(const ZonePlaces* places) const noexcept {
    return places == nullptr ? unread_files_ != 0 : places->may_lack;
  }

  Unreadable unread_is_ = Unreadable::kProblem;
  std::uint64_t unread_files_ = 0;  // which snapshots replaced although they could not be read
  std::string problem_;
  std::map<std::string, ZonePlaces> zones_;  // by dns::folded_key()
  std::map<std::string, Passed> passed_;     // the same; only after a fault
  std::map<std::string, std::uint64_t> purged_;  // the same; positions of the last purges
  std::optional<SnapshotFile> snapshot_;
  std::vector<OpenFile> files_;
  std::uint32_t damages_ = 0;     // places where any zone may have lost records
  std::uint32_t unreadable_ = 0;  // places that may have records of any zone
  bool has_lost_zones_ = false;   // some zones of the snapshot are damaged
  bool knows_all_zones_ = true;   // of the snapshot
  bool is_end_missing_ = false;   // one of these, after all records
  std::uint64_t missing_ = 0;     // positions of lost records
  std::uint64_t lost_up_to_ = 0;  // the last of these; UINT64_MAX: not known
  std::uint64_t folded_ = 0;      // positions up to here are in the journal snapshot alone
  std::uint64_t last_ = 0;        // the last position read
};

/// The history, read when the first zone asks for it, since most starts never do. Threads may share
/// one.
class HistorySource {
 public:
  HistorySource(Files& files, const Journal& journal, NoteSink note)
      : files_(files), journal_(journal), note_(std::move(note)) {}
  /// The journal up to at least `position`, with which a version must have been published.
  /// Unreadable files are reported to the note.
  std::shared_ptr<const JournalHistory> get(std::uint64_t position);
  /// The history as read before, up to whatever position; read up to `position` if there is none.
  std::shared_ptr<const JournalHistory> any(std::uint64_t position);

 private:
  void read(std::uint64_t position);

  Files& files_;
  const Journal& journal_;
  NoteSink note_;
  std::mutex mutex_;
  std::shared_ptr<const JournalHistory> history_;
  std::uint64_t position_ = 0;  // `history_` holds everything up to this
};

}  // namespace pando::manager

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "manager/journal/journal.h"
#include "manager/journal/journal_payload.h"
#include "manager/journal/segment_reader.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The places of each zone's records in the journal. After a host restart the store is new, and
/// each zone is loaded with its updates before it is served. After an edit of a zone file, the
/// history gives the dynamic changes. Threads may call the const functions.
class JournalHistory {
 public:
  /// Unreadable files are left out: see problem().
  static std::shared_ptr<const JournalHistory> read(Files& files, const JournalFiles& journal,
                                                    const NoteSink& note);
  /// Why a part of the journal could not be read; empty when all was read.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Whether records are missing that had been synced, of unknown zones.
  [[nodiscard]] bool damaged() const noexcept { return damages_ != 0; }

  /// How to bring a zone up to date by serials alone, from a file with `file_serial` (nullopt:
  /// there is no file). A whole zone of the journal snapshot replaces an older file. A changeset up
  /// to position `up_to` applies when it starts at the serial reached. Other changesets are
  /// skipped: the file is newer than they are.
  struct Replay {
    bool from_snapshot = false;  ///< the base is the journal snapshot's zone, not the file
    std::optional<dns::Serial> serial;
    std::size_t applied = 0;
    std::size_t skipped = 0;
    DynamicChanges net{DynamicChanges::Limits::none()};  ///< sum of the applied changesets
  };
  [[nodiscard]] Result<Replay> replay(dns::NameView zone, std::optional<dns::Serial> file_serial,
                                      std::uint64_t up_to) const;
  /// The zone's merge base: all its records up to position `up_to`, folded. Where the journal is
  /// damaged the dynamic changes are unknown rather than wrong.
  [[nodiscard]] Result<MergeBase> merge_base(dns::NameView zone, std::uint64_t up_to) const;
  /// The zone's records in the journal snapshot.
  [[nodiscard]] Status for_each_base_record(
      dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const;
  [[nodiscard]] bool knows(dns::NameView zone) const;
  /// Whether the journal snapshot has the whole zone, so that no file is needed.
  [[nodiscard]] bool has_whole(dns::NameView zone) const;
  /// Names of all zones with records, in lower case.
  [[nodiscard]] std::vector<dns::Name> zone_names() const;

 private:
  struct Place {
    std::uint32_t file = 0;
    std::uint32_t damages = 0;  // places of damage before it
    std::uint64_t offset = 0;
  };
  struct ZonePlaces {
    std::vector<Place> parts;  // of the journal snapshot's whole zone
    std::optional<dns::Serial> whole;
    std::vector<Place> records;  // all others, in order
  };
  struct OpenFile {
    std::unique_ptr<StoreFile> file;
    std::uint64_t nonce = 0;
    bool snapshot = false;
  };
  void read_files(Files& files, const JournalFiles& journal, const NoteSink& note);
  Status read_file(Files& files, const std::string& path, std::uint64_t bytes,
                   const JournalFiles& journal, const NoteSink& note);
  void damage(const NoteSink& note, const std::string& text);
  void add_record(const JournalRecord& record, Place place);
  [[nodiscard]] Result<JournalRecord> read(Place place) const;
  [[nodiscard]] bool is_later(const JournalRecord& record, Place place, std::uint64_t up_to) const;
  Status add_deltas(const ZonePlaces& places, std::uint64_t up_to, Replay& replay) const;

  std::string problem_;
  std::map<std::string, ZonePlaces> zones_;  // by dns::folded_key()
  std::vector<OpenFile> files_;
  std::uint32_t damages_ = 0;
  std::uint64_t folded_ = 0;  // positions up to here are in the journal snapshot alone
  std::uint64_t last_ = 0;    // the last position read
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

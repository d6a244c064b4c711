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

/// Where each zone's records stand in the journal: read when the store is new (the host was
/// restarted), so that each zone is loaded with its updates before it is served, and when a zone
/// file was edited, to tell what came by update. Threads may call the const functions.
class JournalHistory {
 public:
  /// Files that cannot be read are left out: see problem().
  static std::shared_ptr<const JournalHistory> read(Files& files, const JournalFiles& journal,
                                                    const NoteSink& note);
  /// Why this is not the whole journal; empty when it is.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Records are missing that had been synced, and nobody knows whose.
  [[nodiscard]] bool damaged() const noexcept { return damages_ != 0; }

  /// How to bring a zone up to date by serials alone: one that was read from a file with
  /// `file_serial` (nullopt: there is no file). A whole zone of the snapshot replaces an older
  /// file. A difference up to position `up_to` applies when it starts at the serial reached; others
  /// are skipped: the file is newer than they are.
  struct Replay {
    bool from_snapshot = false;  ///< the base is the snapshot's zone, not the file
    std::optional<dns::Serial> serial;
    std::size_t applied = 0;
    std::size_t skipped = 0;
    DynamicChanges net{DynamicChanges::Limits::none()};  ///< what the applied differences add up to
  };
  [[nodiscard]] Result<Replay> replay(dns::NameView zone, std::optional<dns::Serial> file_serial,
                                      std::uint64_t up_to) const;
  /// What is the zone's own beside its file: all its records up to position `up_to`, folded. Where
  /// the journal is damaged the overlay is unknown rather than wrong.
  [[nodiscard]] Result<MergeBase> file_state(dns::NameView zone, std::uint64_t up_to) const;
  /// The records of the snapshot's zone.
  [[nodiscard]] Status for_each_base_record(
      dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const;
  [[nodiscard]] bool knows(dns::NameView zone) const;
  /// Its snapshot has the zone, so no file is needed.
  [[nodiscard]] bool has_whole(dns::NameView zone) const;
  /// The zones that it has records of, in lower case.
  [[nodiscard]] std::vector<dns::Name> zone_names() const;

 private:
  struct Place {
    std::uint32_t file = 0;
    std::uint32_t damages = 0;  // places of damage before it
    std::uint64_t offset = 0;
  };
  struct ZonePlaces {
    std::vector<Place> parts;  // of the snapshot's whole zone
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
  void note_record(const JournalRecord& record, Place place);
  [[nodiscard]] Result<JournalRecord> read(Place place) const;
  [[nodiscard]] bool is_later(const JournalRecord& record, Place place, std::uint64_t up_to) const;
  Status add_deltas(const ZonePlaces& places, std::uint64_t up_to, Replay& replay) const;

  std::string problem_;
  std::map<std::string, ZonePlaces> zones_;  // by dns::folded_key()
  std::vector<OpenFile> files_;
  std::uint32_t damages_ = 0;
  std::uint64_t folded_ = 0;  // positions up to here are in the snapshot alone
  std::uint64_t last_ = 0;    // position read last
};

/// The history, read when the first zone asks for it: most starts never do. Threads may share one.
class HistorySource {
 public:
  HistorySource(Files& files, const Journal& journal, NoteSink note)
      : files_(files), journal_(journal), note_(std::move(note)) {}
  /// The journal up to `position` at least, which a version must have been published with. What
  /// cannot be read is told to the note.
  std::shared_ptr<const JournalHistory> get(std::uint64_t position);
  /// What has been read, whenever that was; read up to `position` when nothing has.
  std::shared_ptr<const JournalHistory> any(std::uint64_t position);

 private:
  void read(std::uint64_t position);

  Files& files_;
  const Journal& journal_;
  NoteSink note_;
  std::mutex mutex_;
  std::shared_ptr<const JournalHistory> history_;
  std::uint64_t position_ = 0;  // it holds everything up to this
};

}  // namespace pando::manager

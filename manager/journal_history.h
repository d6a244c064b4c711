#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "manager/journal.h"
#include "manager/segment_reader.h"
#include "zone/changes.h"

namespace pando::manager {

/// What many differences add up to: for each record touched, whether it is there in the end.
class NetChanges {
 public:
  void apply(const zone::Changes& changes);
  /// True when a record of the state before does not outlive the differences (or comes back with
  /// another TTL, and is then among the added ones).
  [[nodiscard]] bool replaces(dns::NameView owner, dns::RRType type, ByteView rdata) const;
  Status for_each_added(const std::function<Status(const zone::Record&)>& visit) const;
  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }

 private:
  struct Key {
    dns::Name owner;
    dns::RRType type{};
    Bytes rdata;
  };
  struct Less {
    bool operator()(const Key& a, const Key& b) const noexcept;
  };
  std::map<Key, std::optional<dns::Ttl>, Less> records_;  // nullopt: removed
};

/// Where each zone's records stand in the journal: read once when the store is new (the host was
/// restarted), so that each zone is loaded with its updates before it is served. Threads may call
/// the const functions.
class JournalHistory {
 public:
  static Result<std::shared_ptr<const JournalHistory>> read(Files& files,
                                                            const JournalFiles& journal,
                                                            const NoteSink& note);

  /// How to bring a zone up to date that was read from a file with `file_serial` (nullopt: there
  /// is no file). A whole zone of the snapshot replaces an older file. A difference applies when it
  /// starts at the serial reached; others are skipped: the file is newer than they are.
  struct Replay {
    bool from_snapshot = false;  ///< the base is the snapshot's zone, not the file
    std::optional<dns::Serial> serial;
    std::size_t applied = 0;
    std::size_t skipped = 0;
    NetChanges net;
  };
  [[nodiscard]] Result<Replay> replay(dns::NameView zone,
                                      std::optional<dns::Serial> file_serial) const;
  /// The records of the snapshot's zone.
  [[nodiscard]] Status for_each_base_record(
      dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const;
  [[nodiscard]] bool knows(dns::NameView zone) const;
  /// Its snapshot has the zone, so no file is needed.
  [[nodiscard]] bool has_whole(dns::NameView zone) const;
  [[nodiscard]] std::size_t zone_count() const noexcept { return zones_.size(); }

 private:
  struct Place {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
  };
  struct ZonePlaces {
    std::vector<Place> parts;  // of the snapshot's whole zone
    std::optional<dns::Serial> whole;
    std::vector<Place> deltas;
  };
  struct OpenFile {
    std::unique_ptr<StoreFile> file;
    std::uint64_t nonce = 0;
  };
  static std::string key_of(dns::NameView zone);
  Status read_file(Files& files, const std::string& path, const JournalFiles& journal,
                   const NoteSink& note);
  void note_record(const JournalRecord& record, Place place);
  [[nodiscard]] Result<zone::Changes> read_changes(Place place) const;
  Status add_deltas(const ZonePlaces& places, Replay& replay) const;

  std::map<std::string, ZonePlaces> zones_;
  std::vector<OpenFile> files_;
};

/// The history, read when the first zone asks for it: most starts never do. Threads may share one.
class HistorySource {
 public:
  HistorySource(Files& files, JournalFiles journal, NoteSink note)
      : files_(files), journal_(std::move(journal)), note_(std::move(note)) {}
  /// Null when the journal is empty or unreadable (told to the note).
  std::shared_ptr<const JournalHistory> get();

 private:
  Files& files_;
  JournalFiles journal_;
  NoteSink note_;
  std::once_flag once_;
  std::shared_ptr<const JournalHistory> history_;
};

}  // namespace pando::manager

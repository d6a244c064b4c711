#pragma once

#include <functional>
#include <memory>
#include <string>

#include "manager/io/store_file.h"
#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/draft/draft.h"
#include "zone/dump/dump_reader.h"

namespace pando::manager {

/// A dump in the journal's folder, put there by `pandoctl store load` or by a manager that hands
/// over. A start without a live store of this build makes the store from the dump. The dump is
/// removed after its use.
///
/// A dump of this journal is like an image: the journal's records after the dump are replayed. A
/// dump of another journal is accepted only while ours has no records, and becomes ours. The merge
/// bases known to the other journal are written to ours.
class PlacedDump {
 public:
  /// Null without a dump. An error names the file and the reason: a damaged header, a later
  /// version, or another journal.
  static Result<std::unique_ptr<PlacedDump>> find(Files& files, const std::string& journal,
                                                  const shm::StoreOwner& owner);
  static std::string path_in(const std::string& journal);

  /// Called when a dump of another journal has been loaded, before anything says that the dump is
  /// ours; an error is one of bring_up().
  using TakingOver = std::function<Status()>;
  /// Fills an empty store that nobody sees yet from the dump, and brings the store up to the
  /// journal's end. The dump is read once.
  Status bring_up(shm::Store& store, Journal& journal, const zone::DataLimits& limits,
                  const NoteSink& note, const TakingOver& taking_over = {});
  /// Whether the dump is of this journal: a live store then has all of the dump's data.
  [[nodiscard]] bool is_own() const noexcept { return reader_.header().owner == owner_; }
  [[nodiscard]] const zone::DumpHeader& header() const noexcept { return reader_.header(); }
  Status remove();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  PlacedDump(Files& files, std::string path, std::unique_ptr<StoreFile> file,
             zone::DumpReader&& reader, const shm::StoreOwner& owner)
      : files_(files),
        path_(std::move(path)),
        file_(std::move(file)),
        reader_(std::move(reader)),
        owner_(owner) {}
  Status note_files(shm::Store& store, Journal& journal, const std::vector<JournalEntry>& notes);

  Files& files_;
  std::string path_;
  std::unique_ptr<StoreFile> file_;  // read by reader_
  zone::DumpReader reader_;
  shm::StoreOwner owner_;
};

}  // namespace pando::manager

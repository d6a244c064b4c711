#pragma once

#include <functional>
#include <memory>
#include <string>

#include "manager/io/store_file.h"
#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/build/draft.h"
#include "zone/dump/dump_reader.h"

namespace pando::manager {

/// A dump that was put into the journal's folder (`pandoctl store load`, or by a manager that hands
/// over), for the start that makes the store: it is used where a live store of this build is not
/// there, and removed when it has served its purpose.
///
/// One of this journal is like an image: what the journal has behind it is replayed. One of another
/// journal is taken only where ours has no records yet, and becomes ours: what the other journal
/// knew of the zones' files is written to ours.
class PlacedDump {
 public:
  /// Null: there is none. An error names the file and why it cannot be used: damaged in its header,
  /// of a later version, or of another journal.
  static Result<std::unique_ptr<PlacedDump>> find(Files& files, const std::string& journal,
                                                  const shm::StoreOwner& owner);
  static std::string path_in(const std::string& journal);

  /// Called when a dump of another journal has been loaded, and before anything says that it is
  /// ours; an error is one of bring_up().
  using TakingOver = std::function<Status()>;
  /// Makes an empty store that nobody sees yet what the dump says, and brings it up to the
  /// journal's end. The dump is read once.
  Status bring_up(shm::Store& store, Journal& journal, const zone::DataLimits& limits,
                  const NoteSink& note, const TakingOver& taking_over = {});
  /// It is of this journal: a live store has all that it has.
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

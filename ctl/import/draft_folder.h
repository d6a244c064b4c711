#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pando::ctl {

/// A hidden folder inside a folder that gets new files, hence on its file system. It has:
///
///     pando-file-N     each new file but the result
///     pando-names      their final names, inodes, sizes and times, once all of them are written
///     pando-result     the last file; elsewhere than in the folder of the result, a symbolic link
///     pando-others-N   symbolic links from the folder of the result to its other draft folders
///
/// A file gets its name by a hard link, so its inode tells whose file it is. The result gets its
/// name by a rename. While `pando-result` is there, an import is not complete, and the files that
/// have names already are taken back by the next one. Without it, only the drafts are removed.
///
/// The folder is locked as long as its process lives. The owner of the target may replace it by
/// another folder or a link at any time. Therefore both folders are used by descriptors alone, and
/// only entries with these names are removed.
class DraftFolder {
 public:
  static constexpr std::string_view kName = ".pando-import";

  struct Leftovers {
    std::size_t removed = 0;                      ///< files that were taken back
    std::vector<std::filesystem::path> retained;  ///< files that are not as the import made them
  };

  /// Makes the folder in `target`, or takes over that of an ended process with its contents.
  /// kExists: another process uses it, or it has an entry that no import made. kDenied: it is
  /// another user's.
  static Result<DraftFolder> claim(const std::filesystem::path& target);

  /// Targets of the draft folders that this one names and that are there.
  [[nodiscard]] std::vector<std::filesystem::path> other_targets() const;
  /// Takes back the names of an import that is not complete, unless the files were changed since.
  /// An error tells of a file that stays; clear() would remove what tells whose file it is.
  Status take_back(Leftovers& found) const;
  /// Removes all drafts; that of the result goes first.
  Status clear() const;
  /// Removes the folder itself, unless something is in it or in a folder that it names.
  void remove() const;

  /// Names the draft folder that `target` will have, so that it is found again. Returns the entry.
  [[nodiscard]] std::string note(const std::filesystem::path& target) const;
  void remove_note(const std::string& note) const;
  /// Writes a draft. `name` is relative to the target, with one folder at most.
  Status write(const std::string& name, std::string_view text, ::mode_t mode);
  Status write_result(const std::string& name, std::string_view text, ::mode_t mode);
  /// Notes the names of all drafts, before the result is written.
  Status write_names() const;
  /// Ties this folder to that of the result, once the drafts are written. File systems without
  /// symbolic links do without: then names of a killed import are not taken back.
  void belong_to(const DraftFolder& main) const;
  /// All drafts that were written are on disk on return.
  [[nodiscard]] Status sync() const;
  /// All drafts but the result get their names, which are then on disk.
  Status name_files() const;
  /// If it fails, the result is a draft again.
  Status name_result() const;

  [[nodiscard]] bool is_of(const std::filesystem::path& target) const;

 private:
  /// Properties of a file as an import wrote it. A file with others is the user's.
  struct State {
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    bool operator==(const State&) const = default;
  };
  struct File {
    std::string name;
    State state;
  };

  DraftFolder(std::filesystem::path target, Fd target_folder, Fd folder)
      : target_(std::move(target)),
        target_folder_(std::move(target_folder)),
        folder_(std::move(folder)) {}
  static State state_of(const struct stat& seen);
  Result<State> write_draft(const std::string& draft, const std::string& name,
                            std::string_view text, ::mode_t mode) const;
  [[nodiscard]] bool is_at_its_place() const;
  [[nodiscard]] Status check_entries() const;
  [[nodiscard]] bool is_incomplete() const;
  [[nodiscard]] Result<std::vector<File>> read_names() const;
  Status take_back(const File& file, Leftovers& found) const;
  [[nodiscard]] Fd open_parent(const std::filesystem::path& name) const;
  [[nodiscard]] Status name_file(const std::filesystem::path& name, const std::string& draft) const;
  [[nodiscard]] Status sync_parent(const std::filesystem::path& name) const;

  std::filesystem::path target_;  ///< for messages
  Fd target_folder_;
  Fd folder_;  ///< locked
  std::vector<File> files_;
  File result_;
};

/// A crash point before each step that changes the disk: `import-step:N` is the N-th.
void import_step() noexcept;

}  // namespace pando::ctl

#pragma once

#include <sys/types.h>

#include <cstddef>
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
///     files/…    each new file but the result, where it will be below the folder
///     result     the last file; elsewhere than in the folder of the result, a symbolic link to it
///     others-N   symbolic links from the folder of the result to its other draft folders
///
/// A file gets its name by a hard link, so its draft tells whose file it is. The result gets its
/// name by a rename. While `result` is there, an import is not complete, and the files that have
/// names already are taken back by the next one. Without it, only the drafts are removed.
///
/// The folder is locked as long as its process lives.
class DraftFolder {
 public:
  static constexpr std::string_view kName = ".pando-import";

  /// Makes it in `target`, or takes the one that an ended process left, with all that is in it.
  /// kExists: another process has it. kDenied: another user's.
  static Result<DraftFolder> claim(const std::filesystem::path& target);

  /// Targets of the draft folders that this one names and that are there.
  [[nodiscard]] std::vector<std::filesystem::path> other_targets() const;
  /// Takes back the names of an import that is not complete, unless the files were changed since.
  /// Returns the number of files.
  [[nodiscard]] std::size_t take_back() const;
  /// Removes all drafts; `result` goes first.
  void clear() const;
  /// Removes the folder itself, unless something is in it or in a folder that it names.
  void remove() const;

  /// Makes the place of drafts and returns it. `below` is a folder that the target does not have
  /// yet, or empty.
  [[nodiscard]] Result<std::filesystem::path> prepare(const std::filesystem::path& below) const;
  [[nodiscard]] std::filesystem::path result() const;
  /// Names the draft folder that `target` will have, so that it is found again. Returns the entry.
  [[nodiscard]] std::filesystem::path note(const std::filesystem::path& target) const;
  /// Ties this folder to that of the result, once the drafts are written. File systems without
  /// symbolic links do without: then names of a killed import are not taken back.
  void belong_to(const DraftFolder& main) const;
  /// What was written is on disk.
  [[nodiscard]] Status sync() const;

  [[nodiscard]] bool is_of(const std::filesystem::path& target) const;
  [[nodiscard]] const std::filesystem::path& target() const noexcept { return target_; }

 private:
  DraftFolder(std::filesystem::path target, std::filesystem::path path, Fd lock)
      : target_(std::move(target)), path_(std::move(path)), lock_(std::move(lock)) {}
  [[nodiscard]] bool is_at_its_place() const;

  std::filesystem::path target_;
  std::filesystem::path path_;
  Fd lock_;  ///< the open folder
};

/// A new file with this text, or an error and perhaps a part of it.
[[nodiscard]] Status write_new_file(const std::filesystem::path& path, std::string_view text,
                                    ::mode_t mode);

/// A crash point before each step that changes the disk: `import-step:N` is the N-th.
void import_step() noexcept;

}  // namespace pando::ctl

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/commands/draft_folder.h"

namespace pando::ctl {

/// Files that come together or not at all. None may be there yet.
///
/// They are written into a hidden folder of each folder that gets some, and get their names once
/// all are on disk, the last one last. A full disk thus leaves nothing, and no file is ever
/// incomplete under its name. Signals that end the process wait until all is done. What a kill
/// leaves is taken back by the next create() for the folder.
class NewFiles {
 public:
  /// `folder` has to be there; the names of files are relative to it, with one folder at most.
  explicit NewFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The text has to live until create().
  void add(std::string name, std::string_view text, ::mode_t mode);
  /// Creates the files in the order of add(), so the last one is there only with all others.
  /// kExists: one is there already, or another process creates files there. Whatever the error, no
  /// file of these is there.
  Status create();
  /// Files of a killed process that create() took back.
  [[nodiscard]] std::size_t taken_back() const noexcept { return taken_back_; }

 private:
  struct File {
    std::string name;
    std::string_view text;
    ::mode_t mode;
    std::filesystem::path draft;
  };
  Status claim_folders();
  Status claim(const std::filesystem::path& target);
  Status claim_other(const std::filesystem::path& target);
  void clear_leftovers();
  void leave_folders();
  Status create_files();
  [[nodiscard]] Status check_places() const;
  Status place_drafts();
  [[nodiscard]] Result<std::filesystem::path> place_of(const std::filesystem::path& target) const;
  [[nodiscard]] Status write_drafts() const;
  Status name_all();
  Status make_folder(const std::filesystem::path& folder);
  void remove_named();

  std::filesystem::path folder_;
  std::vector<File> files_;
  std::vector<DraftFolder> drafts_;           ///< the first is that of folder_
  std::vector<std::filesystem::path> named_;  ///< files and folders that have their place
  std::size_t taken_back_ = 0;
};

}  // namespace pando::ctl

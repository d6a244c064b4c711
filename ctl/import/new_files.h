#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/import/draft_folder.h"

namespace pando::ctl {

/// Files that come together or not at all. None may be there yet.
///
/// They are written into a hidden folder of each folder that gets some, and get their names once
/// all are on disk, the last one after all others. A full disk thus leaves nothing, and no file is
/// ever incomplete under its name. Signals that end the process wait until all is done. What a kill
/// leaves is taken back by the next create() for the folder.
class NewFiles {
 public:
  /// `folder` has to be there; the names of files are relative to it, with one folder at most.
  explicit NewFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The text has to live until create().
  void add(std::string name, std::string_view text, ::mode_t mode);
  /// Creates the files, the last one after all others.
  /// kExists: one is there already, or another process creates files there. Whatever the error, no
  /// file of these is there, or the error names it.
  Status create();
  /// The files of a killed import that create() found.
  [[nodiscard]] const DraftFolder::Leftovers& leftovers() const noexcept { return leftovers_; }

 private:
  struct File {
    std::string name;
    std::string_view text;
    ::mode_t mode;
  };
  struct Home {
    DraftFolder* drafts = nullptr;
    std::filesystem::path below;  ///< of files in that folder's target, or empty
  };
  Status claim_folders();
  Status claim(const std::filesystem::path& target);
  Status claim_other(const std::filesystem::path& target);
  Status take_back(DraftFolder::Leftovers& found) const;
  Status clear_leftovers();
  void leave_folders();
  Status create_files();
  [[nodiscard]] Status check_places() const;
  Status write_drafts();
  Home home_of(const std::filesystem::path& folder);
  Status name_all() const;

  std::filesystem::path folder_;
  std::vector<File> files_;
  std::vector<DraftFolder> drafts_;  ///< the first is that of folder_
  DraftFolder::Leftovers leftovers_;
};

}  // namespace pando::ctl

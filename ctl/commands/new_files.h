#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pando::ctl {

/// Files that come together or not at all. None may be there yet.
///
/// They are written into a folder of their own beside their places, and get their names once all
/// are written, the last one last. A full disk thus leaves nothing. Signals that end the process
/// wait until all is done. A kill leaves that folder, and the files that have their names already.
class NewFiles {
 public:
  /// `folder` has to be there; the names of files are relative to it.
  explicit NewFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The text has to live until create().
  void add(std::string name, std::string_view text, ::mode_t mode);
  /// Creates the files in the order of add(), so the last one is there only with all others.
  /// kExists: one is there already. Whatever the error, no file of these is there.
  Status create();

 private:
  struct File {
    std::string name;
    std::string_view text;
    ::mode_t mode;
  };
  [[nodiscard]] Status check_places() const;
  [[nodiscard]] Status write_all(const std::filesystem::path& drafts) const;
  [[nodiscard]] static Status give_name(const std::filesystem::path& draft,
                                        const std::filesystem::path& path, const File& file);
  Status name_all(const std::filesystem::path& drafts);
  Status make_folder(const std::filesystem::path& folder);
  void remove_named();

  std::filesystem::path folder_;
  std::vector<File> files_;
  std::vector<std::filesystem::path> named_;  ///< files and folders that have their place
};

}  // namespace pando::ctl

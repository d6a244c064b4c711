#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

/// Paths that lead a process of root nowhere else than root wants. The kernel follows every link in
/// a path, so a lesser user who may change one folder of the path would choose the file.
namespace pando {

/// Whether links and folders of this user cannot mislead the process: root, and its own user.
[[nodiscard]] bool is_trusted_user(uid_t user) noexcept;

/// Opens the folder at `path` (O_PATH). Links are followed if their maker is trusted: root, or, in
/// a process of another user, that user. kDenied: another user has made a link.
Result<Fd> open_folder(const std::string& path);
/// The same, and makes missing folders of the path, each durably.
Result<Fd> make_folder(const std::string& path, mode_t mode);

/// Makes the directory `name` in `parent`, unless it exists, and syncs `parent`: without that, a
/// power cut could take the directory with all files that were synced in it.
Status make_directory(int parent, const std::string& name, mode_t mode);

/// Opens a file for reading, without waiting for a FIFO's writer. In a process of root a link of a
/// lesser user leads to that user's own files alone, and a file with several names is refused in a
/// folder of a user who is not its owner: kDenied. For other users the kernel's
/// checks suffice.
Result<Fd> open_to_read(const std::string& path);

/// Opens a file for appending, or makes it (0640). Links as with open_folder(), and files with
/// several names as with open_to_read().
Result<Fd> open_to_append(const std::string& path);

/// Opens for reading a file that nobody but root, or this process's user, can change or replace:
/// neither all users nor the members of `groups` may write to it or to a folder on the way, and a
/// folder such as /tmp counts as its owner's. kDenied names the part of the path that is others'.
Result<Fd> open_unchangeable(const std::string& path, const std::vector<gid_t>& groups);

/// Opens the file at the relative path `name` below `folder` for reading. No link is followed. In a
/// process of root each folder and the file must be root's, and nobody else may write to them.
Result<Fd> open_below(const Fd& folder, const std::string& name);
/// Makes the missing folders (0700) of the relative path `name` below `folder`, and the new file
/// itself (0600, O_EXCL), for writing. No link is followed.
Result<Fd> create_below(const Fd& folder, const std::string& name);

/// Removes `name` in `folder`, and all below it if it is a folder. No link is followed. Nothing
/// there is success.
Status remove_below(const Fd& folder, const std::string& name);

/// Puts names that were made or changed in this folder on disk. `path` is for messages.
Status sync_folder(const Fd& folder, const std::string& path);

/// The two parts of a path: its folder ("." if it names none) and the last name.
struct SplitPath {
  std::string folder;
  std::string name;
};
[[nodiscard]] SplitPath split_path(const std::string& path);

}  // namespace pando

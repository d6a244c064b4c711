#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

/// The one seam for durable file writes (journal, images, dumps, exports). Tests put a model of a
/// disk behind the seam that logs, fails, cuts and reorders.
namespace pando::manager {

/// One open file.
class StoreFile {
 public:
  virtual ~StoreFile() = default;
  /// Writes all of `bytes` at `offset`; a short write is an error (kIo, kFull for ENOSPC).
  virtual Status write_at(std::uint64_t offset, ByteView bytes) = 0;
  /// Reads up to `out.size()` bytes; fewer only at the end of the file.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) = 0;
  /// fdatasync. After an error the kernel may have dropped the pages: the file must not be
  /// written or synced again.
  virtual Status sync() = 0;
  /// Grows the file to `bytes` of zeros with reserved blocks, so that later writes inside meet no
  /// ENOSPC and need no size update. On filesystems without fallocate the file grows without
  /// reserved blocks.
  virtual Status preallocate(std::uint64_t bytes) = 0;
  virtual Status truncate(std::uint64_t bytes) = 0;
  virtual Result<std::uint64_t> size() = 0;
};

enum class OpenMode {
  kRead,
  kWrite,   ///< existing file
  kCreate,  ///< new or emptied file, 0640
  kSecret,  ///< the same, 0600
};

/// Files of one file system that are synced together.
class GroupSync {
 public:
  virtual ~GroupSync() = default;
  /// syncfs: makes the content of all files of the file system durable, also of other programs'.
  /// An error may concern any file that was written since begin_group().
  virtual Status sync() = 0;
};

/// The calls on file names.
class Files {
 public:
  virtual ~Files() = default;
  virtual Result<std::unique_ptr<StoreFile>> open(const std::string& path, OpenMode mode) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  /// Makes created, renamed and removed names in `directory` durable.
  virtual Status sync_directory(const std::string& directory) = 0;
  /// Names in `directory`, sorted, without "." and "..". kNotFound: no such folder.
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  /// To be called before the files of a group in `directory` are written. kUnsupported: each file
  /// has to be synced for itself.
  virtual Result<std::unique_ptr<GroupSync>> begin_group(const std::string& directory) {
    return fail(Errc::kUnsupported, "{}: no group sync", directory);
  }
  /// Creates `directory` (0750) and missing parents; existing ones are fine.
  virtual Status make_directory(const std::string& directory) = 0;
};

/// The operating system's files.
Files& native_files() noexcept;

/// The file behind a descriptor that another process has opened, by a copy of the descriptor.
/// kInvalid: it is no regular file, is not empty, or may not be written.
Result<std::unique_ptr<StoreFile>> open_given(const Fd& descriptor);

/// Writes `bytes` to `path`; after a crash the file has either the old or the new contents.
Status write_file_atomically(Files& files, const std::string& path, ByteView bytes);
/// The same of a text. Missing folders are made, durably.
Status write_text_atomically(Files& files, const std::string& path, std::string_view text);
/// The first bytes of a file, up to `most`.
Result<Bytes> read_file(Files& files, const std::string& path, std::uint64_t most = UINT64_MAX);

}  // namespace pando::manager

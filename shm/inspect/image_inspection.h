#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "shm/image_format.h"
#include "shm/map/mapping.h"
#include "shm/store.h"

/// Reads an image on disk from outside its writer, for `pandoctl store check`.
namespace pando::shm {

class ImageInspection {
 public:
  /// Called with the number of bytes of the chunks that have been read, and their total.
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

  /// Reads the whole image whose index is at `path` (of a quarantined image: with `.quarantined`
  /// after its name) and compares its checksums. Errors are one line with the file's name:
  /// kNotFound, kIo, kDenied. kCorrupt: index or chunks are damaged, cut off or missing. kLayout:
  /// sound, but of a build with another layout. kExists: a checkpoint replaced the image meanwhile.
  static Result<ImageInspection> open(const std::string& path, std::uint64_t layout,
                                      const Progress& progress = {});

  /// The version in the image, laid out as in a store, without the side table.
  [[nodiscard]] Window window() const noexcept { return {mapping_.base(), bytes_}; }
  [[nodiscard]] const VersionInfo& version() const noexcept { return version_; }
  /// False: a checkpoint has replaced the index since, and may overwrite the chunks.
  [[nodiscard]] bool is_current() const;

 private:
  Status read_index();
  Status open_chunks();
  Status compare(const Progress& progress) const;
  Status map();

  std::string path_;
  std::string chunks_path_;
  Bytes bytes_of_index_;
  ImageIndex index_;
  Fd chunks_;
  Fd tables_;
  Mapping mapping_;
  std::uint64_t bytes_ = 0;
  VersionInfo version_;
};

}  // namespace pando::shm

#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "shm/image.h"

/// The bytes of an image's index; docs/store-format.md has the picture and the reasons.
namespace pando::manager {

inline constexpr std::uint32_t kImageVersion = 1;

/// What an image is: a version, and the file that has its chunks.
struct ImageIndex {
  std::uint64_t layout = 0;   ///< fingerprint of the build that wrote it
  shm::StoreOwner owner{};    ///< the journal that goes with it
  std::uint64_t file = 0;     ///< names the file of chunks
  std::uint64_t written = 0;  ///< when, in seconds since 1970
  /// Fingerprint of the configuration whose zones and rules the version has, all of them; 0 = it
  /// may have others.
  std::uint64_t configuration = 0;
  shm::ImageState state;
};

/// No index is longer.
inline constexpr std::uint64_t kMaxIndexOctets =
    std::uint64_t{shm::kMaxImageChunks} * 12 +
    shm::Store::kSideEntries * sizeof(shm::Store::SideEntry) * 2 + 4096;

Bytes encode_image_index(const ImageIndex& index);
/// Enough of a file's first octets to tell an index from anything else.
inline constexpr std::size_t kImageMagicOctets = 8;
[[nodiscard]] bool looks_like_image_index(ByteView head) noexcept;
/// What stands before chunks and side table.
inline constexpr std::size_t kImageHeadOctets = 88;
/// An index without chunks and side table, from its first kImageHeadOctets. Nothing is compared
/// with a checksum. kCorrupt: not an index; kLayout: another version.
Result<ImageIndex> decode_image_head(ByteView bytes);
/// kCorrupt: cut off, a wrong checksum, or contradicting itself; kLayout: another version.
Result<ImageIndex> decode_image_index(ByteView bytes);

}  // namespace pando::manager

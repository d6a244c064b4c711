#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "shm/image_state.h"

/// The bytes of an image on disk: of its index, and what its file of chunks begins with.
/// docs/store-format.md has the picture and the reasons.
namespace pando::shm {

/// Version 1 did not know of lines; it is read.
inline constexpr std::uint32_t kImageVersion = 2;

/// What an image is: a version, and the file that has its chunks.
struct ImageIndex {
  std::uint64_t layout = 0;   ///< fingerprint of the build that wrote it
  StoreOwner owner{};         ///< the journal that goes with it
  std::uint64_t file = 0;     ///< names the file of chunks
  std::uint64_t written = 0;  ///< when, in seconds since 1970
  /// Fingerprint of the configuration whose zones and rules the version has, all of them; 0 = it
  /// may have others.
  std::uint64_t configuration = 0;
  ImageState state;
};

/// No index is longer.
inline constexpr std::uint64_t kMaxIndexBytes =
    std::uint64_t{kMaxImageChunks} * 12 + Store::kSideEntries * sizeof(Store::SideEntry) * 2 + 4096;

Bytes encode_image_index(const ImageIndex& index);
/// Enough of a file's first bytes to tell an index from anything else.
inline constexpr std::size_t kImageMagicBytes = 8;
[[nodiscard]] bool looks_like_image_index(ByteView head) noexcept;
/// What stands before chunks and side table.
inline constexpr std::size_t kImageHeadBytes = 96;
/// An index without chunks and side table, from its first kImageHeadBytes. Nothing is compared
/// with a checksum. kCorrupt: not an index; kLayout: another version.
Result<ImageIndex> decode_image_head(ByteView bytes);
/// kCorrupt: cut off, a wrong checksum, or contradicting itself; kLayout: another version.
Result<ImageIndex> decode_image_index(ByteView bytes);
/// Number of the file of chunks, from an index's first bytes: of any version, since magic number,
/// version, that number and the checksum at the end stand where they are in all of them. Nullopt:
/// not an index.
[[nodiscard]] std::optional<std::uint64_t> image_file_of(ByteView head) noexcept;

/// What the file of chunks begins with: a magic number, and the number that names it.
Bytes encode_image_chunks_head(std::uint64_t file);
inline constexpr std::size_t kImageChunksHeadBytes = 16;
/// Its first chunk-sized part has that; chunk n is the one behind it and n others.
[[nodiscard]] constexpr std::uint64_t image_chunk_offset(std::uint32_t chunk) noexcept {
  return (std::uint64_t{chunk} + 1) * kChunkBytes;
}
/// Where it lies: beside the index at `path`.
[[nodiscard]] std::string image_chunks_path(const std::string& path, std::uint64_t file);
/// How long it is at least, for all that the index says of chunks.
[[nodiscard]] std::uint64_t image_chunks_bytes(const ImageState& state) noexcept;

}  // namespace pando::shm

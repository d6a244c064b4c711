#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "shm/image_state.h"

/// The bytes of an image on disk: its index, and the head of its file of chunks.
/// docs/formats/image.md has the picture and the reasons.
namespace pando::shm {

inline constexpr std::uint32_t kImageVersion = 1;

/// An image: a version, and the number of the file that has its chunks.
struct ImageIndex {
  std::uint64_t layout = 0;   ///< fingerprint of the build that wrote it
  StoreOwner owner{};         ///< the journal that goes with it
  std::uint64_t file = 0;     ///< number of the file of chunks
  std::uint64_t written = 0;  ///< time of writing, in seconds since 1970
  /// Fingerprint of the configuration, if the version has exactly its zones and rules; 0 = the
  /// version may have others.
  std::uint64_t configuration = 0;
  ImageState state;
};

/// Upper bound of an index's length.
inline constexpr std::uint64_t kMaxIndexBytes =
    std::uint64_t{kMaxImageChunks} * 12 + Store::kSideEntries * sizeof(Store::SideEntry) * 2 + 4096;

Bytes encode_image_index(const ImageIndex& index);
/// Number of first bytes that distinguish an index from other files.
inline constexpr std::size_t kImageMagicBytes = 8;
[[nodiscard]] bool looks_like_image_index(ByteView head) noexcept;
/// Length of the part before chunks and side table.
inline constexpr std::size_t kImageHeadBytes = 96;
/// Decodes an index without chunks and side table, from its first kImageHeadBytes. No checksum is
/// compared. kCorrupt: not an index; kLayout: another version.
Result<ImageIndex> decode_image_head(ByteView bytes);
/// kCorrupt: cut off, a wrong checksum, or contradicting itself; kLayout: another version.
Result<ImageIndex> decode_image_index(ByteView bytes);
/// Number of the file of chunks, from an index's first bytes. This works for any version: magic
/// number, version, file number and the checksum at the end have the same place in all of them.
/// Nullopt: not an index.
[[nodiscard]] std::optional<std::uint64_t> image_file_of(ByteView head) noexcept;

/// The head of the file of chunks: a magic number, and the number that names the file.
Bytes encode_image_chunks_head(std::uint64_t file);
inline constexpr std::size_t kImageChunksHeadBytes = 16;
/// Chunk n lies past the head and n other chunks; the head takes one chunk's length.
[[nodiscard]] constexpr std::uint64_t image_chunk_offset(std::uint32_t chunk) noexcept {
  return (std::uint64_t{chunk} + 1) * kChunkBytes;
}
/// The path of the file of chunks: beside the index at `path`.
[[nodiscard]] std::string image_chunks_path(const std::string& path, std::uint64_t file);
/// Smallest length of the file of chunks that has all chunks of the index.
[[nodiscard]] std::uint64_t image_chunks_bytes(const ImageState& state) noexcept;

}  // namespace pando::shm

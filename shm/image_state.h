#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "shm/store.h"

/// The state of a store's version beside the bytes of its chunks. Both together are enough to
/// rebuild the store, from disk or elsewhere. This header knows nothing of files.
namespace pando::shm {

/// One chunk of a version.
struct ImageChunk {
  std::uint32_t count = 0;     ///< as the store counts it; 0: the chunk has nothing of the version
  std::uint32_t used = 0;      ///< bytes from its start that published versions may refer to
  std::uint32_t checksum = 0;  ///< of the `used` bytes, see chunk_checksum()
  bool operator==(const ImageChunk&) const = default;
};

/// A part of the side table, with all its entries.
struct ImageSide {
  std::uint32_t granule = 0;
  Bytes bytes;
  bool operator==(const ImageSide&) const = default;
};

struct ImageState {
  std::uint64_t version = 0;
  std::uint64_t journal_position = 0;
  std::uint64_t lineage = 0;       ///< of the store, see Store::lineage()
  std::uint32_t root_block = 0;    ///< reference to the version's root block
  std::vector<ImageChunk> chunks;  ///< by number
  std::vector<ImageSide> side;
  bool operator==(const ImageState&) const = default;
};

/// The current version, for a checkpoint.
struct ImageCapture {
  ImageState state;  ///< without checksums and the side table
  /// By chunk number: chunks that may have been written since the last capture of this process; at
  /// the first capture, all chunks in use. Other chunks are unchanged up to their `used`.
  std::vector<bool> written;
};

/// Largest length of ImageState::chunks, and of a side part's bytes.
inline constexpr std::uint32_t kMaxImageChunks = kReach / kChunkBytes;
inline constexpr std::uint32_t kImageSideBytes = 64U << 10;

[[nodiscard]] std::uint32_t chunk_checksum(ByteView bytes) noexcept;
/// Bytes [from, to) of a chunk; the caller holds a version that uses them.
[[nodiscard]] ByteView chunk_bytes(const Window& window, std::uint32_t chunk, std::uint32_t from,
                                   std::uint32_t to) noexcept;
/// The parts of the side table that are not all zero. Any thread; the words are read one by one, so
/// a part is no snapshot of one moment.
[[nodiscard]] std::vector<ImageSide> side_table(const Window& window);

class Borrowing;

/// A file of which chunk n can be mapped at `first` + n * kChunkBytes.
struct ImageFile {
  Fd fd{};                            ///< readable
  std::uint64_t first = kChunkBytes;  ///< a file of chunks begins with its head
};

/// The source of the chunks' bytes for restore().
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  /// Fills `into` with the first bytes of a chunk. kCorrupt: the bytes do not have this checksum.
  virtual Status read(std::uint32_t chunk, std::span<std::uint8_t> into,
                      std::uint32_t checksum) = 0;
  /// For a store that is to be served before it is copied (shm/borrowing.h): a file with the first
  /// `chunks` chunks, whole. An error: the store is copied first.
  virtual Result<ImageFile> file(std::uint32_t /*chunks*/) {
    return fail(Errc::kUnsupported, "chunks that can only be read");
  }
  /// Hands over the Borrowing, until whose settle() the new store reads its chunks from file().
  /// Called last.
  virtual void lent(std::unique_ptr<Borrowing> /*borrowing*/) {}
  /// Completes the store before it gets its name: a process that dies on the way leaves no store.
  /// An error here is an error of restore(). No reader sees the store yet, so chunks that its
  /// versions free can be reused immediately; the image's own chunks are reused last.
  virtual Status complete(Store& /*store*/) { return {}; }
  /// Reports that complete() reused the image's own chunks: pinning the image's version no longer
  /// keeps its content.
  virtual void used_again() {}
};

}  // namespace pando::shm

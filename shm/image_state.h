#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "shm/store.h"

/// What a store's version is beside the bytes of its chunks: enough to make the store again from
/// these, on disk or elsewhere. Knows nothing of files.
namespace pando::shm {

/// One chunk of a version.
struct ImageChunk {
  std::uint32_t count = 0;     ///< as the store counts it; 0: the version has nothing in it
  std::uint32_t used = 0;      ///< bytes from its start that published versions may refer to
  std::uint32_t checksum = 0;  ///< of these, see chunk_checksum()
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
  std::uint64_t line = 0;          ///< of the store, see Store::line()
  std::uint32_t root_block = 0;    ///< reference to the version's root block
  std::vector<ImageChunk> chunks;  ///< by number
  std::vector<ImageSide> side;
  bool operator==(const ImageState&) const = default;
};

/// The current version, for a checkpoint.
struct ImageCapture {
  ImageState state;  ///< without checksums and the side table
  /// By number: chunks that may have been written since the last capture of this process; all that
  /// are in use when it is the first. What others have up to their `used` has not changed.
  std::vector<bool> written;
};

/// Largest length of ImageState::chunks, and of a side part's bytes.
inline constexpr std::uint32_t kMaxImageChunks = kReach / kChunkBytes;
inline constexpr std::uint32_t kImageSideBytes = 64U << 10;

[[nodiscard]] std::uint32_t chunk_checksum(ByteView bytes) noexcept;
/// Bytes [from, to) of a chunk; the caller holds a version that uses them.
[[nodiscard]] ByteView chunk_bytes(const Window& window, std::uint32_t chunk, std::uint32_t from,
                                   std::uint32_t to) noexcept;
/// The side table's parts that say something. Any thread; entries are read one by one as they are.
[[nodiscard]] std::vector<ImageSide> side_table(const Window& window);

class Borrowing;

/// A file of which chunk n can be mapped at `first` + n * kChunkBytes.
struct ImageFile {
  Fd fd{};                            ///< readable
  std::uint64_t first = kChunkBytes;  ///< a file of chunks begins with its name
};

/// Where restore() has the chunks' bytes from.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  /// Fills `into` with the first bytes of a chunk. kCorrupt: they have not got this checksum.
  virtual Status read(std::uint32_t chunk, std::span<std::uint8_t> into,
                      std::uint32_t checksum) = 0;
  /// For a store that is to be served before it is copied (shm/borrowing.h): a file that has the
  /// first `chunks` of them, whole. An error: it is copied first.
  virtual Result<ImageFile> file(std::uint32_t /*chunks*/) {
    return fail(Errc::kUnsupported, "chunks that can only be read");
  }
  /// The new store reads its chunks from file() until this is settled. Called last.
  virtual void lent(std::unique_ptr<Borrowing> /*borrowing*/) {}
  /// What else has to be done before the store gets its name: a process that dies on the way leaves
  /// none. An error of this is one of restore(). What its versions free can be used again at once,
  /// as nobody sees the store; the image's own chunks last.
  virtual Status complete(Store& /*store*/) { return {}; }
  /// complete() needed their room: pinning the image's version keeps no longer what the image has.
  virtual void used_again() {}
};

}  // namespace pando::shm

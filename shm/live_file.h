#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "shm/layout.h"
#include "shm/map/mapping.h"

namespace pando::shm {

struct ImageFile;

/// Checks a header's constants, layout and identity against the file it was read from.
Status check_header(int fd, const std::string& path, std::uint64_t layout);
/// tmpfs, or kUnsupported with the reason.
Status require_tmpfs(int fd, const std::string& path);
/// Whether a store that borrows an image's chunks, or was to, is all that its writer has left
/// behind. Not while there may be a writer.
bool died_borrowing(const StoreOptions& options);
/// Opens the existing store file; kNotFound when there is none.
Result<Fd> open_store_file(const std::string& path, int flags);

/// The writer's side of the file: locking, mapping, growing, punching. Knows where chunks lie, not
/// what is in them.
class LiveFile {
 public:
  LiveFile() = default;
  /// A new file that has no name of its own yet (`path`.new), locked, with header and tables.
  static Result<LiveFile> create(const StoreOptions& options);
  /// Gives the file its name, in the place of a store that no other process holds.
  Status install(const StoreOptions& options);
  /// Removes the file that has no name of its own yet.
  void discard(const StoreOptions& options) noexcept;
  static Result<LiveFile> attach(const StoreOptions& options);

  [[nodiscard]] std::byte* base() const noexcept { return mapping_.base(); }
  [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(base()); }
  [[nodiscard]] std::uint32_t* counts() const noexcept {
    return reinterpret_cast<std::uint32_t*>(base() + kCountsOffset);
  }
  [[nodiscard]] Window window() const noexcept {
    return {base(), header().committed.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Chunks below the end of the file.
  [[nodiscard]] std::uint32_t committed_chunks() const noexcept;
  /// What the sparse file holds of the machine's memory.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  /// Gives memory to chunks; kFull when the machine, the mount or the file size limit has none.
  /// Until it returned, touching the chunks would be SIGBUS.
  Status back(std::uint32_t first, std::uint32_t count);
  /// The file reaches behind `chunks` of them from now on, without memory for those that have none.
  Status reach(std::uint32_t chunks);
  /// The first `chunks` are an image's from now on (shm/borrowing.h): read from its file.
  Status borrow(std::uint32_t chunks, const ImageFile& image);
  /// How many of the first chunks are not here; 0: all are.
  [[nodiscard]] std::uint32_t borrowed_chunks() const noexcept {
    return header().borrowed.load(std::memory_order_relaxed);
  }
  /// Fills a chunk that lies below reach(), with memory. kFull. Any thread, one at a time.
  Status write_chunk(std::uint32_t chunk, ByteView bytes);
  /// Every borrowed chunk has been filled: they are read from here.
  Status settle();
  /// Takes memory away; false when the kernel refused (they then keep it).
  bool punch(std::uint32_t first, std::uint32_t count) noexcept;
  /// Gives memory to one granule of the side table.
  Status back_side(std::uint32_t granule);

 private:
  Status prepare(const StoreOptions& options);
  Status back_bytes(std::uint64_t at, std::uint64_t bytes);
  Status back_counts(std::uint32_t chunks);

  Fd fd_;
  Mapping mapping_;
  std::uint32_t counted_chunks_ = 0;  // chunks whose counts have memory
};

}  // namespace pando::shm

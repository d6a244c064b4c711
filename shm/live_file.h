#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "shm/layout.h"
#include "shm/map/chunk_memory.h"
#include "shm/map/mapping.h"

namespace pando::shm {

struct ImageFile;

/// Checks a header's constants, layout and identity against the file it was read from.
Status check_header(int fd, const std::string& path, std::uint64_t layout);
/// Checks that the file is on a tmpfs; else kUnsupported with the reason.
Status require_tmpfs(int fd, const std::string& path);
/// Whether the last writer left only a store that borrows an image's chunks, or was about to. Must
/// not be called while a writer may exist.
bool died_borrowing(const StoreOptions& options);
/// The owner that the store file at `path` has, for this build's layout; the store is not attached.
Result<StoreOwner> owner_of(const std::string& path, std::uint64_t layout);
/// Opens the existing store file; kNotFound when there is none.
Result<Fd> open_store_file(const std::string& path, int flags);

/// The writer's side of the file: locking, mapping, growing, punching. This class knows where
/// chunks lie, not their content.
class LiveFile final : public ChunkBacking {
 public:
  LiveFile() = default;
  /// Makes a new file, locked, with header and tables, under a temporary name (`path`.new).
  static Result<LiveFile> create(const StoreOptions& options);
  /// Gives the file its name, in place of a store that no other process holds.
  Status install(const StoreOptions& options);
  /// Removes the file that still has its temporary name.
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
  /// Bytes of the machine's memory that the sparse file holds.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  Status back(std::uint32_t first, std::uint32_t count) override;
  /// Extends the file to `chunks` chunks, without memory for those that have none.
  Status reach(std::uint32_t chunks);
  /// Makes the first `chunks` chunks an image's (shm/borrowing.h): they are read from its file.
  Status borrow(std::uint32_t chunks, const ImageFile& image);
  /// Number of first chunks that are still an image's; 0: all chunks are in this file.
  [[nodiscard]] std::uint32_t borrowed_chunks() const noexcept {
    return header().borrowed.load(std::memory_order_relaxed);
  }
  /// Fills a chunk that lies below reach(), with memory. kFull. Any thread, one at a time.
  Status write_chunk(std::uint32_t chunk, ByteView bytes);
  /// Called when every borrowed chunk has been filled: the chunks are read from this file again.
  Status settle();
  bool punch(std::uint32_t first, std::uint32_t count) noexcept override;
  [[nodiscard]] std::uint32_t room() const noexcept override;
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

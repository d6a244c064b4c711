#pragma once

#include <cstdint>
#include <vector>

#include "shm/chunk_pool.h"
#include "shm/ledger.h"
#include "shm/store.h"

namespace pando::shm {

/// The chunk in which consecutive versions allocate, each after the previous one.
struct OpenChunk {
  Span span;
  // whether the commit thread's transaction, which starts at `span`, has the chunk
  bool lent = false;
};

/// The work of a transaction: a bump allocator in one chunk after the other, and the ledger of the
/// bytes added and released per chunk.
struct Transaction::Impl {
  Impl(LiveFile& file, ChunkPool& chunk_pool) noexcept : live_file(file), pool(chunk_pool) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();  ///< gives back the chunks that were not published

  /// Continues in the store's open chunk, which is lent to this transaction alone.
  void open_at(OpenChunk& open);
  Result<Ref<>> allocate(std::size_t bytes);
  void release(Ref<> ref, std::size_t bytes);
  void absorb(Impl& other);
  [[nodiscard]] bool is_fresh(Ref<> ref) const noexcept;

  /// Brings the ledger up to date with the current chunk.
  void count_current();
  [[nodiscard]] Span current() const noexcept;
  /// After a publication: no chunk is left to give back.
  void forget() noexcept;

  LiveFile& live_file;
  ChunkPool& pool;
  Ledger ledger;
  std::vector<Span> tails;          // room left in taken chunks
  OpenChunk* store_open = nullptr;  // set while this transaction holds the store's open chunk
  std::uint64_t begin = 0;          // start of the writable part of the current chunk
  std::uint64_t position = 0;       // next free byte in it, as an offset in the file
  std::uint64_t end = 0;            // 0 = no chunk yet
  std::uint64_t counted = 0;        // bytes before it are in the ledger
  std::uint64_t allocated = 0;
  std::uint64_t released = 0;
  Reserve reserve = Reserve::kKept;
  bool damaged = false;  // a release of a place that is no block: must not be published

 private:
  Status find_room(std::size_t bytes);
  Result<Ref<>> allocate_run(std::size_t bytes);
  void leave_current();
  void collapse_region_of(std::uint32_t chunk);
  void take(Span span);
  void go_on_in(Span span);
  void add_to_chunks(std::uint64_t offset, std::uint64_t bytes, std::int64_t sign);
};

}  // namespace pando::shm

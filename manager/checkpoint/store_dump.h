#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "manager/io/store_file.h"
#include "manager/io/write_rate_limiter.h"
#include "manager/journal/journal_history.h"
#include "shm/slots.h"
#include "shm/store.h"
#include "zone/dump/dump_format.h"

/// Writes dumps (zone/dump/dump_format.h). A dump has all that a build of another layout, or
/// another server, needs to go on from a version, including the zones' merge bases.
namespace pando::manager {

struct WrittenDump {
  zone::DumpCounts counts;
  std::uint64_t bytes = 0;
  std::uint64_t position = 0;  ///< journal position
};

struct DumpRequest {
  std::string path;         ///< with `into`: a name for messages
  shm::StoreOwner owner{};  ///< the journal's identity
  std::shared_ptr<HistorySource> history;
  std::shared_ptr<std::atomic<bool>> ended;  ///< set: give up
  std::uint64_t bytes_per_second = WriteRateLimiter::kBytesPerSecond;
  /// An empty file to write in place of `path`; null: none. An error leaves a part in it.
  std::shared_ptr<StoreFile> into{};
};

/// Writes the present version to `request.path`. After success the file is whole and durable; after
/// an error it is as before. The dump runs in a thread of `pool`, from a pinned version, while the
/// store goes on. Call on the commit thread, where `done` is called, too; all references outlive
/// the pool's threads. The file is for its owner alone, since it has all served data.
///
/// kIo, immediately, while `journal`'s end is not durable. After a host crash the journal could
/// give a position of the dump to another record, which a start from the dump would skip.
void dump_store(shm::Store& store, shm::SlotTable& slots, const Journal& journal,
                asio::io_context& io, asio::thread_pool& pool, Files& files, DumpRequest request,
                std::function<void(const Result<WrittenDump>&)> done);

}  // namespace pando::manager

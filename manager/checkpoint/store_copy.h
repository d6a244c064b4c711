#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "manager/io/store_file.h"
#include "manager/io/write_rate_limiter.h"
#include "manager/journal/journal.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

struct CopyRequest {
  std::string path;
  std::shared_ptr<std::atomic<bool>> ended;  ///< set: give up
  std::uint64_t bytes_per_second = WriteRateLimiter::kBytesPerSecond;
};

/// kDenied: there is something else at `path` than `may_replace` knows by a file's first bytes
/// (nullptr: than an image); kInvalid: it lies in `journal`, or is one of `own`, by whatever name.
Status check_copy_target(Files& files, const std::string& path, const std::string& journal,
                         const std::vector<std::string>& own,
                         bool (*may_replace)(ByteView head) = nullptr);

/// Writes an image of the present version to `request.path`, of nobody's journal: a server whose
/// own is empty starts on it, to seed a secondary or from a backup. In a thread of `pool`, pinned
/// and paced, while the store goes on. Call on the commit thread, where `done` is called, too; all
/// references outlive the pool's threads. kDenied: it was given up; what is at the path stays.
/// kIo, at once, while `journal`'s end is not durable: a crash of the host could take back a serial
/// that the copy has, and this server give it to other data.
///
/// What the store has counted as written since the last checkpoint is forgotten by this.
void copy_store(shm::Store& store, shm::SlotTable& slots, const Journal& journal,
                asio::io_context& io, asio::thread_pool& pool, Files& files, CopyRequest request,
                std::function<void(const Status&)> done);

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
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

/// kDenied: the file at `path` is not one that `may_replace` knows by its first bytes (nullptr: not
/// an image). kInvalid: the file lies in `journal`, or is one of `own`, by whatever name.
Status check_copy_target(Files& files, const std::string& path, const std::string& journal,
                         const std::vector<std::string>& own,
                         bool (*may_replace)(ByteView head) = nullptr);

/// kInvalid: the path lies in `journal`, or is one of `own`, by whatever name.
Status check_not_own(const std::string& path, const std::string& journal,
                     const std::vector<std::string>& own);
/// kInvalid: `descriptor` is not of the folder in which this process finds `path`, as the other
/// process sees other folders (PrivateTmp= of a unit, a container).
Status check_same_folder(const Fd& descriptor, const std::string& path);

/// Writes an image of the present version to `request.path`, of nobody's journal. A server with an
/// empty journal starts on such an image, to seed a secondary or from a backup. The copy runs in a
/// thread of `pool`, pinned and paced, while the store goes on. Call on the commit thread, where
/// `done` is called, too; all references outlive the pool's threads.
///
/// kDenied: cancelled; a file at the path stays. kIo, immediately, while `journal`'s end is not
/// durable: after a host crash this server could give a serial of the copy to other data.
///
/// The copy clears the store's record of chunks written since the last checkpoint
/// (Checkpointer::mark_untrusted()).
void copy_store(shm::Store& store, shm::SlotTable& slots, const Journal& journal,
                asio::io_context& io, asio::thread_pool& pool, Files& files, CopyRequest request,
                std::function<void(const Status&)> done);

}  // namespace pando::manager

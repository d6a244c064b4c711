#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "ipc/worker_messages.h"
#include "manager/net/dnstap_lender.h"
#include "manager/net/query_log_lender.h"
#include "manager/workers/worker_link.h"
#include "manager/xdp/xdp_lender.h"
#include "shm/image_state.h"

namespace pando::manager {

struct WorkerPoolOptions {
  std::string run_directory;
  std::uint64_t layout = 0;   ///< zone::layout_fingerprint(): workers of another build are refused
  std::string worker_binary;  ///< empty: pando-worker beside the manager's own program
  /// `--user` for workers when this process is root and no launcher is used.
  std::string worker_user;
  bool external = false;      ///< `workers: external`: never start a process
  bool cpu_affinity = false;  ///< pin worker N to the N-th processor
  std::chrono::milliseconds pin_time{600'000};
  /// A started process that says no Hello for this long never will: attaching takes milliseconds.
  std::chrono::milliseconds hello_time{20'000};
  /// Workers without a connection try every 100 ms at least.
  std::chrono::milliseconds adopted_time{3'000};
  /// A killed process ends within this time, or its slot is given up.
  std::chrono::milliseconds kill_time{2'000};
  ipc::Logging logging;
  std::optional<DnstapOptions> dnstap;  ///< at the start; WorkerPool::set_dnstap changes it
  std::optional<QueryLogOptions> query_log;  ///< the same, WorkerPool::set_query_log
  XdpOptions xdp;  ///< the same, WorkerPool::set_xdp
  std::uint32_t stop_grace_ms = 2'000;  ///< how long a stopped worker may finish its connections
  std::uint32_t worker_uid = 0;  ///< the user who may say Hello beside root and the manager's own
  std::optional<std::uint32_t> worker_group;  ///< may connect; none: all users may

  /// A stopped worker that lives longer than this is killed.
  [[nodiscard]] std::chrono::milliseconds stop_time() const {
    return std::chrono::milliseconds(stop_grace_ms) + std::chrono::seconds(1);
  }
};

struct WorkerPoolHooks {
  /// A request that workers cannot answer alone (manager/workers/worker_link.h).
  ForwardHandler forward;
  /// All keys, for transfers that are signed with a held one (manager/workers/transfer_signer.h).
  KeyringSource keyring;
  std::function<void(std::uint32_t slot, const ipc::TransferFinished&)> transfer_finished;
  /// A worker has died and its pins are cleared: memory may be reusable (Store::reclaim).
  std::function<void()> pins_cleared;
  /// The file that a reader of the store maps beside the store (shm/borrowing.h); without a
  /// descriptor: nothing.
  std::function<Result<shm::ImageFile>()> image;
  /// Number of the current version; without it no version counts as superseded.
  std::function<std::uint64_t()> current_version;
  /// A worker has said Hello and got its sockets.
  std::function<void(std::uint32_t slot)> serving;
  /// All workers that has_previous_layout_workers() found have ended, or are of this build.
  std::function<void()> no_previous_layout_workers;
};

}  // namespace pando::manager

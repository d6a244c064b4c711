#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/dnssec/changes_verification.h"
#include "manager/secondary/transfer_in.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// True for data that are served only if their signatures are right (`verify: refuse`).
[[nodiscard]] bool must_be_valid(const Runtime& runtime, const dns::Name& zone,
                                 const TransferResult& transfer);

/// The faults in one line; empty = none.
[[nodiscard]] std::string faults_text(const zone::Verification& found);

/// Verifies a signed zone as a transfer would leave it, before anybody sees it.
class ReceivedVerification {
 public:
  /// `verdict` is without faults also for changesets that cannot be applied: staging finds the same
  /// error, and knows what to do about it.
  using Done = std::function<void(Verdict&& verdict, TransferResult&& transfer)>;

  /// References outlive the work.
  ReceivedVerification(asio::io_context& commit_loop, asio::thread_pool& pool, shm::Store& store,
                       shm::SlotTable& slots) noexcept
      : commit_loop_(commit_loop), pool_(pool), store_(store), slots_(slots) {}

  /// Begins in a thread of the pool; on the commit loop. Changesets are applied to the version that
  /// is served now, in a private draft; `base_is_valid` says that this version was verified, so
  /// that the changes alone may decide. `done` is called on the commit loop. When the returned
  /// object ends, the work is given up, which the verdict says.
  [[nodiscard]] std::shared_ptr<void> run(const dns::Name& zone, bool base_is_valid,
                                          TransferResult&& transfer, Done done);

 private:
  struct Work;

  asio::io_context& commit_loop_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
};

}  // namespace pando::manager

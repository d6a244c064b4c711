#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "manager/commit/committer.h"
#include "manager/dnssec/changes_verification.h"
#include "manager/secondary/transfer_in.h"
#include "manager/verifier/zone_verifier.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::manager {

/// The judges of a zone's data before they are served.
struct Judges {
  bool signatures = false;  ///< `verify: refuse`
  ZoneVerifierPtr program;  ///< null: none
  [[nodiscard]] explicit operator bool() const noexcept { return signatures || program; }
};

/// The verdicts of the checks on received data.
struct Judgement {
  std::optional<Verdict> signatures;  ///< nullopt: not verified
  std::string refusal;                ///< in one line; empty = the data may be served
};

/// Has a zone judged as a transfer would leave it, before anybody sees it.
class ReceivedVerification {
 public:
  /// Changesets that cannot be applied are not refused: staging finds the same error, and knows
  /// what to do about it.
  using Done = std::function<void(Judgement&& judgement, TransferResult&& transfer)>;

  /// References outlive the work.
  ReceivedVerification(asio::io_context& commit_loop, asio::thread_pool& pool, shm::Store& store,
                       shm::SlotTable& slots) noexcept
      : commit_loop_(commit_loop), pool_(pool), store_(store), slots_(slots) {}

  /// Begins in a thread of the pool, or of the program's; on the commit loop. Changesets are
  /// applied to the version that is served now, in a private draft; `base_is_valid` says that this
  /// version was verified, so that the changes alone may decide the signatures. `done` is called on
  /// the commit loop. When the returned object ends, the work is given up, which the verdict says.
  [[nodiscard]] std::shared_ptr<void> run(const dns::Name& zone, Judges judges, bool base_is_valid,
                                          TransferResult&& transfer, Done done);

 private:
  struct Work;

  asio::io_context& commit_loop_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
};

}  // namespace pando::manager

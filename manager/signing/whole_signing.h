#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "manager/change/change_road.h"
#include "manager/change/zone_signers.h"
#include "manager/commit/committer.h"
#include "manager/change/update_holds.h"
#include "shm/slots.h"

namespace pando::manager {

/// Signs zones that are served, and not yet signed by the keys in their folder: those that get a
/// policy while they are served. Zones that are to be unsigned lose their signatures the same way. A
/// builder thread signs a pinned version of the zone, and all of it changes in one version. If the
/// zone has changed meanwhile, it is signed anew, and its updates wait for that.
///
/// Lives on the commit thread.
class WholeSigning {
 public:
  /// Called when a zone was signed or unsigned.
  using Signed = std::function<void(const dns::Name& zone)>;
  static constexpr std::chrono::seconds kRetry{30};

  /// All references outlive the object; `pool` is joined before its destruction.
  WholeSigning(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
               shm::SlotTable& slots, const Committer& committer, ChangeRoad& road,
               ZoneSigners& signers, UpdateHolds holds, Signed on_signed)
      : io_(io),
        pool_(pool),
        store_(store),
        slots_(slots),
        committer_(committer),
        road_(road),
        signers_(signers),
        holds_(std::move(holds)),
        on_signed_(std::move(on_signed)) {}

  /// Signs the zone unless it has the signatures of its keys, is not loaded, or is not signed here;
  /// takes its signatures away if it is to be unsigned.
  void check(const dns::Name& zone);
  /// Why the zone is served without its keys' signatures, in one line; empty: it is not.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  /// Tries zones again that could not be signed, each kRetry; to be called regularly.
  void retry(std::chrono::steady_clock::time_point now);

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;
  /// Zones that are signed at a time; each uses several threads.
  static constexpr std::size_t kMaxAtWork = 2;

  struct Wanted {
    ZoneSignerPtr signer;  // null: the zone is to be unsigned
    config::SerialPolicy serials;
    bool is_done;  // it is as it is to be, but those who wait for that do not know yet
  };
  [[nodiscard]] std::optional<Wanted> wanted_of(const dns::Name& zone) const;
  void start_waiting();
  void sign(const WorkPtr& work);
  void submit(const WorkPtr& work);
  void ended(const WorkPtr& work, const Status& status);
  void note_failure(const dns::Name& zone, const std::string& reason);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  shm::SlotTable& slots_;
  const Committer& committer_;
  ChangeRoad& road_;
  ZoneSigners& signers_;
  UpdateHolds holds_;
  Signed on_signed_;
  std::deque<dns::Name> waiting_;
  std::set<std::string> known_;  // waiting or at work, by dns::folded_key()
  std::size_t at_work_ = 0;
  struct Failure {
    std::string reason;
    std::uint64_t told_at = 0;  // signing time of the last line in the log
  };
  std::map<std::string, Failure> failed_;  // by dns::folded_key()
  std::chrono::steady_clock::time_point next_retry_{};
};

}  // namespace pando::manager

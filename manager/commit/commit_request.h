#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

struct Verdict;

/// Where a change of a zone's data comes from.
enum class ChangeSource : std::uint8_t {
  kUpdate,    ///< an UPDATE of a client (RFC 2136)
  kEdit,      ///< a transaction of an operator or of the HTTP API
  kFile,      ///< the zone's file
  kTransfer,  ///< a primary, by IXFR or AXFR
  kRollback,
  kSigning,  ///< the signer: a zone is signed as a whole, or signatures are renewed
};

/// A zone whose data a version changed.
struct PublishedZone {
  dns::Name zone;
  ChangeSource source = ChangeSource::kUpdate;
  bool is_whole = false;  ///< all data came anew, by a file or a transfer
  bool had_data = true;
  std::shared_ptr<const Verdict> verdict{};  ///< about the new data; null: they were not verified
};

/// A version that was published. The references hold during the call that reports it.
struct PublishedVersion {
  std::uint64_t number = 0;
  std::span<const JournalEntry> records;  ///< the journal's records of the version, in order
  std::span<const PublishedZone> changed;
};

/// The transaction, draft and journal records of a group, as a request sees them.
struct Stage {
  shm::Transaction& transaction;
  zone::Draft& draft;
  std::vector<JournalEntry>& journal;  ///< records that must be durable before the version is
                                       ///< published
  bool alone = false;                  ///< the request is the only one of its group
  /// ZoneRecords::has_merge_base() of the zone; set for builder threads, which cannot ask the
  /// committer.
  std::optional<bool> has_merge_base{};
  /// The part of the store's reserve that the finished step may have used; the committer checks.
  shm::Reserve reserve = shm::Reserve::kKept;
  std::vector<PublishedZone> changed{};  ///< zones whose data the step changes

  /// Opens a part of the reserve to the step, if the step is alone in its group. In a shared group
  /// other requests would take that space, too.
  void use_reserve(shm::Reserve use) {
    if (!alone) return;
    reserve = use;
    transaction.use_reserve(use);
  }
  /// Opens half of the reserve to a step that removes at least as many records as it adds.
  void use_reserve_for(std::size_t removed, std::size_t added) {
    if (added <= removed) use_reserve(shm::Reserve::kHalf);
  }
};

/// One step towards the next version. `stage` may be called more than once, when a group is staged
/// again after the store was full.
///
/// `done` is called exactly once, on the commit thread: with the version that contains the step, or
/// with an error. kFull: the store lacks space for the step. kIo: the journal cannot be written,
/// for this request or another one of its group. Other errors are those of `stage`.
struct CommitRequest {
  enum class Kind : std::uint8_t {
    kGroup,  ///< may share a version with others
    /// Has a version of its own: `stage` cannot be called twice, or may fail after it has changed
    /// the draft. Only a draft without other requests can then be dropped.
    kAlone,
  };
  std::function<Status(Stage&)> stage;
  std::function<void(const Result<std::uint64_t>& version)> done = [](const auto&) {};
  Kind kind = Kind::kGroup;
};

}  // namespace pando::manager

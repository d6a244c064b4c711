#pragma once

#include <cstdint>

#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// The next version of the store while it is being made: a transaction, and the draft on it. The
/// one door of the manager to Store::publish(), which tests/tidy checks. Versions follow each
/// other, so a second one may be begun only when the first is published or dropped.
class NextVersion {
 public:
  /// The kind of step that makes the version.
  enum class Step : std::uint8_t {
    kCommit,    ///< a group of the Committer, the only one once the store is served for updates
    kRecovery,  ///< replay of the journal before that; may use the whole reserve
    kDump,      ///< zones of a dump, in chunks of their own: nothing of this store is served yet
  };

  NextVersion(shm::Store& store, Step step);
  NextVersion(const NextVersion&) = delete;
  NextVersion& operator=(const NextVersion&) = delete;

  [[nodiscard]] shm::Transaction& transaction() noexcept { return transaction_; }
  [[nodiscard]] zone::Draft& draft() noexcept { return draft_; }
  [[nodiscard]] const zone::Draft& draft() const noexcept { return draft_; }
  /// The version that this one follows.
  [[nodiscard]] const shm::VersionInfo& base() const noexcept { return base_; }
  [[nodiscard]] bool is_changed() const { return !(draft_.root() == base_.root); }

  /// Makes the version the current one. `position`: the version contains all journal records up to
  /// there, which must be durable. kFull: nothing has happened.
  Result<std::uint64_t> publish(std::uint64_t position);

 private:
  shm::Store& store_;
  shm::VersionInfo base_;
  shm::Transaction transaction_;
  zone::Draft draft_;
};

/// Publishes the current data under another journal position, for recovery and opening: the records
/// up to `position` are in the data, or change nothing.
Status recover_position(shm::Store& store, std::uint64_t position);

}  // namespace pando::manager

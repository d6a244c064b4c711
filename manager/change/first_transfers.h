#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "manager/change/zone_change.h"
#include "manager/commit/committer.h"

namespace pando::manager {

/// Publishes small zones that primaries send for the first time, several in one version. A new
/// catalog brings zones by the thousand, and a version for each would cost more than its data.
///
/// Lives on the commit thread.
class FirstTransfers {
 public:
  /// A zone of a batch, as its owner provides it.
  class Zone {
   public:
    virtual ~Zone() = default;
    [[nodiscard]] virtual ZoneChange& change() noexcept = 0;
    /// The zone was staged, with what it changes.
    virtual void staged(PublishedZone& changed) = 0;
    /// Called once: published, or not.
    virtual void done(const Result<std::uint64_t>& version) = 0;
    /// Called in place of done(): the zone needs a version of its own.
    virtual void put_alone() = 0;
  };
  using ZonePtr = std::shared_ptr<Zone>;

  /// The committer outlives the object.
  explicit FirstTransfers(Committer& committer) : committer_(committer) {}
  ~FirstTransfers() { *alive_ = false; }
  FirstTransfers(const FirstTransfers&) = delete;
  FirstTransfers& operator=(const FirstTransfers&) = delete;

  /// Whether a change with a WholeZone is small, from a primary, and for a zone without data.
  [[nodiscard]] bool may_share_version(const ZoneChange& change) const;
  /// Publishes such a zone with others. After a failed version, as many zones as it had are told
  /// to put_alone(), because a full store would refuse the next ones together, too.
  void publish(ZonePtr zone);

 private:
  enum class State : std::uint8_t {
    kWaits,
    kPlaced,   // the zone's transaction has become part of the version
    kRefused,  // left the configuration, or its source refuses it by now
    kHasData,  // from another attempt meanwhile
  };
  struct Member {
    ZonePtr zone;
    State state = State::kWaits;
    Status refusal{};
  };
  using Batch = std::vector<Member>;

  void put_waiting();
  Batch take_batch();
  static Status stage(Batch& batch, Stage& stage, const ZoneRecords& records);
  void ended(Batch& batch, const Result<std::uint64_t>& version);

  Committer& committer_;
  Batch waiting_;
  std::size_t alone_ = 0;  // number of the next zones that get versions of their own
  bool under_way_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "manager/commit/committer.h"

namespace pando::manager {

/// Puts zones that were sent whole. Small zones that had no data and come while others are put
/// share a version: a new catalog brings them by the thousand, and a version for each would cost
/// more than its data.
///
/// Lives on the commit thread.
class NewZoneBatches {
 public:
  /// The committer outlives the object.
  explicit NewZoneBatches(Committer& committer);
  ~NewZoneBatches();
  NewZoneBatches(const NewZoneBatches&) = delete;
  NewZoneBatches& operator=(const NewZoneBatches&) = delete;

  /// As Committer::put_zone(). The error of a zone that shared a version may be another zone's, as
  /// when the store is full; as many zones have versions of their own from then on.
  void put(const dns::Name& apex, std::shared_ptr<zone::BuiltZone> built,
           shm::Transaction&& built_in, Committer::Finished done);

 private:
  struct NewZone;
  using Batch = std::vector<NewZone>;

  void put_alone(NewZone&& zone);
  void put_waiting();
  Batch take_batch();
  static Status stage(Batch& batch, Stage& stage);
  void ended(Batch& batch, const Status& status);

  Committer& committer_;
  Batch waiting_;
  std::size_t alone_ = 0;  // the next zones that get versions of their own
  bool under_way_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager

#pragma once

#include <vector>

#include "base/result.h"
#include "manager/commit/committer.h"
#include "shm/store.h"
#include "zone/build/draft.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Stages what a primary sent: one difference behind the other. With `journal` each is noted there
/// as a transfer. Those that add no more than they remove may use what the store keeps for deletes.
/// kInvalid when they do not fit what we have: not only must the result be a zone,
/// all that they remove must be there.
Status stage_differences(Stage& stage, const std::vector<zone::Changeset>& differences,
                         const zone::DataLimits& limits, const Committer* journal);

/// Whether that failed because of the differences: they do not fit what we have, or a limit refuses
/// them. A whole zone may do better then, but not where the disk or the memory failed. kFull is
/// said of limits and of a store without room; to find out takes a block of the transaction, which
/// can only be dropped after that error, and the block with it.
[[nodiscard]] bool is_unfit(const Error& error, shm::Transaction& transaction);

}  // namespace pando::manager

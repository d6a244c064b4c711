#pragma once

#include <vector>

#include "base/result.h"
#include "manager/commit/committer.h"
#include "shm/store.h"
#include "zone/draft/draft.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Stages a primary's changesets in order. With `journal`, each changeset is noted there as a
/// transfer. Changesets that add no more than they remove may use the store's reserve for deletes.
/// The result must be a zone, and every removed record must exist in our zone; else kInvalid.
Status stage_changesets(Stage& stage, const std::vector<zone::Changeset>& changesets,
                        const zone::DataLimits& limits, const Committer* journal);

/// True if staging failed because of the changesets: a mismatch with our zone, or a limit. A whole
/// zone may succeed then, unlike after a failure of disk or memory. kFull means either a limit or a
/// full store. A block allocated in the transaction distinguishes the two; the transaction can only
/// be dropped afterwards, and the block with it.
[[nodiscard]] bool is_unfit(const Error& error, shm::Transaction& transaction);

}  // namespace pando::manager

#pragma once

#include "manager/change/zone_change.h"
#include "manager/commit/committer.h"

namespace pando::manager {

/// Stages a change that is computed: signs its changesets if the zone is signed here, applies them
/// in order, and adds the journal's records. For any thread, see ZoneChange::Compute. All of the
/// server's changes of zones pass through the functions of this header (tests/tidy).
///
/// `committer` tells the state of journal and zones' records. `signer` null: the zone is not signed
/// here.
///
/// Changesets that add no more than they remove may use the store's reserve for deletes. Those of a
/// primary must fit our zone: a mismatch, or a limit, is kInvalid, and then the zone sent whole may
/// succeed, unlike after kFull (the store) and kIo. kIo also: the journal lacks records, or its end
/// is not durable, so that nothing may be acknowledged. kExists: more than `max_names` of the
/// signer are to be signed, and its `is_too_much` is set. Other errors of signing are those of
/// sign_change().
Result<zone::Applied> stage_changesets(Stage& stage, const ZoneChange& change,
                                       const Committer& committer, ChangeSigner* signer = nullptr);

/// Puts a built zone, without `check`. Consumes `built_in` of the change. On the commit thread.
/// `known`: the committer's.
Status stage_whole_zone(Stage& stage, ZoneChange& change, const ZoneRecords& known);

/// Puts zones that have no data; kExists: one has, or is not configured. Consumes `built_in`.
Status stage_file_batch(Stage& stage, FileBatch& zones);

}  // namespace pando::manager

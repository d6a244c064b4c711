#pragma once

#include "manager/journal/journal.h"
#include "shm/store.h"

namespace pando::manager {

/// Begins an empty journal for a store that comes from another server's image (`pandoctl store
/// copy`). No record before the store's position is missing, so no later process may report a loss.
///
/// Earlier updates are in the zones, and cannot be told from the zone files' records. So a journal
/// record for each primary zone that may have had updates says that its dynamic changes are
/// unknown.
///
/// No effect when the journal has files, or when the store has seen no records. Afterwards the
/// store's position is that of the new records.
Status begin_journal(shm::Store& store, Journal& journal);

}  // namespace pando::manager

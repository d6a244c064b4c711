#pragma once

#include "manager/journal/journal.h"
#include "shm/store.h"

namespace pando::manager {

/// Begins the journal, which has no files yet, of a store that comes from elsewhere: from another
/// server's image (`pandoctl store copy`). None of the records before its position is missing, and
/// no later process is to take that for a loss. But what came by update before is in the zones and
/// cannot be told from what their files said: so of each primary zone that may have had updates the
/// journal is told that this is not known.
///
/// Nothing to do when the journal has files, or the store has seen no records. The store's position
/// is that of the notes then.
Status begin_journal(shm::Store& store, Journal& journal);

}  // namespace pando::manager

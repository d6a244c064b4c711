#pragma once

#include "manager/journal.h"
#include "shm/store.h"
#include "zone/draft.h"

namespace pando::manager {

struct OpenedStore {
  shm::Store store;
  bool fresh = false;  ///< made anew: zones have to be loaded
};

/// Attaches to the live store, or makes a new one when there is none that this build can use.
/// kExists: another manager runs.
Result<OpenedStore> open_store(const shm::StoreOptions& options);

/// Applies the journal's records behind the store's position: what was durable but not published
/// when the last manager died. A record that does not fit its zone's serial is skipped with a note.
Status replay_journal(shm::Store& store, Journal& journal, Files& files, const NoteSink& note);

}  // namespace pando::manager

#pragma once

#include <functional>

#include "manager/image.h"
#include "manager/journal.h"
#include "shm/store.h"
#include "zone/draft.h"

namespace pando::manager {

struct OpenedStore {
  shm::Store store;
  /// kEmpty: made anew, zones have to be loaded; kImage: as the image has it, behind the journal.
  enum class From : std::uint8_t { kLive, kEmpty, kImage } from = From::kLive;
};

/// What brings a store that was made from an image up to the present (replay_onto_image()).
using BringUp = std::function<Status(shm::Store&)>;

/// Attaches to the live store. When there is none that this build can use, makes one from the image
/// (null or without index: there is none), else an empty one. kExists: another manager runs.
///
/// `bring_up` sees a restored store before anybody else does: one that is attached to later, after
/// whatever end of this process, is not behind the journal by more than its last group.
Result<OpenedStore> open_store(const shm::StoreOptions& options, Image* image = nullptr,
                               const BringUp& bring_up = {});

/// Applies the journal's records behind the store's position: what was durable but not published
/// when the last manager died. A record that does not fit its zone's serial is skipped with a note.
Status replay_journal(shm::Store& store, Journal& journal, Files& files, const NoteSink& note);

}  // namespace pando::manager

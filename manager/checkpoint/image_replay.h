#pragma once

#include <vector>

#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// Brings a store made from an image up to the journal's end, with many records in one version.
///
/// The journal has changesets, not whole zones. A zone with a record that does not fit the image is
/// *unloaded*. Such a zone answers SERVFAIL until it is loaded from its file and the journal, as
/// after any loss of the store. All zones are unloaded when the journal was compacted beyond the
/// image, or is damaged. Served data are therefore never older than an acknowledged update.
///
/// Zones that may have lost records get a new serial, and the journal a record with it.
///
/// Only the histories' part of `limits` applies. Returns the unloaded zones.
Result<std::vector<dns::Name>> replay_onto_image(shm::Store& store, Journal& journal, Files& files,
                                                 const zone::DataLimits& limits,
                                                 const NoteSink& note);

}  // namespace pando::manager

#pragma once

#include <vector>

#include "manager/journal/journal.h"
#include "shm/store.h"
#include "zone/build/draft.h"

namespace pando::manager {

/// Brings a store that was made from an image up to the journal's end, many records to a version.
///
/// The journal has differences, not zones that were put whole; so a zone of which a record does not
/// fit what the image has is *unloaded*: it answers SERVFAIL until it is loaded as after any other
/// loss of the store, from its file and the journal. The same with all zones when the journal was
/// compacted behind the image, or is damaged. What is served is therefore never older than an
/// acknowledged update.
///
/// Of `limits` those of histories count alone. Returns the zones that were unloaded.
Result<std::vector<dns::Name>> replay_onto_image(shm::Store& store, const Journal& journal,
                                                 Files& files, const zone::DataLimits& limits,
                                                 const NoteSink& note);

}  // namespace pando::manager

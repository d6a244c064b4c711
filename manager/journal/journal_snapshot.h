#pragma once

#include <string>
#include <vector>

#include "manager/journal/journal.h"
#include "manager/journal/journal_history.h"
#include "manager/journal/record/journal_payload.h"
#include "zone/dump/dump_format.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Writes the zones with records in `sealed`, as they are in `version`, with their dynamic changes.
/// The file is `<directory>/<position>.snapshot.partial`; it is synced, and its path returned.
///
/// A zone without data in `version` keeps its records unchanged: its file is broken, say, or the zone
/// has left the configuration. `version` holds everything up to `position` and must be
/// pinned. For a pool thread.
///
/// `unreadable`: with kDamage, a part of the journal that cannot be read is taken for lost, since
/// `version` is a live store's and lacks nothing. Else such a part is an error, and `unread` gets
/// the reason.
Result<std::string> write_snapshot(
    Files& files, const std::string& directory, const JournalFiles& sealed,
    const zone::StoreView& version, std::uint64_t position,
    JournalHistory::Unreadable unreadable = JournalHistory::Unreadable::kProblem,
    std::string* unread = nullptr);

/// The first zone without data that is no secondary; nullopt: each has data, so that a snapshot of
/// `version` may take the place of a part that cannot be read.
[[nodiscard]] std::optional<dns::Name> zone_without_data(const zone::StoreView& version);

/// The records of the zone's dynamic changes at `serial`, which stand after a whole zone.
[[nodiscard]] std::vector<zone::DumpNote> notes_of(const dns::Name& zone, dns::Serial serial,
                                                   const MergeBase& state);

/// The journal's merge base of a zone that is served at a version with `position`. When the records
/// do not lead to the served serial, the dynamic changes are unknown.
MergeBase served_merge_base(const JournalHistory& history, const zone::ZoneView& zone,
                            std::uint64_t position);

}  // namespace pando::manager

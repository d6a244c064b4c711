#pragma once

#include "manager/journal/journal.h"

namespace pando::manager {

/// kIo while the journal's end is not durable (Journal::is_secured): a host crash could take back
/// served data. To be checked before any promise that depends on the end. Any thread.
[[nodiscard]] inline Status check_end(const Journal& journal) {
  if (journal.is_secured()) return {};
  return fail(Errc::kIo, "the end of the journal could not be made durable again yet");
}

/// kIo while the journal is known to lack records (Journal::is_whole). To be checked before an
/// update: it would exist in the live store only, or behind a gap. Any thread.
[[nodiscard]] inline Status check_whole(const Journal& journal) {
  if (journal.is_whole()) return {};
  return fail(Errc::kIo,
              "the journal lacks records: updates wait until a snapshot of all zones is written");
}

}  // namespace pando::manager

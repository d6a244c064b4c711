#pragma once

#include "manager/journal/journal.h"

namespace pando::manager {

/// kIo while the journal's end is not durable (Journal::is_secured), for whoever asked for what has
/// to wait until it is: a crash of the host could take back what is served. Any thread.
[[nodiscard]] inline Status check_end(const Journal& journal) {
  if (journal.is_secured()) return {};
  return fail(Errc::kIo, "the end of the journal could not be made durable again yet");
}

}  // namespace pando::manager

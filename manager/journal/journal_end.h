#pragma once

#include "manager/journal/journal.h"

namespace pando::manager {

/// kIo while the journal's end is not durable (Journal::is_secured): a host crash could take back
/// served data. To be checked before any promise that depends on the end. Any thread.
[[nodiscard]] inline Status check_end(const Journal& journal) {
  if (journal.is_secured()) return {};
  return fail(Errc::kIo, "the end of the journal could not be made durable again yet");
}

}  // namespace pando::manager

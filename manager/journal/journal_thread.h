#pragma once

#include "manager/support/task_thread.h"

namespace pando::manager {

/// The thread that appends to the journal and removes its files.
///
/// Only the commit thread posts, so an idle thread stays idle until the commit thread posts again.
/// The commit thread never waits here: neither for a task nor for a lock.
class JournalThread : public TaskThread {};

}  // namespace pando::manager

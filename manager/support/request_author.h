#pragma once

#include "ipc/control.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The author of changes that a client of the control socket orders: its user, and the client that
/// it acts for, if it names one. The user is always there, so that nobody can put another name in
/// the place of his own.
[[nodiscard]] zone::Author author_of(const ipc::ControlRequest& request);

}  // namespace pando::manager

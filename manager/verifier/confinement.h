#pragma once

#include <string>

#include "base/result.h"

namespace pando::manager {

/// Gives up what the manager or its launcher has, for this process and all that it starts:
///
///   - becomes `user`, unless that is empty; no capability, no way to get one by an exec;
///   - no sockets of the family AF_UNIX: the manager's and the workers' are such;
///   - no signals to processes outside, from Landlock's version 6 on;
///   - without a user of its own: no file is written or made (Landlock, version 3; else kDenied).
///
/// Call it before other threads exist.
Status confine_verifier(const std::string& user);

}  // namespace pando::manager

#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// Gives up what the manager or its launcher has, for this process and all that it starts:
///
///   - becomes `user`, unless that is empty; no capability, no way to get one by an exec;
///   - no sockets of the family AF_UNIX, because the manager and the workers listen on them;
///   - without a user of its own: no mode, owner, time or attribute of a file is changed;
/// Call it before other threads exist. What it gives is for confine_program().
Result<Fd> confine_verifier(const std::string& user);

/// The rest, for the program alone:
///
///   - no signals to processes outside, from Landlock's version 6 on; nor to its supervisor, whose
///     death would orphan other processes;
///   - without a user of its own: no file is written or made (Landlock, version 3; else
///     confine_verifier() has failed with kDenied).
///
/// Gives errno, or 0. Only system calls, for a process that was forked.
int confine_program(const Fd& rules) noexcept;

}  // namespace pando::manager

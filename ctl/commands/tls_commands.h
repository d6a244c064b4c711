#pragma once

#include "ctl/commands/manager_commands.h"

/// Certificates and keys of TLS. Each command prints its answer and returns an ExitCode.
namespace pando::ctl {

/// The certificates in use, until when, and their pins. kFailed also if one has a problem.
int tls_status(Session& session);
/// Puts the next own key into use, and prints the same.
int tls_roll(Session& session);

}  // namespace pando::ctl

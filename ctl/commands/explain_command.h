#pragma once

#include <string>

#include "ctl/commands/manager_commands.h"

namespace pando::ctl {

/// A query as words of the command line; empty: not given.
struct QueryWords {
  std::string name;
  std::string type;
  std::string from;  ///< address of a client
  std::string key;   ///< name of the key that signs
  bool dnssec_ok = false;
};

/// Prints the answer that the server gives to the query, and why; returns an ExitCode.
int explain(Session& session, const QueryWords& query);

}  // namespace pando::ctl

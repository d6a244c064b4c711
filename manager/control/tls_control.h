#pragma once

#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"

namespace pando::manager {

/// The commands about certificates and keys of TLS. Lives on the commit thread.
class TlsControl {
 public:
  explicit TlsControl(ServerParts parts) : parts_(parts) {}

  void add_to(CommandTable& table);

 private:
  ServerParts parts_;
};

}  // namespace pando::manager

#pragma once

#include <cstdint>
#include <string>

#include "ctl/commands/manager_commands.h"

namespace pando::ctl {

/// The commands about settings in force: `config show`, `config diff`, `log level`.
class ConfigCommands {
 public:
  explicit ConfigCommands(Session& session) : session_(session) {}

  /// Of the server when `zone` is empty.
  int show(const std::string& zone);
  /// `limit`: rows of each kind.
  int diff(std::uint32_t limit);
  /// Shows the level when `level` is empty.
  int log_level(const std::string& level);

 private:
  Session& session_;
};

}  // namespace pando::ctl

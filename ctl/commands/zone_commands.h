#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "ctl/commands/manager_commands.h"
#include "ipc/control_results.h"

/// Commands that add, remove and configure zones while the server runs. Each prints its answer and
/// returns an ExitCode.
namespace pando::ctl {

/// A zone to be added, as the command line has it.
struct NewZone {
  std::string name;
  std::string file{};
  std::string template_name{};
  std::vector<std::string> primaries{};
  std::vector<std::string> settings{};  ///< KEY=VALUE
  std::string content{};                ///< file of this process with the zone's first content
};

class ZoneCommands {
 public:
  /// Standard input beyond this is refused: two million zones.
  static constexpr std::size_t kMaxInput = std::size_t{256} << 20;

  /// `session` outlives the object.
  explicit ZoneCommands(Session& session) : session_(session) {}

  int add(const NewZone& zone);
  /// Adds the zones of a JSON array, each as in the configuration's `zones`. An array beyond what
  /// one request takes is added in several commits; the first error ends it.
  int add_from(std::istream& input);
  int remove(const std::vector<std::string>& zones);
  /// Reads the zones' files again.
  int reload(const std::vector<std::string>& zones);
  /// `value`: JSON, or a text; none: the template's value again.
  int configure(const std::string& zone, const std::string& key,
                const std::optional<std::string>& value);

 private:
  Status send(const ipc::ControlRequest& request);
  int finish(const Status& status);

  Session& session_;
  ipc::ReloadResult sum_;  // of all requests
};

}  // namespace pando::ctl

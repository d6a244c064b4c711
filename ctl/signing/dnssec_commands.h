#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/commands/manager_commands.h"
#include "ctl/signing/key_arguments.h"

/// Zones that a manager signs. Each command prints its answer and returns an ExitCode.
namespace pando::ctl {

class DnssecCommands {
 public:
  /// `session` outlives the object.
  explicit DnssecCommands(Session& session) : session_(session) {}

  /// All zones that are signed here.
  int list();
  /// kFailed also if the zone has a problem.
  int status(const std::string& zone);
  /// Prints the DS records alone, as lines of a zone file. kFailed without any.
  int ds(const std::string& zone);
  /// Prints the effects that signing by a policy would have. kFailed if the zone cannot be signed.
  int check(const std::string& zone, const std::string& policy);
  /// Gives key files to the manager: ours, or of BIND, Knot or PowerDNS. This process reads them.
  int import_keys(const std::string& zone, const KeyArguments& files);
  /// New keys follow those of the zone: "all" (also if empty), "ksk" or "zsk".
  int roll(const std::string& zone, const std::string& keys);
  int restore_key(const std::string& zone, const std::string& tag);
  int clock_ok();

 private:
  int order(std::string_view verb, const std::string& zone, const std::string& label);
  Session& session_;
};

}  // namespace pando::ctl

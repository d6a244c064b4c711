#include "ctl/commands/tls_commands.h"
#include "ctl/verbs.h"

namespace pando::ctl {

void add_tls_verbs(CommandLine& line) {
  CLI::App* tls = line.group("tls", "certificates and keys of TLS");
  line.add_session(tls, "status", [](auto& s) { return tls_status(s); });
  line.add_session(tls, "roll", [](auto& s) { return tls_roll(s); });
}

}  // namespace pando::ctl

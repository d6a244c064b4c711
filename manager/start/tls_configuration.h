#pragma once

#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "manager/systemd/descriptor_store.h"

namespace pando::manager {

class TlsProcesses;

/// Gives pando-tls what the configuration says, certificates included. Errors of certificates and
/// of listening sockets, which are logged: the server goes on with what it had.
std::vector<std::string> configure_tls(const config::Settings& settings, TlsProcesses& tls);

/// Takes the sockets at the addresses `listen`, which a socket unit has opened, out of `inherited`.
[[nodiscard]] std::vector<systemd::InheritedDescriptor> take_tls_sockets(
    std::vector<systemd::InheritedDescriptor>& inherited, const std::vector<Endpoint>& listen);

}  // namespace pando::manager

#pragma once

#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "manager/systemd/descriptor_store.h"

namespace pando::manager {

class TlsCertificates;
class TlsProcesses;

/// Gives pando-tls what the configuration and the files of certificates say. Errors of listening
/// sockets, which are logged.
std::vector<std::string> configure_tls(const config::Settings& settings,
                                       const TlsCertificates& certificates, TlsProcesses& tls);

/// Takes the sockets at the addresses `listen`, which a socket unit has opened, out of `inherited`.
[[nodiscard]] std::vector<systemd::InheritedDescriptor> take_tls_sockets(
    std::vector<systemd::InheritedDescriptor>& inherited, const std::vector<Endpoint>& listen);

}  // namespace pando::manager

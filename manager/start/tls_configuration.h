#pragma once

#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "manager/systemd/descriptor_store.h"

namespace pando::manager {

class TlsCertificates;
class TlsProcesses;

/// Gives pando-tls what the configuration says, but for certificates. Errors of listening sockets,
/// which are logged: the server goes on with what it had.
std::vector<std::string> configure_tls(const config::Settings& settings,
                                       const TlsCertificates& certificates, TlsProcesses& tls);

/// Gives pando-tls what was read of files: the demands on clients, and a new pair.
void give_certificates(const TlsCertificates& certificates, bool is_new_pair, TlsProcesses& tls);

/// Takes the sockets at the addresses `listen`, which a socket unit has opened, out of `inherited`.
[[nodiscard]] std::vector<systemd::InheritedDescriptor> take_tls_sockets(
    std::vector<systemd::InheritedDescriptor>& inherited, const std::vector<Endpoint>& listen);

}  // namespace pando::manager

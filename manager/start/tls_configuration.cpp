#include "manager/start/tls_configuration.h"

#include <algorithm>

#include "ipc/log.h"
#include "manager/start/log_options.h"
#include "manager/start/server_parts.h"
#include "manager/tls/tls_certificates.h"
#include "manager/tls/tls_processes.h"
#include "manager/workers/listening_socket.h"

namespace pando::manager {

namespace {

TlsOptions tls_options(const config::Settings& settings, const TlsCertificates& certificates) {
  TlsOptions options;
  options.listen = settings.server.listen_tls;
  // A query over TLS costs pando-tls some more than the worker.
  options.processes = wanted_workers(settings);
  options.limits.connections = settings.limits.tls_clients;
  options.limits.idle_ms = static_cast<std::uint32_t>(settings.limits.tls_idle.count());
  options.limits.proxies = settings.server.proxy_protocol_from;
  options.demands = certificates.demands();
  options.logging = worker_logging(settings.server.log);
  return options;
}

}  // namespace

std::vector<std::string> configure_tls(const config::Settings& settings,
                                       const TlsCertificates& certificates, TlsProcesses& tls) {
  tls.set_certificate(certificates.server_pair());
  std::vector<std::string> errors = tls.configure(tls_options(settings, certificates));
  for (const std::string& error : errors) log::error("listen_failed", "reason", error);
  return errors;
}

std::vector<systemd::InheritedDescriptor> take_tls_sockets(
    std::vector<systemd::InheritedDescriptor>& inherited, const std::vector<Endpoint>& listen) {
  const auto others = [&](const systemd::InheritedDescriptor& one) {
    const auto what = describe_socket(one.fd.get());
    return !what || what->transport != ipc::Transport::kTcp ||
           std::none_of(listen.begin(), listen.end(),
                        [&](const Endpoint& at) { return at.resolved() == what->local; });
  };
  const auto border = std::stable_partition(inherited.begin(), inherited.end(), others);
  std::vector<systemd::InheritedDescriptor> taken(std::make_move_iterator(border),
                                                  std::make_move_iterator(inherited.end()));
  inherited.erase(border, inherited.end());
  return taken;
}

}  // namespace pando::manager

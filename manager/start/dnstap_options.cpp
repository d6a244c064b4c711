#include "manager/start/dnstap_options.h"

#include <unistd.h>

#include <array>

namespace pando::manager {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

}  // namespace

std::optional<DnstapOptions> dnstap_options(const config::Server& server) {
  if (!server.dnstap) return std::nullopt;
  using Messages = config::Dnstap::Messages;
  const config::Dnstap& dnstap = *server.dnstap;
  DnstapOptions options;
  options.socket = dnstap.socket;
  options.what.on = true;
  options.what.sample = dnstap.sample;
  options.what.queries = dnstap.has(Messages::kQueries);
  options.what.responses = dnstap.has(Messages::kResponses);
  options.what.updates = dnstap.has(Messages::kUpdates);
  options.what.identity = server.identity.empty() ? host_name() : server.identity;
  options.what.version = server.version.empty() ? "pando " PANDO_VERSION : server.version;
  return options;
}

}  // namespace pando::manager

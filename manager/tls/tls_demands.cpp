#include "manager/tls/tls_demands.h"

#include <set>
#include <string>

namespace pando::manager {

namespace {

std::set<std::string> named_by_rules(const config::ZoneTable& zones) {
  std::set<std::string> names;
  for (const config::ZoneOptions& options : zones.options())
    for (const zone::Acl* rules : {&options.allow_query, &options.allow_transfer,
                                   &options.allow_update, &options.allow_notify})
      for (const zone::AclRule& rule : *rules)
        if (rule.tls) names.insert(*rule.tls);
  return names;
}

}  // namespace

std::vector<ipc::TlsDemand> demands_of(const config::Settings& settings,
                                       const TlsMaterial& material) {
  const std::set<std::string> named = named_by_rules(settings.zones);
  std::vector<ipc::TlsDemand> demands;
  for (const config::Remote& remote : settings.remotes) {
    if (!remote.tls || !named.contains(remote.name)) continue;
    ipc::TlsDemand demand{remote.name, remote.tls->hostname, {}, remote.tls->pins};
    if (!demand.hostname.empty()) {
      const auto authorities = material.authorities.find(remote.tls->ca);
      if (authorities == material.authorities.end() || !authorities->second.pem) continue;
      demand.ca = *authorities->second.pem;
    }
    demands.push_back(std::move(demand));
  }
  return demands;
}

}  // namespace pando::manager

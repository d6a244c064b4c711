#pragma once

#include <vector>

#include "config/value.h"

/// Rules about several values: checked when a section or an element is complete.
namespace pando::config {

void check_server(const Value& value, const Server& server);
void check_dnstap(const Value& value, const Dnstap& dnstap);
void check_query_log(const Value& value, const QueryLog& log);
void check_new_xdp(const Value& value, const std::vector<XdpInterface>& interfaces);
void check_store(const Value& value, const StoreSettings& store);
void check_new_key(const Value& value, const std::vector<Key>& keys);
void check_remote_tls(const Value& value, const RemoteTls& tls);
/// Also gives addresses without a port that of the remote's transport.
void complete_new_remote(const Value& value, std::vector<Remote>& remotes);
void check_new_dnssec_policy(const Value& value, const std::vector<DnssecPolicy>& policies);
void check_new_http_key(const Value& value, const std::vector<HttpKey>& keys);
void check_http(const Value& value, const Http& http);
void check_new_group(const Value& value, const std::vector<CatalogGroup>& groups);
void check_new_catalog(const Value& value, const std::vector<Catalog>& catalogs);

}  // namespace pando::config

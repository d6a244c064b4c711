#include "config/checks.h"

#include <net/if.h>

#include <algorithm>

namespace pando::config {

namespace {

/// sun_path of sockaddr_un holds 107 bytes. The longest socket name is not known here, so the limit
/// keeps some room for it.
constexpr std::size_t kMaxRunDirectoryBytes = 80;

/// sun_path without its final NUL (unix(7)).
constexpr std::size_t kMaxSocketPathBytes = 107;

/// True when an earlier element has the same `member` as the last one.
template <class T, class Member>
bool last_is_repeated(const std::vector<T>& list, Member member) {
  return std::any_of(list.begin(), list.end() - 1,
                     [&](const T& earlier) { return member(earlier) == member(list.back()); });
}

}  // namespace

void check_server(const Value& value, const Server& server) {
  if (server.listen.empty() && server.listen_tls.empty())
    value.fail("'listen' names no address, and there is no 'listen-tls' either");
  if (server.run_directory.size() > kMaxRunDirectoryBytes)
    value.fail(fmt::format("'run-directory' is longer than {} bytes, too long for its sockets",
                           kMaxRunDirectoryBytes));
}

void check_dnstap(const Value& value, const Dnstap& dnstap) {
  if (dnstap.socket.size() > kMaxSocketPathBytes)
    value.fail(fmt::format("'socket' is longer than {} bytes, which no socket's path can be",
                           kMaxSocketPathBytes));
}

void check_query_log(const Value& value, const QueryLog& log) {
  if (log.file.empty() == log.socket.empty())
    value.fail("needs either 'file' or 'socket': the lines go to one of them");
  if (log.socket.size() > kMaxSocketPathBytes)
    value.fail(fmt::format("'socket' is longer than {} bytes, which no socket's path can be",
                           kMaxSocketPathBytes));
}

/// An interface may come later, and this host may not be the server's.
void check_new_xdp(const Value& value, const std::vector<XdpInterface>& interfaces) {
  const std::string& name = interfaces.back().interface;
  if (last_is_repeated(interfaces, [](const XdpInterface& one) { return one.interface; }))
    value.fail(fmt::format("an interface '{}' is there already", name));
  else if (::if_nametoindex(name.c_str()) == 0)
    value.warn(fmt::format("this host has no interface '{}'", name));
}

void check_store(const Value& value, const StoreSettings& store) {
  if (!store.image.empty() && store.image == store.path)
    value.fail("'image' is the same file as 'path'");
  if (store.journal == store.path || store.journal == store.image)
    value.fail("'journal' is a folder; it cannot be the file of 'path' or 'image'");
}

void check_new_key(const Value& value, const std::vector<Key>& keys) {
  const Key& key = keys.back();
  if (last_is_repeated(keys, [](const Key& k) { return k.name.view(); }))
    value.fail(fmt::format("a key '{}' is there already", dns::to_text(key.name)));
  if (key.secret.empty() && key.session_file.empty())
    value.fail("'secret', 'secret-file' or 'session-file' is missing");
  if (!key.secret.empty() && !key.session_file.empty())
    value.fail("the secret of a 'session-file' is made by the manager: it has no other");
  if (key.algorithm == dns::TsigAlgorithm::kMd5 && !value.context().settings.server.md5)
    value.fail("hmac-md5 is refused unless 'server.md5' is true");
}

void check_remote_tls(const Value& value, const RemoteTls& tls) {
  if (!tls.ca.empty() && tls.hostname.empty())
    value.fail("'ca' needs 'hostname': the authority may have certified others as well");
  if (tls.certificate.empty() != tls.key.empty())
    value.fail("'certificate' and 'key' belong together");
}

void complete_new_remote(const Value& value, std::vector<Remote>& remotes) {
  Remote& remote = remotes.back();
  for (Endpoint& endpoint : remote.address)
    if (endpoint.port == kPortByTransport) endpoint.port = remote.tls ? 853 : 53;  // RFC 9103 §7.1
  if (last_is_repeated(remotes, [](const Remote& r) { return std::string_view(r.name); }))
    value.fail(fmt::format("a remote '{}' is there already", remote.name));
  if (remote.address.empty()) value.fail("'address' names no address");
  if (remote.tls && remote.name == kAnyTlsPeer)
    value.fail(fmt::format("in rules '{}' stands for any client over TLS", kAnyTlsPeer));
}

/// Anybody between a resolver and here could forge its answers otherwise.
void check_ds_check(const Value& value, const DnssecPolicy& policy) {
  if (policy.ds_check.empty()) return;
  const auto& remotes = value.context().settings.remotes;
  const auto remote = std::ranges::find(remotes, policy.ds_check, &Remote::name);
  if (remote == remotes.end())
    return value.fail(fmt::format("'ds-check': no remote is named '{}'", policy.ds_check));
  if (remote->key || !is_loopback(remote->address.front().address))
    value.fail(fmt::format("'ds-check': the remote '{}' needs a loopback address first, and no key",
                           policy.ds_check));
}

void check_new_dnssec_policy(const Value& value, const std::vector<DnssecPolicy>& policies) {
  if (last_is_repeated(policies, [](const DnssecPolicy& one) { return std::string_view(one.name); }))
    value.fail(fmt::format("a policy '{}' is there already", policies.back().name));
  if (policies.back().name == kNoDnssecPolicy)
    value.fail(fmt::format("a policy cannot have the name '{}': zones say so that they are not "
                           "signed here", kNoDnssecPolicy));
  const DnssecPolicy& policy = policies.back();
  // A fifth of the time is for the renewal itself.
  if (policy.refresh * 6 >= policy.validity * 5)
    value.fail("'refresh' is to be less than five sixths of 'validity'");
  check_ds_check(value, policy);
}

void check_new_group(const Value& value, const std::vector<CatalogGroup>& groups) {
  if (last_is_repeated(groups, [](const CatalogGroup& group) { return group.name; }))
    value.fail(fmt::format("a group '{}' is there already", groups.back().name));
}

/// A file's name has 255 octets at most, with what is added to it while it is written.
constexpr std::size_t kMaxCatalogCharacters = 200;

void check_new_catalog(const Value& value, const std::vector<Catalog>& catalogs) {
  const Catalog& catalog = catalogs.back();
  if (last_is_repeated(catalogs, [](const Catalog& c) { return c.zone.view(); }))
    value.fail(fmt::format("a catalog '{}' is there already", dns::to_text(catalog.zone)));
  const bool consumes = !catalog.produces();
  if (consumes && catalog.primaries.empty()) value.fail("a consumed catalog needs 'primaries'");
  if (consumes) return;
  if (!catalog.primaries.empty()) value.fail("a produced catalog has no 'primaries'");
  if (!catalog.groups.empty()) value.fail("a produced catalog has no 'groups'");
  if (!catalog.members_below.empty()) value.fail("a produced catalog has no 'members-below'");
  if (catalog.removal_grace != Catalog().removal_grace)
    value.fail("a produced catalog has no 'removal-grace'");
  if (dns::to_text(catalog.zone).size() > kMaxCatalogCharacters)
    value.fail(fmt::format("the name of a produced catalog is the name of a file: at most {} "
                           "characters", kMaxCatalogCharacters));
  if (dns::to_text(catalog.zone).find_first_of("/\\") != std::string::npos)
    value.fail("the name of a produced catalog is the name of a file");
}

void check_new_http_key(const Value& value, const std::vector<HttpKey>& keys) {
  if (last_is_repeated(keys, [](const HttpKey& key) { return std::string_view(key.name); }))
    value.fail(fmt::format("a key '{}' is there already", keys.back().name));
  if (keys.back().secret.empty()) value.fail("'secret' or 'secret-file' is missing");
}

void check_http(const Value& value, const Http& http) {
  if (http.listen.empty()) value.fail("'listen' names no address");
  const auto open = std::find_if(http.listen.begin(), http.listen.end(), [](const Endpoint& at) {
    return !is_loopback(at.address);
  });
  if (open == http.listen.end()) return;
  if (http.keys.empty())
    value.fail(fmt::format("'keys' are missing: {} is no loopback address", to_text(*open)));
  else if (!http.tls)
    value.warn(fmt::format("keys go to {} without TLS", to_text(*open)));
}

}  // namespace pando::config

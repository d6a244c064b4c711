#include "config/import/model/import_reasons.h"

#include <algorithm>
#include <span>

namespace pando::config {

namespace {

/// `keyword` is a whole one, or a part where a `*` at an end stands for the rest.
struct Row {
  std::string_view keyword;
  ImportReason reason;
};

constexpr ImportEffect kNone = ImportEffect::kNone;

// Clients notice these.
constexpr ImportReason kNoResolver{"pando answers for its own zones alone, without recursion"};
constexpr ImportReason kTlsEnds{"there is no TLS yet"};
constexpr ImportReason kNoViews{"views are not there"};
constexpr ImportReason kOneSource{"see server.transfer-source, one address for all"};
constexpr ImportReason kNoScripts{"there is no scripting"};
constexpr ImportReason kFilesAlone{"zones come from files and primaries alone"};
constexpr ImportReason kAddressesAndKeys{"rules know addresses and keys of clients alone"};
constexpr ImportReason kProxies{"see server.proxy-protocol-from"};
constexpr ImportReason kNoModule{"this module is not there"};
constexpr ImportReason kOther{"has no counterpart here"};

// Clients do not.
constexpr ImportReason kOfResolvers{"concerns a resolver, which pando is not", kNone};
constexpr ImportReason kOwnPlaces{"pando has folders, users and processes of its own", kNone};
constexpr ImportReason kOwnSockets{"pando chooses the options of its sockets", kNone};
constexpr ImportReason kOwnControl{"the control socket is server.run-directory; see pandoctl",
                                   kNone};
constexpr ImportReason kOwnLog{"see server.log; the log goes to standard error", kNone};
constexpr ImportReason kQueryLog{"see server.query-log", kNone};
constexpr ImportReason kOfSigners{"is about signing: see dnssec-policies", kNone};
constexpr ImportReason kOfTls{"there is no TLS yet", kNone};
constexpr ImportReason kOwnLimits{"see the section limits", kNone};
constexpr ImportReason kRefresh{"see limits.refresh", kNone};
constexpr ImportReason kWorkers{"see server.workers", kNone};
constexpr ImportReason kCookies{"cookies are always there; see server.cookies.secrets", kNone};
constexpr ImportReason kStatistics{"see pando-http and pandoctl status", kNone};
constexpr ImportReason kZoneStatistics{"see http.metrics-zones", kNone};
constexpr ImportReason kOwnApi{"pando-http has an API of its own: see the section http", kNone};
constexpr ImportReason kIxfr{"IXFR is always there", kNone};
constexpr ImportReason kHistory{"see limits.history", kNone};
constexpr ImportReason kJournal{"updates are in store.journal", kNone};
constexpr ImportReason kChecks{"see pandoctl zone check", kNone};
constexpr ImportReason kDnstap{"see server.dnstap", kNone};
constexpr ImportReason kVerify{"see zones[].verify and zones[].verify-command", kNone};
constexpr ImportReason kOwnNotify{"NOTIFY has a pace of its own", kNone};
constexpr ImportReason kOwnTransfers{"transfers have a pace and form of their own", kNone};
constexpr ImportReason kExports{"see zones[].export-interval and the page about zone files", kNone};
constexpr ImportReason kOneRrset{"ANY gets one RRset", kNone};
constexpr ImportReason kOwnOrder{"the order of records is that of the store", kNone};
constexpr ImportReason kPayload{"see server.udp-payload, one size for all", kNone};
constexpr ImportReason kAnswersSuffice{"answers are complete without it", kNone};
constexpr ImportReason kSameUnsigned{"signed requests have any key of keys", kNone};

constexpr Row kNamedRows[] = {
    // Clients notice
    {"recursion", kNoResolver},
    {"allow-recursion*", kNoResolver},
    {"allow-query-cache*", kNoResolver},
    {"forward*", kNoResolver},
    {"response-policy", kNoResolver},
    {"dns64*", kNoResolver},
    {"filter-aaaa*", kNoResolver},
    {"nxdomain-redirect", kNoResolver},
    {"deny-answer-*", kNoResolver},
    {"allow-query-on", kAddressesAndKeys},
    {"blackhole", {"is the task of a firewall: addresses of allow-query are of each zone"}},
    {"match-mapped-addresses", kOwnSockets},
    {"match-*", kNoViews},
    {"sortlist", {"answers are the same for each client"}},
    {"plugin", {"plugins are not there"}},
    {"dlz", kFilesAlone},
    {"database", kFilesAlone},
    {"initial-file", kFilesAlone},
    {"dyndb", kFilesAlone},
    {"template", {"templates of BIND are not read: write their settings into the zones"}},
    {"tkey-*", {"there is no GSS-TSIG"}},
    {"allow-new-zones",
     {"zones of 'rndc addzone' are elsewhere: 'named-nzd2nzf _default.nzd' prints them; include "
      "this text in named.conf and import again"}},
    {"catalog-zones", {"see catalogs"}},
    {"allow-proxy*", kProxies},
    {"transfer-source*", kOneSource},
    {"notify-source*", kOneSource},
    {"alt-transfer-source*", kOneSource},
    {"use-alt-transfer-source", kOneSource},
    {"server-id", {"see server.identity, a text"}},
    {"hostname", {"see server.identity, a text"}},
    {"version", {"see server.version"}},
    {"port", {"see server.listen"}},
    {"dnssec-secure-to-insecure", kOfSigners},
    // Clients do not notice
    {"dnssec-validation", kOfResolvers},
    {"dnssec-accept-expired", kOfResolvers},
    {"dnssec-must-be-secure", kOfResolvers},
    {"dnssec-lookaside", kOfResolvers},
    {"dnssec-*", kOfSigners},
    {"auto-dnssec", kOfSigners},
    {"inline-signing", kOfSigners},
    {"key-directory", kOfSigners},
    {"key-store", kOfSigners},
    {"sig-*", kOfSigners},
    {"dnskey-sig-validity", kOfSigners},
    {"update-check-ksk", kOfSigners},
    {"parental-*", kOfSigners},
    {"checkds", kOfSigners},
    {"nsec3-test-zone", kOfSigners},
    {"trust*", kOfResolvers},
    {"managed-keys*", kOfResolvers},
    {"root-*", kOfResolvers},
    {"bindkeys-file", kOfResolvers},
    {"max-cache-*", kOfResolvers},
    {"max-ncache-ttl", kOfResolvers},
    {"min-cache-ttl", kOfResolvers},
    {"min-ncache-ttl", kOfResolvers},
    {"max-stale-ttl", kOfResolvers},
    {"stale-*", kOfResolvers},
    {"prefetch", kOfResolvers},
    {"qname-minimization", kOfResolvers},
    {"query-source*", kOfResolvers},
    {"resolver-*", kOfResolvers},
    {"recursive-clients", kOfResolvers},
    {"clients-per-query", kOfResolvers},
    {"max-clients-per-query", kOfResolvers},
    {"max-recursion-*", kOfResolvers},
    {"max-query-*", kOfResolvers},
    {"max-validation*", kOfResolvers},
    {"max-rsa-exponent-size", kOfResolvers},
    {"fetch*", kOfResolvers},
    {"lame-ttl", kOfResolvers},
    {"servfail-ttl", kOfResolvers},
    {"zero-no-soa-ttl*", kOfResolvers},
    {"nta-*", kOfResolvers},
    {"validate-except", kOfResolvers},
    {"synth-from-dnssec", kOfResolvers},
    {"empty-*", kOfResolvers},
    {"disable-*", kOfResolvers},
    {"ipv4only-*", kOfResolvers},
    {"dual-stack-servers", kOfResolvers},
    {"min-delegation-ttl", kOfResolvers},
    {"request-zoneversion", kOfResolvers},
    {"attach-cache", kOfResolvers},
    {"dnsrps-*", kOfResolvers},
    {"send-cookie", kOfResolvers},
    {"request-nsid", kOfResolvers},
    {"edns-udp-size", kOfResolvers},
    {"v6-bias", kOfResolvers},
    {"cache-file", kOfResolvers},
    {"additional-from-cache", kOfResolvers},
    {"recursing-file", kOfResolvers},
    {"secroots-file", kOfResolvers},
    {"rfc2308-type1", kOfResolvers},
    {"auth-nxdomain", {"answers for names that do not exist always have the AA flag set", kNone}},
    {"require-server-cookie", kCookies},
    {"require-cookie", kCookies},
    {"cookie-*", kCookies},
    {"answer-cookie", kCookies},
    {"nocookie-udp-size", kPayload},
    {"max-udp-size", kPayload},
    {"pid-file", kOwnPlaces},
    {"session-key*", kOwnPlaces},
    {"dump-file", kOwnPlaces},
    {"memstatistics*", kOwnPlaces},
    {"lock-file", kOwnPlaces},
    {"working-directory", kOwnPlaces},
    {"new-zones-directory", kOwnPlaces},
    {"lmdb-mapsize", kOwnPlaces},
    {"geoip-directory", kOwnPlaces},
    {"random-device", kOwnPlaces},
    {"datasize", kOwnPlaces},
    {"stacksize", kOwnPlaces},
    {"coresize", kOwnPlaces},
    {"files", kOwnPlaces},
    {"reserved-sockets", kOwnPlaces},
    {"statistics-*", kStatistics},
    {"zone-statistics", kZoneStatistics},
    {"logging", kOwnLog},
    {"querylog", kQueryLog},
    {"responselog", kQueryLog},
    {"dnstap*", kDnstap},
    {"fstrm-*", kDnstap},
    {"controls", kOwnControl},
    {"tls*", kOfTls},
    {"http*", kOfTls},
    {"tcp-listen-queue", kOwnSockets},
    {"tcp-receive-buffer", kOwnSockets},
    {"tcp-send-buffer", kOwnSockets},
    {"udp-receive-buffer", kOwnSockets},
    {"udp-send-buffer", kOwnSockets},
    {"reuseport", kOwnSockets},
    {"dscp", kOwnSockets},
    {"use-v4-udp-ports", kOwnSockets},
    {"use-v6-udp-ports", kOwnSockets},
    {"use-queryport-pool", kOwnSockets},
    {"queryport-pool-*", kOwnSockets},
    {"avoid-v4-udp-ports", kOwnSockets},
    {"avoid-v6-udp-ports", kOwnSockets},
    {"automatic-interface-scan", {"an address of server.listen may come later", kNone}},
    {"interface-interval", {"an address of server.listen may come later", kNone}},
    {"tcp-*", kOwnLimits},
    {"keep-response-order", kOwnLimits},
    {"max-refresh-time", kRefresh},
    {"max-retry-time", kRefresh},
    {"min-re*", kRefresh},
    {"max-ixfr-ratio", kHistory},
    {"max-journal-size", kHistory},
    {"max-*", kOwnLimits},
    {"min-transfer-rate-in", kOwnLimits},
    {"transfers*", kOwnLimits},
    {"transfer-*", kOwnTransfers},
    {"serial-query-rate", kOwnTransfers},
    {"serial-queries", kOwnTransfers},
    {"try-tcp-refresh", kOwnTransfers},
    {"request-expire", kOwnTransfers},
    {"multi-master", kOwnTransfers},
    {"dialup", kOwnTransfers},
    {"heartbeat-interval", kOwnTransfers},
    {"update-quota", kOwnLimits},
    {"sig0*", kOwnLimits},
    {"notify-*", kOwnNotify},
    {"startup-notify-rate", kOwnNotify},
    {"suppress-initial-notify", kOwnNotify},
    {"ixfr-from-differences", kIxfr},
    {"provide-ixfr", kIxfr},
    {"request-ixfr*", kIxfr},
    {"maintain-ixfr-base", kIxfr},
    {"journal", kJournal},
    {"check-*", kChecks},
    {"serial-update-method", {"see zones[].serial-policy", kNone}},
    {"masterfile-style", kExports},
    {"flush-zones-on-shutdown", kExports},
    {"minimal-any", kOneRrset},
    {"minimal-responses", {"see server.minimal-responses, yes or no", kNone}},
    {"additional-from-auth", kAnswersSuffice},
    {"message-compression", kAnswersSuffice},
    {"no-case-compress", kAnswersSuffice},
    {"response-padding", kAnswersSuffice},
    {"preferred-glue", kAnswersSuffice},
    {"glue-cache", kAnswersSuffice},
    {"provide-zoneversion", kAnswersSuffice},
    {"*-report-channel", kAnswersSuffice},
    {"rrset-order", kOwnOrder},
};

constexpr Row kNsdRows[] = {
    {"tls-service-key", kTlsEnds},
    {"tls-auth-xfr-only", kTlsEnds},
    {"proxy-protocol-port", kProxies},
    {"allow-proxy", kProxies},
    {"outgoing-interface", kOneSource},
    {"catalog*", {"see catalogs"}},
    {"identity", {"see server.identity, a text"}},
    {"nsid", {"see server.identity, a text"}},
    {"version", {"see server.version, a text"}},
    {"xdp-interface", {"see server.xdp", kNone}},
    {"xdp-*", kOwnPlaces},
    {"username", kOwnPlaces},
    {"chroot", kOwnPlaces},
    {"pidfile", kOwnPlaces},
    {"database", kOwnPlaces},
    {"difffile", kOwnPlaces},
    {"xfrdfile", kOwnPlaces},
    {"xfrdir", kOwnPlaces},
    {"use-systemd", kOwnPlaces},
    {"debug-mode", kOwnPlaces},
    {"reload-config", kOwnPlaces},
    {"zonelistfile", kOwnPlaces},
    {"server-count", kWorkers},
    {"cpu-affinity", {"see server.cpu-affinity", kNone}},
    {"xfrd-cpu-affinity", {"see server.cpu-affinity", kNone}},
    {"server-*", {"see server.cpu-affinity", kNone}},
    {"xfrd-*", kOwnTransfers},
    {"allow-axfr-fallback", kOwnTransfers},
    {"multi-*", kOwnTransfers},
    {"notify-retry", kOwnNotify},
    {"log*", kOwnLog},
    {"verbosity", kOwnLog},
    {"remote-control", kOwnControl},
    {"control-*", kOwnControl},
    {"statistics", kStatistics},
    {"metrics-*", kStatistics},
    {"zonestats", kZoneStatistics},
    {"dnstap*", kDnstap},
    {"tls*", kOfTls},
    {"answer-cookie", kCookies},
    {"cookie-*", kCookies},
    {"ip-transparent", kOwnSockets},
    {"ip-freebind", kOwnSockets},
    {"reuseport", kOwnSockets},
    {"receive-buffer-size", kOwnSockets},
    {"send-buffer-size", kOwnSockets},
    {"tcp-mss", kOwnSockets},
    {"outgoing-tcp-mss", kOwnSockets},
    {"tcp-listen-queue", kOwnSockets},
    {"tcp-*", kOwnLimits},
    {"size-limit-xfr", kOwnLimits},
    {"max-re*", kRefresh},
    {"min-re*", kRefresh},
    {"min-expire-time", kRefresh},
    {"ipv4-edns-size", kPayload},
    {"ipv6-edns-size", kPayload},
    {"refuse-any", kOneRrset},
    {"round-robin", kOwnOrder},
    {"confine-to-zone", kAnswersSuffice},
    {"minimal-responses", {"see server.minimal-responses, yes or no", kNone}},
    {"rrl-*", {"see server.rate-limit", kNone}},
    {"drop-updates", {"see zones[].allow-update", kNone}},
    {"store-ixfr", kHistory},
    {"ixfr-*", kHistory},
    {"create-ixfr", kIxfr},
    {"zonefiles-*", kExports},
    {"verif*", kVerify},
    {"port", {"see server.listen"}},
};

constexpr Row kKnotRows[] = {
    {"listen-quic", kTlsEnds},
    {"listen-tls", kTlsEnds},
    {"tls", kTlsEnds},
    {"quic", kTlsEnds},
    {"via", kOneSource},
    {"proxy-allowlist", kProxies},
    {"automatic-acl", {"write the rules into allow-transfer"}},
    {"ddns-master", {"updates are forwarded to primaries alone"}},
    {"default-ttl", {"write $TTL into the zone's file"}},
    {"reverse-generate", {"records of other zones are not copied: write them into the file"}},
    {"include-from", {"records of other zones are not copied: write them into the file"}},
    {"zonemd-generate", {"ZONEMD records are not made: write one into the file"}},
    {"zone-db-*", kFilesAlone},
    {"catalog-*", {"see catalogs"}},
    {"xdp", {"see server.xdp", kNone}},
    {"identity", {"see server.identity, a text"}},
    {"nsid", {"see server.identity, a text"}},
    {"version", {"see server.version, a text"}},
    {"mod-rrl", {"see server.rate-limit"}},
    {"mod-cookies", kCookies},
    {"mod-stats", kStatistics},
    {"mod-probe", kDnstap},
    {"mod-dnstap", kDnstap},
    {"mod-queryacl", {"see zones[].allow-query; interfaces are no conditions"}},
    {"mod-noudp", {"answers over UDP cannot be switched off: see server.rate-limit"}},
    {"mod-*", kNoModule},
    {"user", kOwnPlaces},
    {"rundir", kOwnPlaces},
    {"pidfile", kOwnPlaces},
    {"async-start", kOwnPlaces},
    {"dbus-*", kOwnPlaces},
    {"background-workers", kOwnPlaces},
    {"adjust-threads", kOwnPlaces},
    {"database", kOwnPlaces},
    {"clear", kOwnPlaces},
    {"udp-workers", kWorkers},
    {"tcp-workers", kWorkers},
    {"socket-affinity", {"see server.cpu-affinity", kNone}},
    {"udp-max-payload*", kPayload},
    {"edns-client-subnet", kAnswersSuffice},
    {"answer-rotation", kOwnOrder},
    {"tcp-fastopen", kOwnSockets},
    {"tcp-reuseport", kOwnSockets},
    {"tcp-*", kOwnLimits},
    {"quic-*", kOfTls},
    {"cert-*", kOfTls},
    {"key-file", kOfTls},
    {"ca-file", kOfTls},
    {"remote-*", kOwnTransfers},
    {"master-pin-tolerance", kOwnTransfers},
    {"refresh-*", kRefresh},
    {"retry-*", kRefresh},
    {"expire-*", kRefresh},
    {"update-delay", kOwnTransfers},
    {"notify-delay", {"see zones[].notify-delay, at most an hour", kNone}},
    {"log", kOwnLog},
    {"control", kOwnControl},
    {"statistics", kStatistics},
    {"zone-max-size", kOwnLimits},
    {"semantic-checks", kChecks},
    {"serial-policy", {"see zones[].serial-policy", kNone}},
    {"serial-modulo", {"see zones[].serial-policy", kNone}},
    {"zonefile-*", kExports},
    {"journal-*", kJournal},
    {"ixfr-*", kIxfr},
    {"provide-ixfr", kIxfr},
    {"deleg-aware", kAnswersSuffice},
    {"external*", kVerify},
    {"dnssec-validation", kVerify},
    {"zonemd-verify", kVerify},
    {"dnssec-*", kOfSigners},
    {"policy", kOfSigners},
    {"keystore", kOfSigners},
    {"submission", kOfSigners},
    {"dnskey-sync", kOfSigners},
    {"ds-push", kOfSigners},
};

constexpr ImportReason kBackend{"concerns a backend: see the line about launch", kNone};

constexpr Row kPdnsRows[] = {
    {"allow-recursion*", kNoResolver},
    {"recursor", kNoResolver},
    {"recursive-cache-ttl", kOfResolvers},
    {"resolver", kOfResolvers},
    {"dnsupdate-require-tsig", kSameUnsigned},
    {"dnsupdate", {"see zones[].allow-update"}},
    {"allow-dnsupdate-from", {"see zones[].allow-update"}},
    {"forward-dnsupdate", {"see zones[].forward-updates"}},
    {"autosecondary", {"zones do not come by NOTIFY: see catalogs"}},
    {"superslave", {"zones do not come by NOTIFY: see catalogs"}},
    {"enable-gss-tsig", {"there is no GSS-TSIG"}},
    {"enable-lua-records", {"LUA records have no counterpart"}},
    {"lua-prequery-script", kNoScripts},
    {"lua-axfr-script", kNoScripts},
    {"lua-*", {"there is no scripting", kNone}},
    {"enable-lua-record-updates", {"there is no scripting", kNone}},
    {"expand-alias", {"ALIAS records have no counterpart"}},
    {"svc-autohints", {"write the hints into the SVCB and HTTPS records"}},
    {"views", kNoViews},
    {"bind-dnssec-db",
     {"PowerDNS signs zones with the keys in this database: 'pdnsutil list-keys' names them; "
      "transfer them instead"}},
    {"bind-*", {"concerns a backend", kNone}},
    {"query-local-address*", kOneSource},
    {"proxy-protocol-from", kProxies},
    {"proxy-protocol-maximum-size", kOwnLimits},
    {"version-string", {"see server.version, a text"}},
    {"server-id", {"see server.identity, a text"}},
    {"edns-cookie-secret", kCookies},
    {"edns-subnet-processing", kAnswersSuffice},
    {"allow-unsigned-*", kSameUnsigned},
    {"8bit-dns", kAnswersSuffice},
    {"any-to-tcp", kOneRrset},
    {"dname-processing", kAnswersSuffice},
    {"do-ipv6-additional-processing", kAnswersSuffice},
    {"naptr-additional-processing", kAnswersSuffice},
    {"resolve-across-zones", kAnswersSuffice},
    {"outgoing-axfr-expand-alias", kAnswersSuffice},
    {"upgrade-unknown-types", kAnswersSuffice},
    {"no-shuffle", kOwnOrder},
    {"api*", kOwnApi},
    {"webserver*", kOwnApi},
    {"carbon-*", kStatistics},
    {"protobuf-servers", kDnstap},
    {"log-dns-*", kQueryLog},
    {"query-logging", kQueryLog},
    {"log*", kOwnLog},
    {"disable-syslog", kOwnLog},
    {"traceback-handler", kOwnLog},
    {"quiet", kOwnLog},
    {"*cache*", kOwnPlaces},
    {"daemon", kOwnPlaces},
    {"guardian", kOwnPlaces},
    {"chroot", kOwnPlaces},
    {"setuid", kOwnPlaces},
    {"setgid", kOwnPlaces},
    {"socket-dir", kOwnPlaces},
    {"write-pid", kOwnPlaces},
    {"config-name", kOwnPlaces},
    {"no-config", kOwnPlaces},
    {"module-dir", kOwnPlaces},
    {"entropy-source", kOwnPlaces},
    {"rng", kOwnPlaces},
    {"security-poll-suffix", kOwnPlaces},
    {"consistent-backends", kOwnPlaces},
    {"ignore-unknown-settings", kOwnPlaces},
    {"workaround-11804", kOwnPlaces},
    {"overload-queue-length", kOwnPlaces},
    {"queue-limit", kOwnPlaces},
    {"receiver-threads", kWorkers},
    {"distributor-threads", kWorkers},
    {"retrieval-threads", kWorkers},
    {"control-console", kOwnControl},
    {"tcp-control-*", kOwnControl},
    {"tcp-fast-open", kOwnSockets},
    {"tcp-idle-timeout", kOwnLimits},
    {"reuseport", kOwnSockets},
    {"non-local-bind", kOwnSockets},
    {"local-address-nonexist-fail", {"an address of server.listen may come later", kNone}},
    {"local-ipv6-nonexist-fail", {"an address of server.listen may come later", kNone}},
    {"dnsproxy-udp-port-range", kOwnSockets},
    {"max-*", kOwnLimits},
    {"xfr-max-received-mbytes", kOwnLimits},
    {"axfr-*", kOwnTransfers},
    {"xfr-cycle-interval", kOwnTransfers},
    {"slave-cycle-interval", kOwnTransfers},
    {"slave-renotify", kOwnNotify},
    {"secondary-do-renotify", kOwnNotify},
    {"delay-notifications", kOwnNotify},
    {"forward-notify", kOwnNotify},
    {"prevent-self-notification", kOwnNotify},
    {"send-signed-notify", kOwnNotify},
    {"secondary-check-signature-freshness", kVerify},
    {"disable-axfr-rectify", kAnswersSuffice},
    {"default-api-rectify", kAnswersSuffice},
    {"default-soa-edit*", kOfSigners},
    {"default-ksk-*", kOfSigners},
    {"default-zsk-*", kOfSigners},
    {"default-publish-*", kOfSigners},
    {"direct-dnskey*", kOfSigners},
    {"signing-threads", kOfSigners},
    {"rrsig-expiry-extend", kOfSigners},
    {"soa-edit-spread", kOfSigners},
    {"default-*", {"is for zones that are made: see templates", kNone}},
    {"soa-*", {"is for zones that are made: see templates", kNone}},
    {"member-catalog-group", {"is for zones that are made: see templates", kNone}},
    {"gmysql*", kBackend},
    {"gpgsql*", kBackend},
    {"gsqlite3*", kBackend},
    {"godbc*", kBackend},
    {"lmdb*", kBackend},
    {"ldap*", kBackend},
    {"geoip*", kBackend},
    {"pipe*", kBackend},
    {"remote*", kBackend},
    {"lua2*", kBackend},
    {"tinydns*", kBackend},
    {"random*", kBackend},
};

bool matches(std::string_view row, std::string_view keyword) noexcept {
  if (row.starts_with('*') && row.ends_with('*'))
    return keyword.find(row.substr(1, row.size() - 2)) != std::string_view::npos;
  if (row.starts_with('*')) return keyword.ends_with(row.substr(1));
  if (row.ends_with('*')) return keyword.starts_with(row.substr(0, row.size() - 1));
  return keyword == row;
}

ImportReason find_reason(std::span<const Row> rows, std::string_view keyword) noexcept {
  const auto row = std::ranges::find_if(
      rows, [keyword](const Row& each) { return matches(each.keyword, keyword); });
  return row == rows.end() ? kOther : row->reason;
}

}  // namespace

bool is_off(std::string_view value) noexcept {
  return is_listed(" no off false none 0 ", value) || value.empty();
}

ImportReason named_reason(std::string_view keyword) noexcept {
  return find_reason(kNamedRows, keyword);
}

ImportReason nsd_reason(std::string_view keyword) noexcept {
  return find_reason(kNsdRows, keyword);
}

ImportReason knot_reason(std::string_view keyword) noexcept {
  return find_reason(kKnotRows, keyword);
}

ImportReason pdns_reason(std::string_view keyword) noexcept {
  return find_reason(kPdnsRows, keyword);
}

}  // namespace pando::config

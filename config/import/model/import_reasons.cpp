#include "config/import/model/import_reasons.h"

#include <span>
#include <utility>

namespace pando::config {

namespace {

using Reason = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kNoResolver = "pando answers for its own zones alone, without recursion";
constexpr std::string_view kOwnPlaces = "pando has folders, users and processes of its own";
constexpr std::string_view kOwnControl = "the control socket is server.run-directory; see pandoctl";
constexpr std::string_view kOwnLog = "see server.log; the log goes to standard error";
constexpr std::string_view kNoSigner = "there is no signing: keep a signer as a hidden primary";
constexpr std::string_view kNoTls = "there is no TLS yet";
constexpr std::string_view kNoCatalog = "catalogs are not taken over: see catalogs in the configuration";
constexpr std::string_view kOwnLimits = "see the section limits";
constexpr std::string_view kOther = "has no counterpart here";

/// A keyword that begins with `first` has the reason.
constexpr Reason kNamedReasons[] = {
    {"recurs", kNoResolver},          {"allow-recursion", kNoResolver},
    {"forward", kNoResolver},         {"dnssec-validation", kNoResolver},
    {"dnssec-lookaside", kNoResolver}, {"trust", kNoResolver},
    {"managed-keys", kNoResolver},    {"max-cache", kNoResolver},
    {"allow-query-cache", kNoResolver}, {"prefetch", kNoResolver},
    {"qname-minimization", kNoResolver}, {"empty-zones", kNoResolver},
    {"query-source", kNoResolver},    {"response-policy", kNoResolver},
    {"max-ncache", kNoResolver},      {"resolver", kNoResolver},
    {"root-", kNoResolver},           {"dns64", kNoResolver},
    {"stale-", kNoResolver},          {"filter-aaaa", kNoResolver},
    {"bindkeys", kNoResolver},        {"disable-empty", kNoResolver},
    {"sortlist", kNoResolver},        {"rrset-order", kNoResolver},
    {"auth-nxdomain", "answers for names that do not exist always have the AA flag set"},
    {"dnssec", kNoSigner},            {"auto-dnssec", kNoSigner},
    {"inline-signing", kNoSigner},    {"key-directory", kNoSigner},
    {"sig-", kNoSigner},              {"update-check-ksk", kNoSigner},
    {"parental", kNoSigner},          {"checkds", kNoSigner},
    {"pid-file", kOwnPlaces},         {"session-key", kOwnPlaces},
    {"dump-file", kOwnPlaces},        {"statistics-", "see pando-http and pandoctl status"},
    {"memstatistics", kOwnPlaces},    {"lock-file", kOwnPlaces},
    {"working-directory", kOwnPlaces}, {"tkey-", "there is no GSS-TSIG"},
    {"logging", kOwnLog},             {"querylog", kOwnLog},
    {"controls", kOwnControl},        {"tls", kNoTls},
    {"http", kNoTls},                 {"catalog-zones", kNoCatalog},
    {"tcp-", kOwnLimits},             {"transfers-", kOwnLimits},
    {"max-", kOwnLimits},             {"min-re", "see limits.refresh"},
    {"interface-interval", "an address of server.listen may appear on the host later"},
    {"cookie", "see server.cookies.secrets"},
    {"transfer-source", "see server.transfer-source"},
    {"notify-source", "see server.transfer-source"},
    {"ixfr-from-differences", "IXFR of edited files is always there"},
    {"provide-ixfr", "IXFR is always there"},
    {"request-ixfr", "IXFR is always there"},
    {"journal", "updates are in store.journal"},
    {"check-", "see pandoctl zone check"},
    {"zone-statistics", "see http.metrics-zones"},
    {"serial-update-method", "see zones[].serial-policy"},
    {"dlz", "zones come from files and primaries alone"},
    {"database", "zones come from files and primaries alone"},
    {"dyndb", "zones come from files and primaries alone"},
    {"template", "templates of BIND are not read: write their settings into the zones"},
    {"match-", "views are not there"},
};

constexpr Reason kSettingReasons[] = {
    {"username", kOwnPlaces},      {"user", kOwnPlaces},
    {"setuid", kOwnPlaces},        {"setgid", kOwnPlaces},
    {"chroot", kOwnPlaces},        {"pidfile", kOwnPlaces},
    {"rundir", kOwnPlaces},        {"daemon", kOwnPlaces},
    {"guardian", kOwnPlaces},      {"socket-dir", kOwnPlaces},
    {"database", kOwnPlaces},      {"xfrd", kOwnPlaces},
    {"server-count", "see server.workers"},
    {"receiver-threads", "see server.workers"},
    {"udp-workers", "see server.workers"},
    {"tcp-workers", "see server.workers"},
    {"background-workers", kOwnPlaces},
    {"log", kOwnLog},              {"verbosity", kOwnLog},
    {"target", kOwnLog},           {"query-logging", kOwnLog},
    {"quiet", kOwnLog},            {"traceback", kOwnLog},
    {"remote-control", kOwnControl}, {"control", kOwnControl},
    {"api", "pando-http has an API of its own: see the section http"},
    {"webserver", "pando-http has an API of its own: see the section http"},
    {"statistics", "see pando-http and pandoctl status"},
    {"zone-stats", "see http.metrics-zones"},
    {"tls", kNoTls},               {"quic", kNoTls},
    {"dnssec", kNoSigner},         {"policy", kNoSigner},
    {"keystore", kNoSigner},       {"submission", kNoSigner},
    {"default-ksk", kNoSigner},    {"default-zsk", kNoSigner},
    {"catalog", kNoCatalog},       {"tcp-", kOwnLimits},
    {"max-", kOwnLimits},          {"size-limit", kOwnLimits},
    {"cookie", "see server.cookies.secrets"},
    {"answer-cookie", "see server.cookies.secrets"},
    {"journal", "updates are in store.journal"},
    {"zonefile-", "see zones[].export-interval and the page about zone files"},
    {"semantic-checks", "see pandoctl zone check"},
    {"ixfr", "IXFR is always there"},
    {"create-ixfr", "IXFR is always there"},
    {"store-ixfr", "see limits.history"},
    {"serial-policy", "see zones[].serial-policy"},
    {"outgoing-interface", "see server.transfer-source"},
    {"via", "see server.transfer-source"},
    {"query-local-address", "see server.transfer-source"},
    {"recurs", kNoResolver},       {"allow-recursion", kNoResolver},
    {"resolver", kNoResolver},     {"dnstap", "see server.dnstap"},
    {"mod-", "modules are not there"},
    {"module", "modules are not there"},
    {"lua-", "there is no scripting"},
    {"proxy-protocol", "see server.proxy-protocol-from"},
};

std::string_view find_reason(std::span<const Reason> reasons, std::string_view keyword) noexcept {
  for (const auto& [first, reason] : reasons)
    if (keyword.starts_with(first)) return reason;
  return kOther;
}

}  // namespace

std::string_view named_reason(std::string_view keyword) noexcept {
  return find_reason(kNamedReasons, keyword);
}

std::string_view setting_reason(std::string_view keyword) noexcept {
  return find_reason(kSettingReasons, keyword);
}

}  // namespace pando::config

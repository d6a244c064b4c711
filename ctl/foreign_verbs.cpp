#include "ctl/foreign_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pando::ctl {

namespace {

constexpr std::string_view kNoSigner =
    "the server signs nothing: 'zone sign' signs a file, or another server signs, as hidden primary";
constexpr std::string_view kNoResolver = "there is no recursion here, and no cache";
constexpr std::string_view kNoDatabase = "zones are in files and the store, not in a database";
constexpr std::string_view kNoViews = "there are no views here";
constexpr std::string_view kKeysInFile =
    "keys are in the section 'keys' of the configuration; then 'pandoctl reload'";
constexpr std::string_view kCookiesInFile =
    "secrets of cookies are in server.cookies of the configuration; then 'pandoctl reload'";
constexpr std::string_view kFileIsEdited =
    "the configuration is a file: edit it, then 'pandoctl config diff' and 'pandoctl reload'";
constexpr std::string_view kNoAutoprimaries =
    "zones do not come by NOTIFY: see 'catalogs' in the configuration";
constexpr std::string_view kNoTests = "there is no such test here";
constexpr std::string_view kSetThenCommit =
    "in a transaction: 'zone begin' before, 'zone commit' after";

constexpr ForeignVerb kRows[] = {
    // The server
    {"status", "status", ""},
    {"serverpid", "status", ""},
    {"null", "ready", ""},
    {"start", "", "'systemctl start pando-manager' starts the server, or pando-manager itself"},
    {"stop|halt", "stop", ""},
    {"reload", "reload", "some zones alone: 'pandoctl zone reload NAME...'"},
    {"reconfig|repattern", "reload", ""},
    {"stats|stats_noreset", "status --all", "rates: 'pandoctl top'"},
    {"zone-stats", "top", "it has the busiest zones; see http.metrics-zones for counters"},
    {"reset-stats", "", "counters are never set back: a program takes differences"},
    {"verbosity|trace", "log level LEVEL", ""},
    {"notrace", "log level info", ""},
    {"querylog|responselog", "",
     "server.query-log of the configuration switches it on and off; then 'pandoctl reload'"},
    {"log_reopen|closelogs", "",
     "the log is standard error, and the query log is opened anew when its file was renamed"},
    {"dnstap|dnstap-reopen", "", "see server.dnstap; a lost collector is connected to again"},
    {"scan", "",
     "addresses that the host gets later are opened by themselves; see 'pandoctl status'"},
    {"tcp-timeouts", "", "see limits.tcp-idle in the configuration; then 'pandoctl reload'"},
    {"memprof", "store stats", "of the memory of all zones"},
    {"showconf|conf-read|conf-get|conf-list|conf-export", "config show", ""},
    {"conf-check", "config check", ""},
    {"conf-diff", "config diff", ""},
    {"conf-commit", "reload", ""},
    {"conf-begin|conf-abort|conf-set|conf-unset|conf-init|conf-import", "", kFileIsEdited},
    {"print_tsig|update_tsig|add_tsig|assoc_tsig|del_tsig", "", kKeysInFile},
    {"tsigkey list|list-tsig-keys|tsigkey generate|generate-tsig-key|tsigkey import|"
     "import-tsig-key|tsigkey delete|delete-tsig-key",
     "", kKeysInFile},
    {"tsigkey activate|activate-tsig-key|tsigkey deactivate|deactivate-tsig-key",
     "zone configure NAME allow-transfer VALUE", "or primaries: remotes have keys"},
    {"add_cookie_secret|drop_cookie_secret|activate_cookie_secret|print_cookie_secrets", "",
     kCookiesInFile},
    // Resolvers
    {"dumpdb|fetchlimit|flush|flushname|flushtree|managed-keys|nta|recursing|secroots|serve-stale|"
     "validation",
     "", kNoResolver},
    // Zones
    {"zone list-all|list-all-zones", "zone list", ""},
    {"zonestatus|zone-status|zone show|show-zone", "zone status NAME", ""},
    {"showzone|metadata get|get-meta", "config show NAME", ""},
    {"addzone|zone create|create-zone", "zone add NAME --file FILE",
     "or with '--template NAME', '--primary REMOTE'"},
    {"zone create-secondary|create-secondary-zone", "zone add NAME --primary REMOTE", ""},
    {"addzones", "zone add -", "which reads a JSON array of zones"},
    {"zone load|load-zone", "zone add NAME --content FILE", ""},
    {"delzone|delzones|zone delete|delete-zone", "zone remove NAME...", ""},
    {"changezone|modzone", "zone configure NAME KEY VALUE", ""},
    {"zone set-kind|set-kind|metadata set|set-meta|metadata add|add-meta",
     "zone configure NAME KEY VALUE", "keys are those of 'zones' in the configuration"},
    {"zone change-primary|change-secondary-zone-primary", "zone configure NAME primaries VALUE",
     ""},
    {"zone set-account|set-account", "",
     "zones have no account; keys of pando-http name their zones"},
    {"zone-reload", "zone reload NAME...", ""},
    {"notify|zone-notify", "zone notify NAME", ""},
    {"refresh|transfer|zone-refresh", "zone refresh NAME", ""},
    {"retransfer|force_transfer|zone-retransfer", "zone retransfer NAME", ""},
    {"freeze|zone-freeze", "zone freeze NAME", "zone files may be edited without it"},
    {"thaw|unfreeze|zone-thaw", "zone thaw NAME", ""},
    {"zone-xfr-freeze|zone-xfr-thaw", "zone configure NAME allow-transfer []",
     "or 'zone freeze NAME' against changes"},
    {"sync|write|zone-flush", "zone export NAME", ""},
    {"zone-backup", "backup FOLDER", ""},
    {"zone-restore", "restore FOLDER", ""},
    {"zone-check|zone-validate|zone check|check-zone|test-zone|zone zonemd-verify-file|"
     "zonemd-verify-file",
     "zone check NAME FILE", "zones with faults: 'pandoctl zone status'"},
    {"zone check-all|check-all-zones|test-all-zones", "config check --zones", ""},
    {"zone-purge", "zone purge NAME", "for a zone that has left the configuration"},
    {"catalog list-members|list-member-zones", "zone list", "members are zones like others"},
    {"catalog set|set-catalog|zone set-option|set-option|zone set-options-json|set-options-json",
     "zone configure NAME catalog CATALOG", "and the key catalog-group"},
    // Records
    {"zone-read|zone-get|zone list|list-zone", "zone read NAME", ""},
    {"zone-begin|zone edit|edit-zone", "zone begin NAME",
     "then 'zone set', 'zone unset', 'zone commit'"},
    {"zone-set|rrset add|add-record", "zone set NAME OWNER [TTL] TYPE DATA", kSetThenCommit},
    {"zone-unset|rrset delete|delete-rrset", "zone unset NAME OWNER [TYPE [DATA]]", kSetThenCommit},
    {"rrset replace|replace-rrset", "zone unset NAME OWNER TYPE",
     "then 'zone set', between 'zone begin' and 'zone commit'"},
    {"zone-commit", "zone commit NAME", ""},
    {"zone-abort", "zone abort NAME", ""},
    {"zone-diff", "zone diff NAME", ""},
    {"zone-serial-set|zone increase-serial|increase-serial", "",
     "each commit raises the serial; a transaction may set the SOA record itself"},
    {"zone clear|clear-zone", "zone unset NAME OWNER", "of each owner, in a transaction"},
    {"zone copy", "zone export NAME --to FILE", "then 'zone add NEW --content FILE'"},
    {"rrset hash|hash-zone-record", "", "hashes of NSEC3 are those of the signed zone"},
    {"rrset add-comment|rrset list-comments", "", "records have no comments"},
    // Signing
    {"dnssec|sign|signing|loadkeys|skr|zone-sign|zone-keys-load|zone-key-rollover|"
     "zone-ksk-submitted",
     "", kNoSigner},
    {"zone secure|secure-zone|zone secure-all|secure-all-zones|zone dnssec-disable|disable-dnssec|"
     "zone list-keys|list-keys|zone set-nsec3|set-nsec3|zone unset-nsec3|unset-nsec3|"
     "zone set-publish-cdnskey|set-publish-cdnskey|zone unset-publish-cdnskey|"
     "unset-publish-cdnskey|zone set-publish-cds|set-publish-cds|zone unset-publish-cds|"
     "unset-publish-cds",
     "", kNoSigner},
    {"zone activate-key|activate-zone-key|zone deactivate-key|deactivate-zone-key|zone add-key|"
     "add-zone-key|zone remove-key|remove-zone-key|zone publish-key|publish-zone-key|"
     "zone unpublish-key|unpublish-zone-key|zone import-key|import-zone-key|zone import-key-pem|"
     "import-zone-key-pem|zone export-key|export-zone-key|zone export-key-pem|export-zone-key-pem",
     "", kNoSigner},
    {"zone generate-key|generate-zone-key", "dnssec key make ZONE", ""},
    {"zone export-dnskey|export-zone-dnskey", "zone read NAME @ DNSKEY",
     "of a key file: 'dnssec key show FILE'"},
    {"zone export-ds|export-zone-ds", "dnssec key ds FILE", "of a key file"},
    {"zone set-presigned|set-presigned|zone unset-presigned|unset-presigned", "",
     "a signed zone is served as it is, without a setting"},
    {"zone rectify|rectify-zone|zone rectify-all|rectify-all-zones", "",
     "zones need no rectification here"},
    {"hsm|hsm assign|hsm create-key", "", kNoSigner},
    // Others of pdnsutil
    {"autoprimary add|add-autoprimary|autoprimary list|list-autoprimaries|autoprimary remove|"
     "remove-autoprimary",
     "", kNoAutoprimaries},
    {"network list|list-networks|network set|set-network|view list|list-view|view list-all|"
     "list-views|view add-zone|view-add-zone|view del-zone|view-del-zone",
     "", kNoViews},
    {"backend-cmd|backend-lookup|b2b-migrate|bench-db|create-bind-db|lmdb-get-backend-version|"
     "test-schema",
     "", kNoDatabase},
    {"hash-password", "", "keys of pando-http have secrets: see http.keys in the configuration"},
    {"ipdecrypt|ipencrypt|raw-lua-from-content|list-algorithms|test-algorithm|test-algorithms|"
     "test-speed|verify-crypto",
     "", kNoTests},
};

/// Other names of pdnsutil for its kinds of things.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSynonyms{{
    {"record", "rrset"},
    {"meta", "metadata"},
    {"meta-data", "metadata"},
    {"tsig", "tsigkey"},
    {"tsig-key", "tsigkey"},
    {"views", "view"},
}};

bool has_verb(std::string_view verbs, std::string_view wanted) {
  while (!verbs.empty()) {
    const std::string_view verb = verbs.substr(0, verbs.find('|'));
    if (verb == wanted) return true;
    verbs.remove_prefix(std::min(verb.size() + 1, verbs.size()));
  }
  return false;
}

const ForeignVerb* find_row(std::string_view verb) {
  const auto* row = std::ranges::find_if(
      kRows, [verb](const ForeignVerb& each) { return has_verb(each.verbs, verb); });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

std::span<const ForeignVerb> foreign_verbs() noexcept { return kRows; }

const ForeignVerb* find_foreign_verb(const std::vector<std::string>& words) {
  if (words.empty()) return nullptr;
  std::string first = words.front();
  for (const auto& [other, name] : kSynonyms)
    if (first == other) first = name;
  if (words.size() > 1)
    if (const ForeignVerb* row = find_row(first + ' ' + words[1])) return row;
  return find_row(first);
}

std::string hint_of(const ForeignVerb& row) {
  if (row.ours.empty()) return std::string(row.note);
  const std::string command = fmt::format("here it is 'pandoctl {}'", row.ours);
  return row.note.empty() ? command : fmt::format("{} ({})", command, row.note);
}

}  // namespace pando::ctl

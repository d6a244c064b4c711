#include "config/import/named/named_signing.h"

#include <algorithm>

#include "config/settings/values.h"

namespace pando::config {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

bool is_affirmed(std::string_view word) { return word == "yes" || word == "true" || word == "1"; }

/// Times of a policy that it does not tell (the `default` policy of BIND 9.16 to 9.20).
constexpr seconds kPolicyValidity = hours(14 * 24), kPolicyRefresh = hours(5 * 24);
constexpr seconds kPolicyPropagation = minutes(5), kPolicyParentTtl = hours(24);
/// `sig-validity-interval`, in days.
constexpr std::uint64_t kOldValidityDays = 30, kMaxOldDays = 3660;

/// The first part of the names of BIND's key files: "Kexample.org.+". BIND writes octets that could
/// mislead as `%XX`.
std::string key_file_prefix(const dns::Name& zone) {
  std::string name = "K";
  const std::string text = dns::to_text(zone.folded());
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                          std::string_view(".-_").find(c) != std::string_view::npos;
    name += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name + "+";
}

std::string key_import_of(const NamedSigningScope& scope, const dns::Name& zone) {
  const std::string_view folder =
      scope.directory == nullptr ? std::string_view() : scope.directory->word(1);
  std::string keys(scope.key_directory == nullptr ? std::string_view()
                                                  : scope.key_directory->word(1));
  keys = keys.empty() ? std::string(folder) : join_path(folder, keys);
  const std::string prefix = shell_word(join_path(keys, key_file_prefix(zone)));
  return fmt::format("pandoctl dnssec import {} {}", shell_word(dns::to_text(zone)),
                     prefix.empty() ? "FILE..." : prefix + "*.private");
}

std::optional<seconds> time_of(const NamedBlock* block, std::string_view keyword) {
  const NamedStatement* statement = find_statement(block, keyword);
  return statement == nullptr ? std::nullopt : foreign_time(statement->word(1));
}

/// `csk lifetime unlimited algorithm NAME [BITS];`, and `ksk`, `zsk`.
void take_keys(const NamedStatement& keys, ForeignSigning& signing) {
  if (keys.block() == nullptr) return;
  for (const NamedStatement& key : *keys.block()) {
    for (std::size_t i = 1; i + 1 < key.words.size(); ++i) {
      const std::string word = key.lower(i);
      if (word == "algorithm" &&
          (signing.algorithm.empty() || signing_algorithm(key.word(i + 1)) == 0))
        signing.algorithm = key.word(i + 1);
      if (word == "lifetime" && key.lower(i + 1) != "unlimited" &&
          foreign_time(key.word(i + 1)) != seconds(0))
        signing.rolls = fmt::format("{} lifetime {}", key.word(0), key.word(i + 1));
      if (word == "key-store")
        signing.obstacle = fmt::format("and its keys are in the key store {}", key.word(i + 1));
    }
  }
}

void take_denial_of(const NamedStatement& statement, ForeignSigning& signing) {
  signing.nsec3 = Nsec3Use::kOn;
  for (std::size_t i = 1; i + 1 < statement.words.size(); ++i)
    if (statement.lower(i) == "optout" && is_affirmed(statement.lower(i + 1)))
      signing.nsec3 = Nsec3Use::kOptOut;
}

void take_policy(const NamedBlock* block, ForeignSigning& signing) {
  signing.validity = time_of(block, "signatures-validity").value_or(kPolicyValidity);
  signing.refresh = time_of(block, "signatures-refresh").value_or(kPolicyRefresh);
  signing.propagation = time_of(block, "zone-propagation-delay").value_or(kPolicyPropagation);
  signing.parent_ds_ttl = time_of(block, "parent-ds-ttl").value_or(kPolicyParentTtl);
  if (const NamedStatement* keys = find_statement(block, "keys")) take_keys(*keys, signing);
  if (const NamedStatement* denial = find_statement(block, "nsec3param"))
    take_denial_of(*denial, signing);
  if (const NamedStatement* digests = find_statement(block, "cds-digest-types")) {
    const NamedBlock* types = digests->block();
    signing.cds = types != nullptr && !types->empty() && types->front().word(0) != "none";
  }
  if (const NamedStatement* offline = find_statement(block, "offline-ksk");
      offline != nullptr && is_affirmed(offline->lower(1)))
    signing.obstacle = "and its KSK is not on this host (offline-ksk)";
}

}  // namespace

std::string NamedSigningScope::statement() const {
  if (policy != nullptr && policy->lower(1) != "none")
    return fmt::format("dnssec-policy {}", policy->word(1));
  if (automatic != nullptr && automatic->lower(1) != "off")
    return fmt::format("auto-dnssec {}", automatic->word(1));
  if (in_line != nullptr && is_affirmed(in_line->lower(1))) return "inline-signing yes";
  return {};
}

bool NamedSigning::take(const NamedStatement& statement) {
  if (statement.word(0) != "dnssec-policy" || statement.block() == nullptr) return false;
  policies_.insert_or_assign(std::string(statement.word(1)), statement);
  return true;
}

ForeignSigning NamedSigning::of(const NamedSigningScope& scope, const dns::Name& zone) const {
  ForeignSigning signing{.server = "BIND", .how = scope.statement(), .policy_name = "bind"};
  signing.key_import = key_import_of(scope, zone);
  if (scope.policy == nullptr || scope.policy->lower(1) == "none") {
    const std::string_view written =
        scope.validity == nullptr ? std::string_view() : scope.validity->word(1);
    const auto days = parse_number(written, 1, kMaxOldDays);
    signing.validity = hours(24 * (days ? *days : kOldValidityDays));
    signing.refresh = *signing.validity / 4;
    return signing;
  }
  const std::string_view name = scope.policy->word(1);
  signing.policy_name = fmt::format("bind-{}", name);
  const auto found = policies_.find(name);
  if (name == "insecure")
    signing.obstacle = "which takes the signatures away: wait for its end, then say 'none' there";
  else if (found == policies_.end() && name != "default")
    signing.obstacle = "and its policy is not here";
  else
    take_policy(found == policies_.end() ? nullptr : found->second.block(), signing);
  return signing;
}

}  // namespace pando::config

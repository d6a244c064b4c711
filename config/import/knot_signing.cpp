#include "config/import/knot_signing.h"

namespace pando::config {

namespace {

bool is_switched_on(std::string_view word) {
  return word == "on" || word == "true" || word == "yes";
}

std::optional<std::chrono::seconds> time_in(const SettingSection& section, std::string_view key) {
  return section.find(key) == nullptr ? std::nullopt : foreign_time(section.text(key));
}

/// The settings by which Knot rolls keys. It does so with ZSKs unless told otherwise.
std::string rolls_of(const SettingSection& policy) {
  if (is_switched_on(policy.text("manual"))) return {};
  for (const char* key : {"ksk-lifetime", "zsk-lifetime"})
    if (const auto lifetime = time_in(policy, key); lifetime && lifetime->count() != 0)
      return fmt::format("{}: {}", key, policy.text(key));
  const bool has_zsk = !is_switched_on(policy.text("single-type-signing"));
  return has_zsk && policy.find("zsk-lifetime") == nullptr ? "zsk-lifetime: 30d" : "";
}

std::string obstacle_in(const SettingSection& policy) {
  if (is_switched_on(policy.text("offline-ksk")))
    return "and its KSK is not on this host (offline-ksk)";
  if (policy.text("dnskey-management") == "incremental")
    return "and other servers sign it as well (dnskey-management)";
  if (policy.text("cds-cdnskey-publish") == "delete-dnssec")
    return "and asks the parent to remove its DS records (cds-cdnskey-publish)";
  return {};
}

}  // namespace

bool KnotSigning::take(const SettingSection& section) {
  if (section.settings.empty()) return false;
  if (section.kind == "policy")
    policies_.insert_or_assign(std::string(section.text("id")), section);
  else if (section.kind == "keystore")
    keystores_.insert_or_assign(std::string(section.text("id")), section);
  else if (section.kind != "database")
    return false;
  if (section.kind != "database") return true;
  if (const auto storage = section.text("storage"); !storage.empty()) storage_ = storage;
  if (const auto keys = section.text("kasp-db"); !keys.empty()) kasp_db_ = keys;
  return false;  // its other databases are no concern of the signer
}

std::string KnotSigning::key_import_of(std::string_view keystore, const dns::Name& zone) const {
  const auto store = keystores_.find(keystore);
  const std::string_view below =
      store == keystores_.end() ? std::string_view() : store->second.text("config");
  const std::string kasp_db = join_path(storage_, kasp_db_);
  const std::string folder = shell_word(join_path(kasp_db, below.empty() ? "keys" : below));
  const std::string name = shell_word(dns::to_text(zone));
  const std::string database = shell_word(kasp_db);
  if (folder.empty() || database.empty())
    return fmt::format("pandoctl dnssec import {} FILE...", name);
  return fmt::format(
      "(cd {} && pandoctl dnssec import {} $(keymgr -D {} {} list | awk '{{print ($3 == \"ZSK\" ? "
      "\"--zsk \" : \"\") $1 \".pem\"}}'))",
      folder, name, database, name);
}

ForeignSigning KnotSigning::of(std::string_view policy, const dns::Name& zone) const {
  const std::string_view name = policy.empty() ? "default" : policy;
  ForeignSigning signing{.server = "Knot",
                         .how = "dnssec-signing",
                         .policy_name = fmt::format("knot-{}", name)};
  const auto found = policies_.find(name);
  if (found == policies_.end() && name != "default") {
    signing.obstacle = fmt::format("and its policy {} is not here", name);
    return signing;
  }
  static const SettingSection kNone;
  const SettingSection& settings = found == policies_.end() ? kNone : found->second;
  const std::string_view keystore =
      settings.find("keystore") == nullptr ? "default" : settings.text("keystore");
  if (const auto store = keystores_.find(keystore);
      store != keystores_.end() && store->second.text("backend") == "pkcs11")
    signing.obstacle = fmt::format("and its keys are in the keystore {} (pkcs11)", keystore);
  if (const std::string obstacle = obstacle_in(settings); !obstacle.empty())
    signing.obstacle = obstacle;
  signing.algorithm = settings.text("algorithm");
  signing.rolls = rolls_of(settings);
  if (is_switched_on(settings.text("nsec3")))
    signing.nsec3 = is_switched_on(settings.text("nsec3-opt-out")) ? Nsec3Use::kOptOut
                                                                   : Nsec3Use::kOn;
  signing.validity = time_in(settings, "rrsig-lifetime");
  signing.refresh = time_in(settings, "rrsig-refresh");
  signing.propagation = time_in(settings, "propagation-delay");
  signing.cds = settings.text("cds-cdnskey-publish") != "none";
  signing.key_import = key_import_of(keystore, zone);
  return signing;
}

}  // namespace pando::config

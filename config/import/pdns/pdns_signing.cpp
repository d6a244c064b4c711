#include "config/import/pdns/pdns_signing.h"

#include <algorithm>

#include "config/settings/values.h"
#include "dns/dnssec/key_file.h"

namespace pando::config {

namespace {

constexpr std::string_view kKeyFolder = "zone-keys/";

bool is_active_word(std::string_view text) {
  return text == "1" || text == "t" || lower_case(text) == "true";
}

/// A zone's key, with the flags of its row.
Result<dns::SigningKey> pdns_key_of(std::string_view text, std::string_view flags) {
  constexpr std::uint64_t kMaxFlags = 0xFFFF;
  const auto number = parse_number(flags, 0, kMaxFlags);
  if (!number || (*number & ~std::uint64_t{dns::kSepFlag}) != dns::kZoneKeyFlag)
    return fail(Errc::kInvalid, "the flags of the key are neither 256 nor 257");
  auto parsed = dns::parse_key_file({text, "the key"}, std::nullopt);
  if (!parsed) return pass(parsed);
  return parsed->key.with_flags(static_cast<std::uint16_t>(*number));
}

}  // namespace

/// A key that is not active signs nothing. If it is published, it is one of a roll.
void PdnsSigning::take_key(const SqlRow& row) {
  const std::string_view active = row.text("active");
  if (active.empty() || is_active_word(active))
    keys_[std::string(row.text("domain_id"))].push_back(
        {row.at(), std::string(row.text("flags")), std::string(row.text("content"))});
  else
    report_.note(row.at(), "cryptokeys", "a key that is not active is left out");
}

bool PdnsSigning::take_metadata(const SqlRow& row) {
  if (!row.text("kind").starts_with("NSEC3")) return false;
  // `1 FLAGS ITERATIONS SALT` (RFC 5155 §4.2): the flag 1 is opt-out.
  if (row.text("kind") == "NSEC3PARAM")
    nsec3_.insert_or_assign(
        std::string(row.text("domain_id")),
        row.text("content").starts_with("1 1 ") ? Nsec3Use::kOptOut : Nsec3Use::kOn);
  return true;
}

bool PdnsSigning::signs(std::string_view id) const { return keys_.contains(std::string(id)); }

/// The name of the key's file; empty, with an obstacle, if it cannot be used.
std::string PdnsSigning::make_file(const Key& key, const dns::Name& zone,
                                   ForeignSigning& signing) {
  auto made = pdns_key_of(key.text, key.flags);
  auto text = made ? dns::key_file_text(*made, zone) : Result<std::string>(pass(made));
  if (!text) {
    signing.obstacle = fmt::format("and line {} has a key that does not sign here: {}", key.at.line,
                                   text.error().text);
    return {};
  }
  signing.algorithm = std::to_string(made->algorithm());
  std::string name = fmt::format("{}{}.pem", kKeyFolder, dns::key_file_stem(*made, zone));
  key_files_.push_back({name, std::move(*text)});
  return name;
}

ForeignSigning PdnsSigning::of(std::string_view id, const dns::Name& zone) {
  ForeignSigning signing{.server = "PowerDNS", .how = "cryptokeys", .policy_name = "pdns"};
  if (const auto use = nsec3_.find(std::string(id)); use != nsec3_.end())
    signing.nsec3 = use->second;
  const std::size_t files_before = key_files_.size();
  signing.key_import = fmt::format("pandoctl dnssec import {}", shell_word(dns::to_text(zone)));
  for (const Key& key : keys_[std::string(id)]) {
    const std::string file = make_file(key, zone, signing);
    if (!file.empty()) signing.key_import += " " + shell_word(file);
  }
  // A zone that is left out has no files.
  if (!is_possible(signing)) key_files_.resize(files_before);
  return signing;
}

}  // namespace pando::config

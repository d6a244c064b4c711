#include "manager/signing/policy_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dns/dnssec/derived_types.h"
#include "dns/dnssec/dnskey.h"
#include "manager/signing/keys/zone_keys.h"

namespace pando::manager {

namespace {

using dns::RRType;

/// Whether the zone has DNSKEY records, and `keys` has the key of each.
bool is_signed_by(const zone::ZoneView& zone, const std::vector<dns::SigningKey>& keys) {
  const zone::RRsetView published = zone.apex_record().find(RRType::kDNSKEY);
  bool is_ours = published.count() != 0;
  published.for_each_rdata([&](ByteView rdata) {
    is_ours = is_ours && std::ranges::any_of(keys, [&](const dns::SigningKey& key) {
      return std::ranges::equal(key.dnskey(), rdata);
    });
  });
  return is_ours;
}

/// Counts a zone's signatures and what signing leaves out.
class SourceCount {
 public:
  SourceCount(const zone::ZoneView& zone, PolicyCheck& check)
      : zone_(zone), check_(check), is_ours_(is_signed_by(zone, check.keys)) {}

  void run() {
    auto cursor = zone_.begin();
    while (const zone::RecordView record = cursor.next()) take(record);
  }

 private:
  void take(const zone::RecordView& record) {
    const dns::Name owner = zone_.owner_of(record);
    const bool is_apex = owner == zone_.apex();
    bool is_source = is_apex;
    std::uint64_t sets = 0, delegation_sets = 0;
    record.for_each_rrset([&](const zone::RRsetView& set) {
      if (!is_ours_) check_.left_out += set.signature_count();
      if (set.count() == 0) return;
      if (dns::is_dropped_by_signing(set.type(), is_apex)) {
        if (!is_ours_ || !dns::is_derived(set.type(), is_apex)) check_.left_out += set.count();
        return;
      }
      is_source = true;
      ++sets;
      delegation_sets += set.type() == RRType::kDS ? 1 : 0;
      check_.max_ttl = std::max<std::uint64_t>(check_.max_ttl, set.ttl().seconds);
    });
    if (!is_source || is_occluded(owner)) return;
    const bool is_cut = record.has_ns() && !is_apex;
    if (is_cut || record.has_dname()) barrier_ = owner;
    constexpr std::uint64_t kNsec = 1, kDnskey = 1;
    check_.signatures += kNsec + (is_cut ? delegation_sets : sets) + (is_apex ? kDnskey : 0);
  }

  /// Names below a delegation or DNAME follow it directly in canonical order.
  bool is_occluded(const dns::Name& owner) {
    if (barrier_ && owner.view().is_at_or_below(*barrier_)) return true;
    barrier_.reset();
    return false;
  }

  const zone::ZoneView& zone_;
  PolicyCheck& check_;
  bool is_ours_;  // the signer's records in it were made by the keys of its folder
  std::optional<dns::Name> barrier_;
};

/// Keys that the zone publishes and the folder lacks.
void check_published_keys(const zone::ZoneView& zone, PolicyCheck& check) {
  zone.apex_record().find(RRType::kDNSKEY).for_each_rdata([&](ByteView rdata) {
    const bool is_ours = std::ranges::any_of(check.keys, [&](const dns::SigningKey& key) {
      return std::ranges::equal(key.dnskey(), rdata);
    });
    if (!is_ours)
      check.problems.push_back(fmt::format(
          "the zone has a DNSKEY record with the tag {}, and its key is not in the folder: "
          "'pandoctl dnssec import' takes it there",
          dns::key_tag(rdata)));
  });
}

}  // namespace

PolicyCheck check_policy(Files& files, const std::string& journal, const zone::ZoneView& zone,
                         const config::DnssecPolicy& policy) {
  PolicyCheck check;
  auto keys = read_zone_keys(files, journal, zone.apex());
  if (keys)
    check.keys = std::move(*keys);
  else
    check.problems.push_back(keys.error().text);
  SourceCount(zone, check).run();
  check_published_keys(zone, check);
  const bool is_signed = zone.denial() != zone::Denial::kUnsigned;
  check.makes_key = keys && check.keys.empty() && !is_signed && check.problems.empty();
  if (keys && check.keys.empty() && is_signed && check.problems.empty())
    check.problems.emplace_back("the zone is signed by keys that are not in the folder");
  if (check.makes_key && !policy.make_keys) {
    check.makes_key = false;
    check.problems.emplace_back(
        "the zone has no keys, and the policy makes none ('make-keys'): 'pandoctl dnssec import' "
        "gives it some");
  }
  const auto refresh =
      std::chrono::duration_cast<std::chrono::seconds>(policy.refresh_time()).count();
  if (check.max_ttl > static_cast<std::uint64_t>(refresh))
    check.notes.push_back(
        fmt::format("the longest TTL, {} s, is longer than 'refresh', {} s: validators keep such "
                    "records for a shorter time (RFC 4035 section 5.3.3)",
                    check.max_ttl, refresh));
  return check;
}

}  // namespace pando::manager

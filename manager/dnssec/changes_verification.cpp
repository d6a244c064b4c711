#include "manager/dnssec/changes_verification.h"

#include "dns/dnssec/rrsig.h"
#include "manager/dnssec/denial_check.h"
#include "manager/dnssec/signature_check.h"
#include "manager/dnssec/touched_names.h"
#include "zone/dnssec/zonemd_check.h"

namespace pando::manager {

namespace {

/// Limits of one thread's work: a few seconds. Those of an UPDATE are for the commit thread.
constexpr ZoneKeys::Limits kChangeLimits{20'000, std::size_t{256} << 20};
constexpr std::size_t kChangeLooks = 20 * ChangedZone::kMaxLooks;

bool is_signed_by_keys(const zone::ZoneView& zone) {
  return zone && zone.loaded() &&
         zone.apex_record().find(dns::RRType::kDNSKEY).count() != 0;
}

std::uint64_t count_records(std::span<const zone::Changeset> changes) {
  std::uint64_t records = 0;
  for (const zone::Changeset& one : changes) records += one.removed.size() + one.added.size();
  return records;
}

void touch(const zone::ZoneView& after, std::span<const zone::Changeset> changes,
           TouchedNames& touched) {
  std::optional<dns::NameView> last;
  const auto touch_all = [&](const std::vector<zone::Record>& records) {
    for (const zone::Record& record : records) {
      if (last && *last == record.owner.view()) continue;
      last = record.owner.view();
      touched.set_now(*last, after);
    }
  };
  for (const zone::Changeset& one : changes) {
    touch_all(one.removed);
    touch_all(one.added);
  }
}

/// The first end of the signatures that changed names have now. Each is good: SignatureCheck saw
/// all of them.
void note_ends(const ChangedZone& zone, std::uint64_t now, zone::Verification& result) {
  for (const auto& [name, node] : zone.changed()) {
    const ChangedZone::RRset* signatures = node->find(dns::RRType::kRRSIG);
    if (signatures == nullptr) continue;
    for (const Bytes& rdata : signatures->rdatas) {
      const auto rrsig = dns::parse_rrsig(rdata);
      if (!rrsig) continue;
      const std::uint64_t end = dns::whole_time(rrsig->expiration, now);
      if (result.first_end && result.first_end->at <= end) continue;
      result.first_end = zone::SignatureEnd{node->owner, rrsig->covered, end};
    }
  }
}

}  // namespace

std::optional<zone::Verification> verify_changes(const zone::ZoneView& before,
                                                 const zone::ZoneView& after,
                                                 std::span<const zone::Changeset> changes,
                                                 std::uint64_t now) {
  if (!is_signed_by_keys(before) || !is_signed_by_keys(after)) return std::nullopt;
  if (count_records(changes) > kMaxChangedRecords) return std::nullopt;
  TouchedNames touched(before);
  touch(after, changes, touched);
  ChangedZone zone(before, touched, kChangeLooks);
  if (check_denial(zone) || SignatureCheck(zone, now, kChangeLimits).run() || zone.exhausted())
    return std::nullopt;
  if (!zone::check_zonemd(after).empty()) return std::nullopt;
  zone::Verification result;
  result.is_signed = true;
  note_ends(zone, now, result);
  return result;
}

}  // namespace pando::manager

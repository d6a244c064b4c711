#include "manager/change/received_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dns/dnssec/derived_types.h"
#include "dns/rdata/rdata.h"
#include "manager/commit/zone_diff.h"
#include "manager/dnssec/touched_names.h"
#include "manager/journal/record/record_changes.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

using dns::RRType;

const zone::Record* soa_of(const std::vector<zone::Record>& records) {
  const auto found = std::ranges::find(records, RRType::kSOA, &zone::Record::type);
  return found == records.end() ? nullptr : &*found;
}

zone::Record with_serial(zone::Record soa, dns::Serial serial) {
  set_soa_serial(soa.rdata, serial);
  return soa;
}

config::SerialPolicy policy_of(const ChangeSigner& keys) {
  return keys.signer ? keys.signer->options().serial_policy : config::SerialPolicy::kIncrement;
}

/// One changeset of a primary while it becomes one of ours.
class Receiving {
 public:
  Receiving(const zone::ZoneView& before, const zone::Changeset& received,
            const ChangeSigner& keys)
      : before_(before), received_(received), keys_(keys), source_(before) {}

  Result<ReceivedSource> run() {
    result_.changes.zone = received_.zone;
    result_.changes.author = received_.author;
    if (auto taken = take_soa(); !taken) return pass(taken);
    if (auto taken = take_removed(); !taken) return pass(taken);
    if (auto taken = take_added(); !taken) return pass(taken);
    return std::move(result_);
  }

 private:
  /// The changes have to begin at the very SOA record that our zone has, but for its serial.
  Status take_soa() {
    const zone::Record* const from = soa_of(received_.removed);
    const zone::Record* const to = soa_of(received_.added);
    auto ours = soa_record(before_);
    if (from == nullptr || to == nullptr || !ours)
      return fail(Errc::kInvalid, "the changes lack a SOA record");
    const dns::Serial known = *zone::primary_serial(before_);
    const zone::Record expected = with_serial(*ours, known);
    if (dns::compare_rdata_canonical(RRType::kSOA, expected.rdata, from->rdata) != 0)
      return fail(Errc::kInvalid,
                  "the changes begin at another SOA record than that of serial {}, which the zone "
                  "has",
                  known.value);
    const dns::Serial primary = soa_serial(to->rdata);
    const dns::Serial next = own_serial(primary, before_.serial(), policy_of(keys_), keys_.now);
    if (keys_.signer || !(next == primary)) result_.primary_serial = primary;
    result_.changes.removed.push_back(std::move(*ours));
    result_.changes.added.push_back(with_serial(*to, next));
    return {};
  }

  Status take_removed() {
    std::uint64_t missing = 0;
    for (const zone::Record& record : received_.removed) {
      if (is_left_out(record)) continue;
      if (!is_served(record)) ++missing;
      removed_.emplace(record.owner, record.type, record.rdata);
      result_.changes.removed.push_back(record);
    }
    if (missing == 0) return {};
    return fail(Errc::kInvalid, "{} records to remove are not there", missing);
  }

  Status take_added() {
    std::uint64_t present = 0;
    for (const zone::Record& record : received_.added) {
      if (!keys_.signer && record.type == RRType::kRRSIG)
        return fail(Errc::kInvalid, "the primary signs the zone");
      if (is_left_out(record)) continue;
      if (is_served(record) && !removed_.contains({record.owner, record.type, record.rdata}))
        ++present;
      result_.changes.added.push_back(record);
    }
    if (present == 0) return {};
    return fail(Errc::kInvalid, "{} records to add are there already", present);
  }

  /// The SOA has been taken; of a zone that is signed here the signer makes the derived records.
  bool is_left_out(const zone::Record& record) {
    if (record.type == RRType::kSOA) return true;
    const bool is_apex = record.owner.view() == before_.apex();
    if (!keys_.signer || !dns::is_dropped_by_signing(record.type, is_apex)) return false;
    ++result_.left_out;
    return true;
  }

  bool is_served(const zone::Record& record) {
    const TouchedNames::Node& node = source_.at(record.owner);
    const auto set = node.before.find(record.type);
    return set != node.before.end() &&
           TouchedNames::contains(set->second, record.type, record.rdata);
  }

  const zone::ZoneView& before_;
  const zone::Changeset& received_;
  const ChangeSigner& keys_;
  TouchedNames source_;
  std::set<RecordKey, RecordKeyLess> removed_;
  ReceivedSource result_;
};

bool has_digest(const std::vector<zone::Record>& records, dns::NameView apex) {
  return std::ranges::any_of(records, [&](const zone::Record& record) {
    return record.type == RRType::kZONEMD && record.owner.view() == apex;
  });
}

}  // namespace

dns::Serial own_serial(dns::Serial primary, dns::Serial served, config::SerialPolicy policy,
                       std::uint64_t now) noexcept {
  return primary.ahead_of(served) ? primary : next_serial(served, policy, now);
}

Error signed_without_policy() {
  return {Errc::kUnsupported,
          "the zone is signed here and has no policy any more: give it 'dnssec' again, until "
          "'pandoctl dnssec unsign' has taken its signatures away"};
}

Result<ReceivedSource> received_source(const zone::ZoneView& before,
                                       const zone::Changeset& received, const ChangeSigner& keys,
                                       bool checks_digest) {
  if (!keys.signer && before.denial() != zone::Denial::kUnsigned)
    return tl::unexpected(signed_without_policy());
  if (checks_digest && has_digest(received.added, before.apex()))
    return fail(Errc::kInvalid, "only a whole zone can be compared with its ZONEMD record");
  return Receiving(before, received, keys).run();
}

Result<std::optional<ComputedChange>> received_difference(const zone::ZoneView& served,
                                                          const zone::ZoneView& received,
                                                          const ChangeSigner& keys,
                                                          std::uint64_t most) {
  auto changes = diff_zones(served, received, most, Compared::kSource);
  if (!changes) return std::nullopt;
  auto before = soa_record(served);
  auto after = soa_record(received);
  if (!before || !after) return fail(Errc::kInvalid, "the zone would have no SOA");
  const dns::Serial next =
      own_serial(received.serial(), served.serial(), policy_of(keys), keys.now);
  changes->removed.push_back(std::move(*before));
  changes->added.push_back(with_serial(std::move(*after), next));
  ComputedChange computed;
  computed.made.push_back(std::move(*changes));
  computed.primary_serial = received.serial();
  return std::optional(std::move(computed));
}

}  // namespace pando::manager

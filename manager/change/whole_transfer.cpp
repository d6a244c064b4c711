#include "manager/change/whole_transfer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "dns/dnssec/derived_types.h"
#include "manager/change/built_signing.h"
#include "manager/change/received_source.h"
#include "manager/commit/zone_diff.h"
#include "zone/dnssec/zonemd_check.h"

namespace pando::manager {

namespace {

/// The same limit as for zones that are not signed here (secondary/transfer_in.cpp).
constexpr std::uint64_t kMaxChangedRecords = 100'000;

std::uint64_t max_changed(const zone::ZoneView& served) {
  return std::min(served.record_count() / 2 + 10, kMaxChangedRecords);
}

/// Computes the difference again for each version, because renewed signatures move the zone.
ZoneChange::Compute difference_to(shm::Store& store, dns::Name apex, ChangeSigner keys,
                                  std::shared_ptr<const WholeZone> data) {
  return [&store, apex = std::move(apex), keys = std::move(keys),
          data = std::move(data)](const zone::StoreView& version) -> Result<ComputedChange> {
    const zone::ZoneView served = version.zone_at(apex);
    if (!served || !served.loaded()) return fail(Errc::kNotFound, "zone is gone");
    const BuiltView view(store, apex, *data->built);
    const auto received = view.zone();
    if (!received) return pass(received);
    auto difference = received_difference(served, *received, keys, UINT64_MAX);
    if (!difference) return pass(difference);
    return std::move(**difference);
  };
}

/// False: too much is new.
Result<bool> make_changeset(shm::Store& store, ZoneChange& change, const TransferTarget& target,
                            const zone::ZoneView& received) {
  auto difference =
      received_difference(target.served, received, target.keys, max_changed(target.served));
  if (!difference) return pass(difference);
  if (!*difference) return false;
  auto data = std::make_shared<WholeZone>(std::move(std::get<WholeZone>(change.content)));
  change.is_whole = false;
  change.records = UINT64_MAX;  // a builder thread walks over both zones
  change.content = difference_to(store, change.zone, target.keys, std::move(data));
  return true;
}

std::uint64_t count_derived(const zone::ZoneView& zone) {
  std::uint64_t count = 0;
  auto cursor = zone.begin();
  while (const zone::RecordView record = cursor.next()) {
    const bool is_apex = zone.owner_of(record) == zone.apex();
    record.for_each_rrset([&](const zone::RRsetView& set) {
      count += set.signature_count();
      if (dns::is_dropped_by_signing(set.type(), is_apex)) count += set.count();
    });
  }
  return count;
}

/// A zone that is not signed has the primary's serial, as soon as that is ahead of ours.
Status take_unsigned(shm::Store& store, const dns::Name& apex, WholeZone& data,
                     const TransferTarget& target, const zone::ZoneView& received) {
  const bool is_signed = received.denial() != zone::Denial::kUnsigned;
  if (!target.has_policy && is_signed) return {};
  const bool has_data = target.served && target.served.loaded();
  if (has_data && target.served.denial() != zone::Denial::kUnsigned)
    return tl::unexpected(signed_without_policy());
  const dns::Serial primary = received.serial();
  const dns::Serial serial =
      has_data ? own_serial(primary, target.served.serial(), config::SerialPolicy::kIncrement, 0)
               : primary;
  if (!target.has_policy && serial == primary) return {};
  if (auto taken = take_source(store, apex, data, serial); !taken) return taken;
  if (!(serial == primary)) data.source_serial = data.primary_serial = primary;
  return {};
}

}  // namespace

Result<std::uint64_t> take_whole_transfer(shm::Store& store, ZoneChange& change,
                                          const TransferTarget& target) {
  auto& data = std::get<WholeZone>(change.content);
  const dns::Name& apex = change.zone;
  const BuiltView view(store, apex, *data.built);
  const auto received = view.zone();
  if (!received) return pass(received);
  if (change.checks_digest)
    if (const std::string fault = zone::check_zonemd(*received); !fault.empty())
      return fail(Errc::kInvalid, "refused, as it is not valid: {}", fault);
  if (!target.keys.signer) {
    if (auto taken = take_unsigned(store, apex, data, target, *received); !taken)
      return pass(taken);
    return 0;
  }
  // A second try, because the zone moved, has data that are signed already.
  const bool is_first_try = !data.primary_serial;
  if (is_first_try && change.may_be_changeset && target.is_signed_here) {
    const std::uint64_t left_out = count_derived(*received);
    auto made = make_changeset(store, change, target, *received);
    if (!made) return pass(made);
    if (*made) return left_out;
  }
  const dns::Serial primary = data.primary_serial.value_or(received->serial());
  const auto served = target.served && target.served.loaded()
                          ? std::optional(target.served.serial())
                          : std::nullopt;
  auto left_out =
      sign_built_zone(store, apex, data, target.keys, served, target.is_signed_here);
  if (left_out) data.primary_serial = primary;
  return left_out;
}

}  // namespace pando::manager

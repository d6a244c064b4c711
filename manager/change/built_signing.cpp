#include "manager/change/built_signing.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/crash_point.h"
#include "manager/commit/zone_diff.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/support/soa.h"
#include "zone/builder/zone_builder.h"
#include "zone/dnssec/zone_signing.h"
#include "zone/dnssec/zone_verification.h"

namespace pando::manager {

namespace {

/// Zones of fewer names are signed in the caller's thread alone: many of them come at a time, and a
/// thread costs more than some hundred signatures.
constexpr std::uint64_t kNamesForThreads = 10'000;
constexpr unsigned kMaxThreads = 8;
constexpr unsigned kOneIn = 100;
constexpr const char* kNewKey =
    "its folder has a key that is not in the zone's DNSKEY records: resolvers that have these in "
    "their caches would take its signatures for bogus, so take it out";

unsigned threads_for(const zone::ZoneView& source) {
  if (source.name_count() < kNamesForThreads) return 0;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMaxThreads);
}

/// A secondary zone that is signed for the first time gets serials of its own: so far it has the
/// primary's.
std::optional<dns::Serial> first_primary_serial(const zone::ZoneView& served) {
  const bool is_primarys = is_secondary(served) && served.denial() == zone::Denial::kUnsigned;
  if (const auto known = zone::primary_serial(served); known || !is_primarys) return known;
  return served.serial();
}

struct SignedZone {
  shm::Transaction transaction;
  std::shared_ptr<zone::BuiltZone> built;
  std::uint64_t left_out = 0;
};

Result<SignedZone> sign_whole(shm::Store& store, const zone::ZoneView& source,
                              const ChangeSigner& signer, dns::Serial serial,
                              shm::Reserve reserve) {
  const ZoneSigner& keys = *signer.signer;
  zone::ZoneSigningOptions options;
  options.times = keys.spread_times(signer.now);
  options.serial = serial;
  options.parent_request = keys.options().parent_request;
  options.threads = threads_for(source);
  options.denial = keys.options().denial;
  SignedZone result{store.begin_private(), {}};
  result.transaction.use_reserve(reserve);
  const dns::Name apex(source.apex());
  zone::ZoneBuilder builder(apex, result.transaction);
  auto done = zone::sign_zone(source, keys.keys(), options, builder);
  if (!done) return pass(done);
  result.left_out = done->dropped;
  auto built = builder.finish();
  if (!built) return pass(built);
  result.built = std::move(*built);
  const BuiltView view(store, apex, *result.built);
  const auto zone = view.zone();
  if (!zone) return pass(zone);
  const auto found = zone::verify_zone(*zone, {signer.now, options.threads, kOneIn});
  if (!found.ok())
    return fail(Errc::kCorrupt, "the signed zone would not be valid: {}", found.faults.front());
  return result;
}

}  // namespace

Result<std::uint64_t> sign_built_zone(shm::Store& store, const dns::Name& apex, WholeZone& data,
                                      const ChangeSigner& signer,
                                      std::optional<dns::Serial> served, bool is_signed_here) {
  const BuiltView source(store, apex, *data.built);
  const auto zone = source.zone();
  if (!zone) return pass(zone);
  if (!is_signed_here && signer.signer->is_signed_by_others(*zone))
    return fail(Errc::kInvalid,
                "the zone's DNSKEY records are not those of its keys here: put the key files into "
                "its folder, or take the records out");
  if (!is_signed_here && signer.signer->has_new_keys(*zone)) return fail(Errc::kInvalid, kNewKey);
  const dns::Serial serial = zone->serial();
  const bool is_ahead = served && serial.ahead_of(*served);
  const dns::Serial base = served && !is_ahead ? *served : serial;
  const dns::Serial next =
      is_ahead ? serial : next_serial(base, signer.signer->options().serial_policy, signer.now);
  auto done = sign_whole(store, *zone, signer, next, data.built_in.reserve_use());
  if (!done) return pass(done);
  data.built = std::move(done->built);
  data.built_in = std::move(done->transaction);
  data.source_serial = serial;
  return done->left_out;
}

Result<WholeZone> sign_served_zone(shm::Store& store, const zone::ZoneView& served,
                                   const ChangeSigner& signer) {
  if (signer.signer->is_signed_by_others(served))
    return fail(Errc::kInvalid,
                "the zone is signed by keys whose files are not in its folder: put them there");
  if (signer.signer->has_new_keys(served)) return fail(Errc::kInvalid, kNewKey);
  const dns::Serial next =
      next_serial(served.serial(), signer.signer->options().serial_policy, signer.now);
  auto done = sign_whole(store, served, signer, next, shm::Reserve::kHalf);
  if (!done) return pass(done);
  crash_point("served-zone-signed");
  WholeZone data{std::move(done->built), std::move(done->transaction), served.source()};
  data.source_serial = served.serial();
  data.primary_serial = first_primary_serial(served);
  return data;
}

Result<WholeZone> unsign_served_zone(shm::Store& store, const zone::ZoneView& served,
                                     dns::Serial serial) {
  shm::Transaction transaction = store.begin_private();
  transaction.use_reserve(shm::Reserve::kHalf);
  zone::ZoneBuilder builder(dns::Name(served.apex()), transaction);
  if (auto done = zone::copy_source(served, serial, builder); !done) return pass(done);
  auto built = builder.finish();
  if (!built) return pass(built);
  WholeZone data{std::move(*built), std::move(transaction), served.source()};
  data.source_serial = served.serial();
  data.primary_serial = zone::primary_serial(served);
  return data;
}

Status take_source(shm::Store& store, const dns::Name& apex, WholeZone& data, dns::Serial serial) {
  const BuiltView source(store, apex, *data.built);
  const auto zone = source.zone();
  if (!zone) return pass(zone);
  shm::Transaction transaction = store.begin_private();
  transaction.use_reserve(data.built_in.reserve_use());
  zone::ZoneBuilder builder(apex, transaction);
  if (auto done = zone::copy_source(*zone, serial, builder); !done) return done;
  auto built = builder.finish();
  if (!built) return pass(built);
  data.built = std::move(*built);
  data.built_in = std::move(transaction);
  return {};
}

}  // namespace pando::manager

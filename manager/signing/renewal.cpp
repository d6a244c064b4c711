#include "manager/signing/renewal.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "dns/dnssec/rrsig.h"
#include "ipc/log.h"
#include "manager/commit/zone_diff.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

/// A signature is renewed in the last three sevenths of its period: with the usual 14 days, every
/// copy of the zone has signatures for six days at least.
constexpr std::uint64_t kSevenths = 3;
/// The zones are looked at so many times in that part of the period.
constexpr std::uint64_t kLooks = 12;

std::uint64_t renewed_before(const ZoneSigner& signer, std::uint64_t now) {
  return now + signer.options().validity * kSevenths / 7;
}

/// Names of one version: bounds its size, and the time for which the zone's updates may wait.
std::size_t max_names(const ZoneSigner& signer) { return signer.is_slow() ? 500 : 5'000; }

/// Both SOA records, for the next serial: signatures alone are no change of a zone's source.
Result<ComputedChange> next_soa(const zone::StoreView& version, const dns::Name& name,
                                const ZoneSigner& signer, std::uint64_t now) {
  const zone::ZoneView zone = version.zone_at(name);
  auto soa = soa_record(zone);
  if (!soa) return fail(Errc::kNotFound, "{} is not loaded", dns::to_text(name));
  zone::Record next = *soa;
  set_soa_serial(next.rdata, next_serial(zone.serial(), signer.options().serial_policy, now));
  return ComputedChange::of(zone::Changeset{name, {std::move(*soa)}, {std::move(next)}});
}

}  // namespace

std::vector<dns::Name> names_with_old_signatures(const zone::ZoneView& zone, std::uint64_t before,
                                                 std::uint64_t now, std::size_t most) {
  constexpr std::size_t kExpirationAt = 6, kInceptionAt = 10;  // behind the type that is covered
  std::vector<dns::Name> names;
  auto cursor = zone.begin();
  while (names.size() < most) {
    const zone::RecordView record = cursor.next();
    if (!record) break;
    bool is_old = false;
    record.for_each_rrset([&](const zone::RRsetView& set) {
      set.for_each_signature([&](ByteView rest) {
        if (rest.size() < kInceptionAt + 4) return;
        const auto end = dns::whole_time(load_be32(rest.data() + kExpirationAt), now);
        const auto start = dns::whole_time(load_be32(rest.data() + kInceptionAt), now);
        is_old = is_old || end < before || start > now;
      });
    });
    if (is_old) names.push_back(zone.owner_of(record));
  }
  return names;
}

/// One look at a zone, used by one thread at a time.
struct SignatureRenewal::Work {
  dns::Name zone;
  ZoneSignerPtr signer{};
  std::uint64_t now = 0;
  shm::SlotTable::OwnPin pin{};
  zone::ZoneView served{};  // pinned
  std::vector<dns::Name> names{};
  bool holds_updates = false;
};

void SignatureRenewal::check(std::chrono::steady_clock::time_point now) {
  if (zones_.empty() || at_work_ || !waiting_.empty() || now < next_look_) return;
  std::uint64_t shortest = UINT64_MAX;
  zones_.for_each_ready([&](const dns::Name& zone, const ZoneSigner& signer) {
    waiting_.push_back(zone);
    shortest = std::min(shortest, signer.options().validity);
  });
  const std::chrono::seconds pause(std::max<std::uint64_t>(shortest / 7 * kSevenths / kLooks, 1));
  next_look_ = now + std::min<std::chrono::seconds>(pause, kMaxPause);
  start_next();
}

void SignatureRenewal::check_zone(const dns::Name& zone) {
  waiting_.push_back(zone);
  start_next();
}

void SignatureRenewal::start_next() {
  while (!at_work_ && !waiting_.empty() && !road_.stopping()) {
    auto work = std::make_shared<Work>();
    work->zone = std::move(waiting_.front());
    waiting_.pop_front();
    const zone::StoreView version = committer_.current();
    work->served = version.zone_at(work->zone);
    auto signer = zones_.signer_of(work->zone);
    if (!signer || !*signer || !(*signer)->has_signed(work->served)) continue;
    work->signer = std::move(*signer);
    work->now = zones_.now();
    if (ZoneSigner::is_clock_behind(work->served, work->now)) {
      log::error("signatures_not_renewed", "zone", dns::to_text(work->zone), "reason",
                 "the host's clock lies behind the zone's signatures");
      continue;
    }
    work->pin = slots_.pin_own(version.version());
    at_work_ = true;
    look(work);
  }
}

void SignatureRenewal::look(const WorkPtr& work) {
  asio::post(pool_, [this, work] {
    work->names = names_with_old_signatures(work->served, renewed_before(*work->signer, work->now),
                                            work->now, max_names(*work->signer));
    work->pin = {};
    asio::post(io_, [this, work] {
      if (road_.stopping()) return;
      work->names.empty() ? ended(work, false) : submit(work);
    });
  });
}

void SignatureRenewal::submit(const WorkPtr& work) {
  ZoneChange change;
  change.zone = work->zone;
  change.source = ChangeSource::kSigning;
  change.records = road_.max_on_commit_thread() + 1;  // a pool thread signs
  change.renewed = work->names;
  change.renewed_before = renewed_before(*work->signer, work->now);
  change.again = [this, work] {
    if (!std::exchange(work->holds_updates, true)) holds_.hold(work->zone);
  };
  change.content = [work](const zone::StoreView& version) {
    return next_soa(version, work->zone, *work->signer, work->now);
  };
  change.done = [this, work](const Result<ChangeOutcome>& outcome) {
    if (outcome) {
      renewed_ += work->names.size();
      log::info("signatures_renewed", "zone", dns::to_text(work->zone), "serial",
                outcome->applied.to.value, "names", work->names.size());
    } else {
      log::error("signatures_not_renewed", "zone", dns::to_text(work->zone), "reason",
                 outcome.error().text);
    }
    ended(work, outcome && work->names.size() == max_names(*work->signer));
  };
  road_.submit(std::move(change));
}

void SignatureRenewal::ended(const WorkPtr& work, bool has_more) {
  at_work_ = false;
  if (work->holds_updates) holds_.release(work->zone);
  if (has_more) waiting_.push_back(work->zone);
  start_next();
}

}  // namespace pando::manager

#include "manager/signing/renewal.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/commit/zone_diff.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

/// The zones are looked at so many times in the part of the period in which they are renewed.
constexpr std::uint64_t kLooks = 24;

/// Names of one version: bounds its size, and the time for which the zone's updates may wait.
std::size_t max_names(const ZoneSigner& signer) { return signer.is_slow() ? 500 : 5'000; }

/// Pause between two looks at a zone whose policy has this `refresh`, in seconds.
std::chrono::seconds pause_of(std::uint64_t refresh) {
  const std::chrono::seconds pause(std::max<std::uint64_t>(refresh / kLooks, 1));
  return std::min<std::chrono::seconds>(pause, SignatureRenewal::kMaxPause);
}

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

/// One look at a zone, used by one thread at a time.
struct SignatureRenewal::Work {
  dns::Name zone;
  ZoneSignerPtr signer{};
  std::uint64_t now = 0;
  shm::SlotTable::OwnPin pin{};
  zone::ZoneView served{};  // pinned
  SignatureLook found{};
};

void SignatureRenewal::check(std::chrono::steady_clock::time_point now) {
  if (zones_.empty() || at_work_ || !waiting_.empty() || now < next_look_) return;
  std::uint64_t shortest = UINT64_MAX;
  zones_.for_each_ready([&](const dns::Name& zone, const ZoneSigner& signer) {
    wait(zone);
    shortest = std::min(shortest, signer.options().refresh);
  });
  next_look_ = now + pause_of(shortest);
  start_next();
}

/// The keys may have become usable after the last look at all zones, and the zone's signatures may
/// not last until the next one.
void SignatureRenewal::check_zone(const dns::Name& zone) {
  wait(zone);
  if (const auto signer = zones_.signer_of(zone); signer && *signer)
    next_look_ = std::min(next_look_, std::chrono::steady_clock::now() +
                                          pause_of((*signer)->options().refresh));
  start_next();
}

void SignatureRenewal::wait(const dns::Name& zone) {
  if (known_waiting_.insert(dns::folded_key(zone)).second) waiting_.push_back(zone);
}

void SignatureRenewal::published(const dns::Name& zone) {
  const auto seen = denial_ttls_.find(dns::folded_key(zone));
  if (seen == denial_ttls_.end()) return;
  const zone::ZoneView served = committer_.current().zone_at(zone);
  if (served && served.loaded() && !(denial_ttl_of(served) == seen->second)) check_zone(zone);
}

void SignatureRenewal::start_next() {
  while (!at_work_ && !waiting_.empty() && !road_.stopping()) {
    auto work = std::make_shared<Work>();
    work->zone = std::move(waiting_.front());
    waiting_.pop_front();
    known_waiting_.erase(dns::folded_key(work->zone));
    const zone::StoreView version = committer_.current();
    work->served = version.zone_at(work->zone);
    auto signer = zones_.signer_of(work->zone);
    if (!signer || !*signer || !(*signer)->has_signed(work->served)) continue;
    work->signer = std::move(*signer);
    work->now = zones_.now();
    denial_ttls_.insert_or_assign(dns::folded_key(work->zone), denial_ttl_of(work->served));
    work->pin = slots_.pin_own(version.version());
    at_work_ = true;
    look(work);
  }
}

void SignatureRenewal::look(const WorkPtr& work) {
  asio::post(pool_, [this, work] {
    work->found = look_at_signatures(
        work->served, *work->signer,
        {work->now, work->signer->renewed_before(work->now), max_names(*work->signer)});
    work->pin = {};
    asio::post(io_, [this, work] {
      if (road_.stopping()) return;
      looked_(work->zone, work->signer, work->found);
      work->found.due.empty() ? ended(work, false) : submit(work);
    });
  });
}

void SignatureRenewal::submit(const WorkPtr& work) {
  ZoneChange change;
  change.zone = work->zone;
  change.source = ChangeSource::kSigning;
  change.records = road_.max_on_commit_thread() + 1;  // a builder thread signs
  change.renewed = work->found.due;
  change.renewed_before = work->signer->renewed_before(work->now);
  change.content = [work](const zone::StoreView& version) {
    return next_soa(version, work->zone, *work->signer, work->now);
  };
  change.done = [this, work](const Result<ChangeOutcome>& outcome) {
    if (outcome) {
      renewed_ += work->found.due.size();
      log::info("signatures_renewed", "zone", dns::to_text(work->zone), "serial",
                outcome->applied.to.value, "names", work->found.due.size());
    } else {
      log::error("signatures_not_renewed", "zone", dns::to_text(work->zone), "reason",
                 outcome.error().text);
    }
    // A version with other records of the keys is looked at, because a stage may wait for it.
    const bool is_cut_short = work->found.due.size() == max_names(*work->signer);
    const bool has_new_keys = work->found.due.front() == work->zone;
    ended(work, outcome && (is_cut_short || has_new_keys));
  };
  road_.submit(std::move(change));
}

void SignatureRenewal::ended(const WorkPtr& work, bool has_more) {
  at_work_ = false;
  if (has_more) wait(work->zone);
  start_next();
}

}  // namespace pando::manager

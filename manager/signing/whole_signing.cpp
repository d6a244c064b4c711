#include "manager/signing/whole_signing.h"

#include <asio/post.hpp>
#include <utility>

#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/change/built_signing.h"
#include "manager/support/soa.h"

namespace pando::manager {

/// One zone that is being signed or unsigned, used by one thread at a time.
struct WholeSigning::Work {
  dns::Name zone;
  ChangeSigner signer{};
  shm::SlotTable::OwnPin pin{};
  zone::ZoneView served{};  // pinned
  dns::Serial serial{};
  zone::ZoneFileInfo source{};
  Result<WholeZone> made = fail(Errc::kNotFound, "not signed yet");
  bool is_wanted = false;
  bool is_done = false;
  bool holds_updates = false;
  bool has_moved = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

namespace {

/// Whether both would sign a zone in the same way. What the parent is asked is changed later.
bool signs_alike(const ZoneSignerPtr& a, const ZoneSignerPtr& b) {
  if (a == b || !a || !b) return a == b;
  ZoneSigner::Options others = b->options();
  others.parent_request = a->options().parent_request;
  return a->options() == others && a->has_keys_of(*b);
}

}  // namespace

/// None: the zone is as it is to be.
std::optional<WholeSigning::Wanted> WholeSigning::wanted_of(const dns::Name& zone) const {
  const zone::ZoneView served = committer_.current().zone_at(zone);
  if (!served || !served.loaded()) return std::nullopt;
  if (const auto serials = signers_.unsigning(zone)) {
    // A version without signatures may have been published before a crash.
    return Wanted{nullptr, *serials, served.denial() == zone::Denial::kUnsigned};
  }
  auto signer = signers_.signer_of(zone);
  if (!signer || !*signer || (*signer)->has_signed(served)) return std::nullopt;
  const config::SerialPolicy serials = (*signer)->options().serial_policy;
  return Wanted{std::move(*signer), serials, false};
}

void WholeSigning::check(const dns::Name& zone) {
  const std::string key = dns::folded_key(zone);
  if (known_.contains(key)) return;
  if (!wanted_of(zone)) {
    failed_.erase(key);
    return;
  }
  known_.insert(key);
  waiting_.push_back(zone);
  start_waiting();
}

std::string WholeSigning::problem(dns::NameView zone) const {
  if (failed_.empty() && known_.empty()) return {};
  const std::string key = dns::folded_key(zone);
  const auto failed = failed_.find(key);
  if (failed != failed_.end()) return "the zone is not signed: " + failed->second.reason;
  return known_.contains(key) ? "the zone is being signed" : "";
}

void WholeSigning::retry(std::chrono::steady_clock::time_point now) {
  if (failed_.empty() || now < next_retry_) return;
  next_retry_ = now + kRetry;
  const auto failed = failed_;
  for (const auto& [key, failure] : failed) check(dns::Name(dns::name_of_key(key)));
}

void WholeSigning::start_waiting() {
  while (at_work_ < kMaxAtWork && !waiting_.empty() && !road_.stopping()) {
    auto work = std::make_shared<Work>();
    work->zone = std::move(waiting_.front());
    waiting_.pop_front();
    ++at_work_;
    sign(work);
  }
}

void WholeSigning::sign(const WorkPtr& work) {
  if (road_.stopping()) return;
  auto wanted = wanted_of(work->zone);
  work->is_wanted = wanted.has_value();
  work->is_done = !wanted || wanted->is_done;
  if (work->is_done) return ended(work, {});
  const std::uint64_t now = signers_.now();
  work->signer = {std::move(wanted->signer), now};
  const zone::StoreView version = committer_.current();
  const bool is_unsigned = version.zone_at(work->zone).denial() == zone::Denial::kUnsigned;
  const auto begun = [this, work](const Status& done) { done ? sign(work) : ended(work, done); };
  if (is_unsigned && signers_.begin_anew(work->zone, begun)) return;
  // Updates of a zone that validators know as signed have to be signed. Until the zone has its other
  // chain, they extend the present one; those that its keys cannot sign wait.
  const ZoneSignerPtr& signer = work->signer.signer;
  const bool must_wait =
      !is_unsigned && (!signer || !signer->denial_of(version.zone_at(work->zone)));
  if (must_wait && !std::exchange(work->holds_updates, true)) holds_.hold(work->zone);
  work->pin = slots_.pin_own(version.version());
  work->served = version.zone_at(work->zone);
  work->serial = work->served.serial();
  work->source = work->served.source();
  const dns::Serial next = next_serial(work->serial, wanted->serials, now);
  asio::post(pool_, [this, work, next] {
    work->made = work->signer.signer ? sign_served_zone(store_, work->served, work->signer)
                                     : unsign_served_zone(store_, work->served, next);
    work->pin = {};
    asio::post(io_, [this, work] {
      if (road_.stopping()) return;
      work->made ? submit(work) : ended(work, pass(work->made));
    });
  });
}

void WholeSigning::submit(const WorkPtr& work) {
  ZoneChange change;
  change.zone = work->zone;
  change.source = ChangeSource::kSigning;
  change.is_whole = true;
  change.content = std::move(*work->made);
  change.check = [this, work](const zone::StoreView& version) -> Status {
    const zone::ZoneView now = version.zone_at(work->zone);
    const auto wanted = wanted_of(work->zone);
    // Another signer: the policy has changed meanwhile, and may want another chain.
    const bool is_signers = wanted && signs_alike(wanted->signer, work->signer.signer);
    work->has_moved = !is_signers || !now || !now.loaded() || !(now.serial() == work->serial) ||
                      !(now.source() == work->source);
    return work->has_moved ? Status(fail(Errc::kExists, "zone moved")) : Status();
  };
  change.done = [this, work](const Result<ChangeOutcome>& outcome) {
    if (outcome || !std::exchange(work->has_moved, false)) return ended(work, status_of(outcome));
    if (!std::exchange(work->holds_updates, true)) holds_.hold(work->zone);
    sign(work);
  };
  road_.submit(std::move(change));
}

/// The same reason is logged once a day, although the zone is tried again more often.
void WholeSigning::note_failure(const dns::Name& zone, const std::string& reason) {
  constexpr std::uint64_t kRepeatAfter = 86400;
  const std::uint64_t now = signers_.now();
  Failure& failure = failed_[dns::folded_key(zone)];
  if (failure.reason == reason && now < failure.told_at + kRepeatAfter) return;
  failure = {reason, now};
  log::error("zone_not_signed", "zone", dns::to_text(zone), "reason", reason);
}

void WholeSigning::ended(const WorkPtr& work, const Status& status) {
  if (road_.stopping()) return;
  const std::string key = dns::folded_key(work->zone);
  --at_work_;
  known_.erase(key);
  if (work->holds_updates) holds_.release(work->zone);
  const zone::ZoneView now = committer_.current().zone_at(work->zone);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - work->start);
  if (!status) {
    note_failure(work->zone, status.error().text);
  } else if (now && now.loaded() && work->is_wanted) {
    failed_.erase(key);
    const std::string zone = dns::to_text(work->zone);
    const auto serial = now.serial().value;
    if (work->signer.signer)
      log::info("zone_signed", "zone", zone, "serial", serial, "records", now.record_count(), "ms",
                ms.count());
    else
      log::info("zone_unsigned", "zone", zone, "serial", serial, "records", now.record_count(),
                "ms", ms.count());
    on_signed_(work->zone);
  }
  // Somebody may have changed his mind while the version was being published.
  if (status && !work->is_done) check(work->zone);
  start_waiting();
}

}  // namespace pando::manager

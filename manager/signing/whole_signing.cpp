#include "manager/signing/whole_signing.h"

#include <asio/post.hpp>
#include <utility>

#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/change/built_signing.h"

namespace pando::manager {

/// One zone that is being signed, used by one thread at a time.
struct WholeSigning::Work {
  dns::Name zone;
  ChangeSigner signer{};
  shm::SlotTable::OwnPin pin{};
  zone::ZoneView served{};  // pinned
  dns::Serial serial{};
  zone::ZoneFileInfo source{};
  Result<WholeZone> signed_data = fail(Errc::kNotFound, "not signed yet");
  bool holds_updates = false;
  bool has_moved = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

/// Null: there is nothing to sign.
ZoneSignerPtr WholeSigning::wanted_signer(const dns::Name& zone) const {
  const auto signer = signers_.signer_of(zone);
  if (!signer || !*signer) return nullptr;
  const zone::ZoneView served = committer_.current().zone_at(zone);
  const bool is_due = served && served.loaded() && !(*signer)->has_signed(served);
  return is_due ? *signer : nullptr;
}

void WholeSigning::check(const dns::Name& zone) {
  const std::string key = dns::folded_key(zone);
  failed_.erase(key);
  if (known_.contains(key) || !wanted_signer(zone)) return;
  known_.insert(key);
  waiting_.push_back(zone);
  start_waiting();
}

void WholeSigning::retry(std::chrono::steady_clock::time_point now) {
  if (failed_.empty() || now < next_retry_) return;
  next_retry_ = now + kRetry;
  for (const auto& [key, zone] : std::exchange(failed_, {})) check(zone);
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
  ZoneSignerPtr signer = wanted_signer(work->zone);
  if (!signer) return ended(work, {});
  work->signer = {std::move(signer), signers_.now()};
  const zone::StoreView version = committer_.current();
  work->pin = slots_.pin_own(version.version());
  work->served = version.zone_at(work->zone);
  work->serial = work->served.serial();
  work->source = work->served.source();
  asio::post(pool_, [this, work] {
    work->signed_data = sign_served_zone(store_, work->served, work->signer);
    work->pin = {};
    asio::post(io_, [this, work] {
      if (road_.stopping()) return;
      work->signed_data ? submit(work) : ended(work, pass(work->signed_data));
    });
  });
}

void WholeSigning::submit(const WorkPtr& work) {
  ZoneChange change;
  change.zone = work->zone;
  change.source = ChangeSource::kSigning;
  change.is_whole = true;
  change.content = std::move(*work->signed_data);
  change.check = [work](const zone::StoreView& version) -> Status {
    const zone::ZoneView now = version.zone_at(work->zone);
    work->has_moved =
        !now || !now.loaded() || !(now.serial() == work->serial) || !(now.source() == work->source);
    return work->has_moved ? Status(fail(Errc::kExists, "zone moved")) : Status();
  };
  change.done = [this, work](const Result<ChangeOutcome>& outcome) {
    if (outcome || !std::exchange(work->has_moved, false)) return ended(work, status_of(outcome));
    if (!work->holds_updates) work->holds_updates = holds_.hold(work->zone);
    sign(work);
  };
  road_.submit(std::move(change));
}

void WholeSigning::ended(const WorkPtr& work, const Status& status) {
  const std::string key = dns::folded_key(work->zone);
  --at_work_;
  known_.erase(key);
  if (work->holds_updates) holds_.release(work->zone);
  const zone::ZoneView now = committer_.current().zone_at(work->zone);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - work->start);
  if (!status) {
    failed_.insert_or_assign(key, work->zone);
    log::error("zone_not_signed", "zone", dns::to_text(work->zone), "reason", status.error().text);
  } else if (now && now.loaded() && work->signer.signer) {
    log::info("zone_signed", "zone", dns::to_text(work->zone), "serial", now.serial().value,
              "records", now.record_count(), "ms", ms.count());
  }
  start_waiting();
}

}  // namespace pando::manager

#include "manager/secondary/received_verification.h"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <thread>
#include <utility>

#include "base/progress.h"
#include "base/unix_time.h"
#include "manager/commit/zone_diff.h"
#include "zone/draft/detached_draft.h"
#include "zone/draft/draft.h"

namespace pando::manager {

namespace {

/// The faults in one line; empty = none.
std::string faults_text(const zone::Verification& found) {
  if (found.ok()) return {};
  if (found.fault_count == 1) return found.faults.front();
  return fmt::format("{} (and {} more)", found.faults.front(), found.fault_count - 1);
}

}  // namespace

struct ReceivedVerification::Work {
  dns::Name apex;
  Judges judges;
  bool base_is_valid = false;
  TransferResult transfer;
  zone::ZoneView served;
  shm::SlotTable::OwnPin pin;
  // With changesets; declared after the pin, so that the draft ends first.
  std::unique_ptr<zone::DetachedDraft> draft;
  Progress progress;  // to give up
  Judgement judgement;

  void run(shm::Store& store) {
    const Progress::Scope scope(&progress);
    if (transfer.zone)
      judge_built(store);
    else
      judge_changed();
    draft.reset();
  }

 private:
  void judge(const zone::ZoneView& after, Verdict&& verdict) {
    if (const std::string faults = faults_text(verdict.found); !faults.empty())
      judgement.refusal = "refused, as it is not valid: " + faults;
    judgement.signatures = std::move(verdict);
    ask_program(after);
  }
  void ask_program(const zone::ZoneView& after) {
    if (!judgement.refusal.empty() || !judges.program) return;
    if (auto refusal = judges.program->refusal(after)) judgement.refusal = std::move(*refusal);
  }
  static Verdict verify_whole(const zone::ZoneView& zone) {
    return {zone::verify_zone(zone, {unix_seconds(), std::thread::hardware_concurrency()}), true};
  }
  void judge_built(shm::Store& store) {
    const BuiltView built(store, apex, *transfer.zone);
    const auto zone = built.zone();
    if (!zone) return set_obstacle(zone.error());
    if (!judges.signatures) return ask_program(*zone);
    judge(*zone, verify_whole(*zone));
  }
  void set_obstacle(const Error& error) {
    judgement.refusal = "refused, as it cannot be verified: " + error.text;
  }
  /// Whether all changesets fit the served zone, and are in the draft now.
  bool apply() {
    for (const zone::Changeset& changes : transfer.changesets) {
      const auto applied = draft->draft().apply(changes, zone::DataLimits::none());
      // Unlike a mismatch, a full store may have room again when the changes are staged.
      if (!applied && applied.error().code == Errc::kFull) set_obstacle(applied.error());
      if (!applied || applied->missing_removals + applied->redundant_additions > 0) return false;
    }
    return true;
  }
  void judge_changed() {
    if (!apply()) return;
    const zone::ZoneView after = draft->draft().view().zone_at(apex);
    if (!judges.signatures) return ask_program(after);
    auto found = base_is_valid
                     ? verify_changes(served, after, transfer.changesets, unix_seconds())
                     : std::nullopt;
    judge(after, found ? Verdict{std::move(*found), false} : verify_whole(after));
  }
};

std::shared_ptr<void> ReceivedVerification::run(const dns::Name& zone, Judges judges,
                                                bool base_is_valid, TransferResult&& transfer,
                                                Done done) {
  const shm::VersionInfo version = store_.current();
  const auto work = std::make_shared<Work>();
  work->apex = zone;
  work->judges = std::move(judges);
  work->base_is_valid = base_is_valid;
  work->transfer = std::move(transfer);
  work->pin = slots_.pin_own(version.number);
  work->served = zone::StoreView(store_.window(), version.root, version.number).zone_at(zone);
  if (!work->transfer.zone)
    work->draft = std::make_unique<zone::DetachedDraft>(store_, version, zone);
  asio::thread_pool& pool = work->judges.program ? work->judges.program->pool() : pool_;
  asio::post(pool, [&commit_loop = commit_loop_, &store = store_, work, done = std::move(done)] {
    work->run(store);
    asio::post(commit_loop, [work, done] {
      work->pin = {};
      done(std::move(work->judgement), std::move(work->transfer));
    });
  });
  return {nullptr, [work](void*) { work->progress.give_up(); }};
}

}  // namespace pando::manager

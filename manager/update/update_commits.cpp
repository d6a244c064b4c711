#include "manager/update/update_commits.h"

#include <utility>

#include "dns/folded_key.h"

namespace pando::manager {

/// One update being committed, with its verdict and result.
struct UpdateCommits::Step {
  Update update;
  Refusal verdict;
  Result<zone::Applied> applied;  // result of a large update

  /// Computes the changeset against the version that receives the changes; each retry computes
  /// anew.
  Result<zone::Changeset> compute(const zone::StoreView& snapshot) {
    if (update.check)  // small updates only, which are computed on the commit thread
      if (auto ok = update.check(); !ok) return pass(ok);
    UpdateOutcome outcome = compute_update(snapshot, update.message, update.rules);
    verdict = {outcome.rcode, outcome.reason, outcome.code};
    if (outcome.rcode != dns::Rcode::kNoError) return fail(Errc::kDenied, "{}", outcome.reason);
    outcome.changes.author = update.author;
    return std::move(outcome.changes);
  }
};

std::size_t UpdateCommits::held() const noexcept {
  std::size_t count = 0;
  for (const auto& [zone, under_way] : zones_) count += under_way.held.size();
  return count;
}

/// Judged by the published version. A version under way may have more records, but only by as much
/// as the commit thread itself has added.
bool UpdateCommits::is_large(const Update& update) const {
  if (large_ == nullptr || large_->stopping()) return false;
  const zone::ZoneView zone = committer_.current().zone_at(update.message.zone.name);
  return concerns_more_than(large_->at_once(), zone, update.message);
}

void UpdateCommits::submit(Update update) {
  const bool large = is_large(update);
  const bool ending = large_ != nullptr && large_->stopping();
  if (!ending && (large || !zones_.empty())) {
    const std::string zone = dns::folded_key(update.message.zone.name);
    const auto found = zones_.find(zone);
    if (found != zones_.end()) {
      UnderWay& before = found->second;
      if (large || before.holds_all || before.client == update.client)
        return before.held.push_back(std::move(update));
    } else if (large) {
      return submit_large(std::move(update), zone);
    }
  }
  const zone::DataLimits limits = update.rules.limits;
  auto step = std::make_shared<Step>();
  step->update = std::move(update);
  committer_.apply(
      [step](const zone::StoreView& snapshot) { return step->compute(snapshot); }, limits,
      [step](const Result<zone::Applied>& applied) { step->update.done(step->verdict, applied); });
}

/// Submits a large update. The computed changeset is freed together with `stage`, in a pool thread:
/// it may have a hundred thousand records.
void UpdateCommits::submit_large(Update update, const std::string& zone) {
  zones_[zone].client = update.client;
  ZoneChange change;
  change.zone = update.message.zone.name;
  change.records = large_->at_once() + 1;
  change.check = std::exchange(update.check, nullptr);
  change.again = [this, zone] { zones_[zone].holds_all = true; };
  auto done = std::move(update.done);
  auto step = std::make_shared<Step>();
  step->update = std::move(update);
  change.done = [this, done = std::move(done), weak = std::weak_ptr<Step>(step),
                 zone](const Result<std::uint64_t>& version) {
    if (const auto known = weak.lock())
      version ? done(known->verdict, known->applied) : done(known->verdict, pass(version));
    ended(zone);
  };
  change.stage = [&committer = committer_, step = std::move(step)](Stage& stage) -> Status {
    step->applied = committer.stage_changeset(
        stage, [&](const zone::StoreView& snapshot) { return step->compute(snapshot); },
        step->update.rules.limits);
    return status_of(step->applied);
  };
  large_->submit(std::move(change));
}

/// Resubmits the held updates in the order of arrival; the first large one may hold the rest again.
void UpdateCommits::ended(const std::string& zone) {
  auto node = zones_.extract(zone);
  for (Update& update : node.mapped().held) submit(std::move(update));
}

}  // namespace pando::manager

#include "manager/update/update_commits.h"

#include <utility>

#include "dns/folded_key.h"

namespace pando::manager {

/// One update being committed, with its verdict.
struct UpdateCommits::Step {
  Update update;
  Refusal verdict;

  /// Computes the changeset against the version that receives the changes; each retry computes
  /// anew.
  Result<ComputedChange> compute(const zone::StoreView& snapshot) {
    UpdateOutcome outcome = compute_update(snapshot, update.message, update.rules);
    verdict = {outcome.rcode, outcome.reason, outcome.code};
    if (outcome.rcode != dns::Rcode::kNoError) return fail(Errc::kDenied, "{}", outcome.reason);
    outcome.changes.author = update.author;
    return ComputedChange::of(std::move(outcome.changes));
  }

  static ZoneChange change(Update&& update) {
    ZoneChange change;
    change.zone = update.message.zone.name;
    change.source = ChangeSource::kUpdate;
    change.limits = update.rules.limits;
    if (update.check)
      change.check = [check = std::exchange(update.check, nullptr)](const zone::StoreView&) {
        return check();
      };
    auto done = std::exchange(update.done, nullptr);
    auto step = std::make_shared<Step>();
    step->update = std::move(update);
    // `content` owns the step, since it is freed in a builder thread.
    change.done = [done = std::move(done),
                   weak = std::weak_ptr(step)](const Result<ChangeOutcome>& outcome) {
      if (const auto known = weak.lock()) done(known->verdict, outcome);
    };
    change.content = [step = std::move(step)](const zone::StoreView& snapshot) {
      return step->compute(snapshot);
    };
    return change;
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
  if (road_.stopping()) return false;
  if (road_.signs_slowly(update.message.zone.name)) return true;
  const zone::ZoneView zone = committer_.current().zone_at(update.message.zone.name);
  return concerns_more_than(road_.max_on_commit_thread(), zone, update.message);
}

void UpdateCommits::submit(Update update) {
  const bool large = is_large(update);
  if (!road_.stopping() && (large || !zones_.empty())) {
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
  submit_small(std::move(update));
}

void UpdateCommits::submit_small(Update update) {
  ZoneChange change = Step::change(std::move(update));
  change.shares_version = true;
  road_.submit(std::move(change));
}

/// The computed changeset is freed in a builder thread: it may have a hundred thousand records.
void UpdateCommits::submit_large(Update update, const std::string& zone) {
  UnderWay& under_way = zones_[zone];
  under_way.client = update.client;
  ++under_way.holders;
  ZoneChange change = Step::change(std::move(update));
  change.records = road_.max_on_commit_thread() + 1;
  change.again = [this, zone] { zones_[zone].holds_all = true; };
  change.done = [this, zone, done = std::move(change.done)](const Result<ChangeOutcome>& outcome) {
    done(outcome);
    ended(zone);
  };
  road_.submit(std::move(change));
}

void UpdateCommits::hold(const dns::Name& zone) {
  UnderWay& under_way = zones_[dns::folded_key(zone)];
  under_way.holds_all = true;
  ++under_way.holders;
}

void UpdateCommits::release(const dns::Name& zone) { ended(dns::folded_key(zone)); }

/// Resubmits the held updates in the order of arrival; the first large one may hold the rest again.
void UpdateCommits::ended(const std::string& zone) {
  const auto at = zones_.find(zone);
  if (at == zones_.end() || --at->second.holders != 0) return;
  auto node = zones_.extract(at);
  for (Update& update : node.mapped().held) submit(std::move(update));
}

}  // namespace pando::manager

#include "manager/notify/notify_queue.h"

#include <algorithm>
#include <bit>

namespace pando::manager {

bool NotifyQueue::add(const dns::Name& zone, std::uint64_t due) {
  auto found = notices_.find(zone);
  if (found == notices_.end()) {
    if (notices_.size() >= options_.max_waiting) return false;
    schedule(*notices_.try_emplace(zone).first, due);
    return true;
  }
  Notice& notice = found->second;
  if (notice.running) {
    notice.again_due = notice.again ? std::min(notice.again_due, due) : due;
    notice.again = true;
  } else {
    // The pending NOTIFY will carry the newest serial. The pause stays as it is, and only the count
    // of tries starts anew. Otherwise an unresponsive remote would get more NOTIFYs because a zone
    // changes often.
    notice.tries = std::min(notice.tries, 1U);
  }
  return true;
}

void NotifyQueue::schedule(Notices::value_type& notice, std::uint64_t due) {
  notice.second.due = due;
  notice.second.running = false;
  due_.insert(&notice);
}

std::optional<NotifyQueue::Try> NotifyQueue::take(std::uint64_t now) {
  if (due_.empty() || (*due_.begin())->second.due > now) return std::nullopt;
  Notices::value_type& notice = **due_.begin();
  due_.erase(due_.begin());
  notice.second.running = true;
  return Try{notice.first, ++notice.second.tries};
}

std::optional<std::uint64_t> NotifyQueue::next_due() const {
  if (due_.empty()) return std::nullopt;
  return (*due_.begin())->second.due;
}

NotifyQueue::Tell NotifyQueue::answered(const dns::Name& zone, Outcome outcome, std::uint64_t now) {
  const auto found = notices_.find(zone);
  if (found == notices_.end()) return Tell::kNothing;
  Notice& notice = found->second;
  notice.tries = 0;
  if (std::exchange(notice.again, false))
    schedule(*found, std::max(now, notice.again_due));
  else
    notices_.erase(found);
  return note(zone, std::move(outcome));
}

NotifyQueue::Tell NotifyQueue::unanswered(const dns::Name& zone, Outcome outcome,
                                          std::uint64_t now) {
  const auto found = notices_.find(zone);
  if (found == notices_.end()) return Tell::kNothing;
  Notice& notice = found->second;
  const bool last = notice.tries >= options_.tries;
  const std::uint64_t pause = options_.first_pause << std::min(notice.tries - 1, 10U);
  if (std::exchange(notice.again, false)) notice.tries = 1;
  if (last && notice.tries > 1) {
    notices_.erase(found);
  } else {
    schedule(*found, std::max(now + pause, notice.again_due));
  }
  return last ? note(zone, std::move(outcome)) : Tell::kNothing;
}

void NotifyQueue::try_again(const dns::Name& zone, std::uint64_t now) {
  const auto found = notices_.find(zone);
  if (found == notices_.end()) return;
  Notice& notice = found->second;
  --notice.tries;
  notice.again = false;  // the next try carries the newest serial
  schedule(*found, now);
}

void NotifyQueue::end_pauses(std::uint64_t now) {
  std::vector<Notices::value_type*> paused;
  for (Notices::value_type* notice : due_)
    if (notice->second.tries > 0 && notice->second.due > now) paused.push_back(notice);
  for (Notices::value_type* notice : paused) {
    due_.erase(notice);
    schedule(*notice, now);
  }
}

void NotifyQueue::dropped(const dns::Name& zone) {
  const auto found = notices_.find(zone);
  if (found == notices_.end()) return;
  due_.erase(&*found);
  notices_.erase(found);
}

NotifyQueue::Tell NotifyQueue::note(const dns::Name& zone, Outcome outcome) {
  const auto [entry, is_new] = outcomes_.try_emplace(zone);
  if (is_new) {
    outcome_order_.push_back(zone);
    if (outcome_order_.size() > options_.max_outcomes) {
      outcomes_.erase(outcome_order_.front());
      outcome_order_.pop_front();
    }
  }
  const std::uint32_t before = entry->second.failures;
  outcome.failures = outcome.good ? 0 : before + 1;
  entry->second = std::move(outcome);
  if (entry->second.good) return before > 0 ? Tell::kWorksAgain : Tell::kNothing;
  return std::has_single_bit(entry->second.failures) ? Tell::kFailed : Tell::kNothing;
}

const NotifyQueue::Outcome* NotifyQueue::last(const dns::Name& zone) const {
  const auto found = outcomes_.find(zone);
  return found == outcomes_.end() ? nullptr : &found->second;
}

std::optional<std::uint32_t> NotifyQueue::pending(const dns::Name& zone) const {
  const auto found = notices_.find(zone);
  if (found == notices_.end()) return std::nullopt;
  return found->second.tries;
}

void ZoneBacklog::put_off(std::size_t index, std::size_t zones) {
  if (zones_.size() < zones) zones_.resize(zones);
  if (zones_[index]) return;
  zones_[index] = true;
  ++left_;
}

void ZoneBacklog::put_off_all(std::size_t zones) {
  zones_.assign(zones, true);
  left_ = zones;
  at_ = 0;
}

std::optional<std::size_t> ZoneBacklog::next() {
  if (left_ == 0) return std::nullopt;
  while (!zones_[at_ % zones_.size()]) ++at_;
  at_ %= zones_.size();
  zones_[at_] = false;
  if (--left_ == 0) zones_ = {};
  return std::exchange(at_, left_ == 0 ? 0 : at_ + 1);
}

}  // namespace pando::manager

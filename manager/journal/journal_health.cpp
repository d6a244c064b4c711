#include "manager/journal/journal_health.h"

#include <algorithm>
#include <utility>

namespace pando::manager {

bool JournalHealth::has_lasting_gap(Clock::time_point now) const noexcept {
  return (records_ == State::kPartUnread || is_unreadable()) && now - unread_since_ >= timeout_;
}

bool JournalHealth::has_gap_to_close(Clock::time_point now) const noexcept {
  return has_lasting_gap(now) && (records_ == State::kPartUnread || store_has_all_);
}

void JournalHealth::report(State fault, const std::string& why, Clock::time_point now) {
  if (fault == State::kWhole) return;
  if (fault == State::kUnreadable) {
    if (is_unreadable()) return;
    unreadable_ = why;
    unread_since_ = now;
    return;
  }
  lack_ = why;
  // Damage of another place does not end the wait for a part that cannot be read.
  if (records_ == State::kPartUnread) return;
  records_ = fault;
  if (fault == State::kPartUnread && !is_unreadable()) unread_since_ = now;
}

void JournalHealth::leave_out(std::uint64_t first) noexcept {
  lost_.from = std::max(lost_.from, first);
}

void JournalHealth::extend_lost(std::uint64_t position) noexcept {
  lost_.to = std::max(lost_.to, position);
}

void JournalHealth::add_replaced(std::string path) {
  replaced_.last = std::move(path);
  ++replaced_.files;
}

void JournalHealth::continue_from(const JournalHealth& before) {
  timeout_ = before.timeout_;
  store_has_all_ = before.store_has_all_;
  lost_.to = before.lost_.to;
  if (lack_.empty()) lack_ = before.lack_;
  if (before.lacks_records()) records_ = before.records_;
  if (before.is_unreadable() || !is_unreadable()) unread_since_ = before.unread_since_;
}

bool JournalHealth::heal(const JournalHealth& sealed) {
  if (lack_ == sealed.lack_) {
    lack_.clear();
    records_ = State::kWhole;
    lost_.from = 0;
  }
  if (!is_unreadable()) return false;
  unreadable_.clear();
  refusal_.clear();
  lost_.from = 0;
  return true;
}

}  // namespace pando::manager

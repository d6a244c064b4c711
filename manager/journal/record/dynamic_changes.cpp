#include "manager/journal/record/dynamic_changes.h"

namespace pando::manager {

/// Puts or changes one entry, or drops it when file and served zone agree.
void DynamicChanges::put(const RecordKey& key, const RecordChange& entry) {
  const auto found = entries_.find(key);
  if (entry.before != entry.after) {
    if (found != entries_.end()) {
      found->second = entry;
      return;
    }
    bytes_ += key.bytes();
    entries_.emplace(key, entry);
  } else if (found != entries_.end()) {
    bytes_ -= found->first.bytes();
    entries_.erase(found);
  }
}

void DynamicChanges::check_limits() {
  if (entries_.size() > limits_.records || bytes_ > limits_.bytes) lose();
}

void DynamicChanges::updated(const RecordChanges& live) {
  if (!known_) return;
  for (const auto& [key, change] : live) {
    const auto found = entries_.find(key);
    // A record without an entry was the same in the file and the served zone.
    const auto file = found == entries_.end() ? change.before : found->second.before;
    put(key, {file, change.after});
  }
  check_limits();
}

void DynamicChanges::edited(const RecordChanges& live, const RecordChanges& held) {
  if (!known_) return;
  for (const auto& [key, change] : held) {
    const auto found = entries_.find(key);
    const auto moved = live.find(key);
    auto now = found == entries_.end() ? change.before : found->second.after;
    if (moved != live.end()) now = moved->second.after;
    put(key, {change.after, now});
  }
  for (const auto& [key, change] : live) {
    // Records in `live` only changed alike in both, so an entry exists only if there was one.
    const auto found = entries_.find(key);
    if (found != entries_.end() && !held.contains(key))
      put(key, {found->second.before, change.after});
  }
  check_limits();
}

void DynamicChanges::reset() {
  lose();
  known_ = true;
}

void DynamicChanges::lose() {
  entries_.clear();
  bytes_ = 0;
  known_ = false;
}

void DynamicChanges::assign(Entries entries) {
  reset();
  entries_ = std::move(entries);
  for (const auto& [key, entry] : entries_) bytes_ += key.bytes();
  check_limits();
}

}  // namespace pando::manager

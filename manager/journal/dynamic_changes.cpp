#include "manager/journal/dynamic_changes.h"

namespace pando::manager {

/// Puts, changes or (file and zone agree) drops one entry.
void DynamicChanges::put(const RecordKey& key, const Entry& entry) {
  const auto found = entries_.find(key);
  if (entry.file != entry.live) {
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

void DynamicChanges::updated(const Steps& live) {
  if (!known_) return;
  for (const auto& [key, step] : live) {
    const auto found = entries_.find(key);
    // A record without an entry was in the file as it was served.
    const auto file = found == entries_.end() ? step.before : found->second.file;
    put(key, {file, step.after});
  }
  check_limits();
}

void DynamicChanges::edited(const Steps& live, const Steps& held) {
  if (!known_) return;
  for (const auto& [key, step] : held) {
    const auto found = entries_.find(key);
    const auto moved = live.find(key);
    auto now = found == entries_.end() ? step.before : found->second.live;
    if (moved != live.end()) now = moved->second.after;
    put(key, {step.after, now});
  }
  for (const auto& [key, step] : live) {
    // In `live` only: both layers moved alike, so there is no entry unless there was one.
    const auto found = entries_.find(key);
    if (found != entries_.end() && !held.contains(key)) put(key, {found->second.file, step.after});
  }
  check_limits();
}

void DynamicChanges::settle() {
  lose();
  known_ = true;
}

void DynamicChanges::lose() {
  entries_.clear();
  bytes_ = 0;
  known_ = false;
}

void DynamicChanges::assign(Entries entries) {
  settle();
  entries_ = std::move(entries);
  for (const auto& [key, entry] : entries_) bytes_ += key.bytes();
  check_limits();
}

}  // namespace pando::manager

#include "manager/support/found_damage.h"

#include <algorithm>
#include <utility>

#include "base/unix_time.h"

namespace pando::manager {

void FoundDamage::add(std::string text) {
  const std::lock_guard lock(mutex_);
  const bool is_known = std::ranges::any_of(
      rows_, [&](const ipc::FoundDamageRow& row) { return row.text == text; });
  if (!is_known && rows_.size() < kMaxRows) rows_.push_back({unix_seconds(), std::move(text)});
}

std::vector<ipc::FoundDamageRow> FoundDamage::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

FoundDamage& found_damage() {
  static FoundDamage found;
  return found;
}

}  // namespace pando::manager

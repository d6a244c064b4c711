#include "manager/signing/keys/roll_step.h"

#include <algorithm>
#include <set>

namespace pando::manager {

namespace {

using zone::KeyKind;
using zone::KeyUse;

bool has(const std::vector<KeyId>& keys, const KeyId& key) {
  return std::ranges::find(keys, key) != keys.end();
}

/// usual_uses() of the keys that are not among `without`; those have none.
std::vector<KeyUse> uses_without(std::span<const FolderKey> keys,
                                 const std::vector<KeyId>& without) {
  std::vector<KeyKind> kinds;
  for (const FolderKey& key : keys)
    if (!has(without, key.id)) kinds.push_back({key.id.algorithm, key.is_sep});
  const std::vector<KeyUse> some = zone::usual_uses(kinds);
  std::vector<KeyUse> uses;
  auto next = some.begin();
  for (const FolderKey& key : keys) uses.push_back(has(without, key.id) ? KeyUse() : *next++);
  return uses;
}

std::set<std::uint8_t> algorithms_without(std::span<const FolderKey> keys,
                                          const std::vector<KeyId>& without) {
  std::set<std::uint8_t> found;
  for (const FolderKey& key : keys)
    if (!has(without, key.id)) found.insert(key.id.algorithm);
  return found;
}

/// Of a key with the uses `before` and `after` the roll.
KeyUse use_at(RollStep step, bool is_of_algorithm, const KeyUse& before, const KeyUse& after) {
  const bool is_swapped = step >= RollStep::kSwap;
  KeyUse use;
  use.has_ds = is_swapped ? after.has_ds : before.has_ds;
  switch (step) {
    case RollStep::kNone:
    case RollStep::kSign:
      use.is_published = before.is_published;
      use.signs_keys = before.signs_keys;
      break;
    case RollStep::kPublish:
    case RollStep::kSwap:
      use.is_published = before.is_published || after.is_published;
      use.signs_keys = before.signs_keys || after.signs_keys;
      break;
    case RollStep::kWithdraw:
    case RollStep::kRemove:
      use.is_published = after.is_published;
      use.signs_keys = after.signs_keys;
      break;
  }
  const bool is_removed = step == RollStep::kRemove;
  if (is_of_algorithm && !is_removed && step != RollStep::kNone)
    use.signs_data = before.signs_data || after.signs_data;
  else
    use.signs_data = is_swapped ? after.signs_data : before.signs_data;
  use.keeps_signatures = before.signs_data && !use.signs_data && !is_removed;
  return use;
}

}  // namespace

RollShape shape_of(std::span<const FolderKey> keys, const KeyRoll& roll) {
  const std::vector<KeyUse> before = uses_without(keys, roll.new_keys);
  const std::vector<KeyUse> after = uses_without(keys, roll.old_keys);
  RollShape shape;
  shape.is_of_algorithm =
      algorithms_without(keys, roll.new_keys) != algorithms_without(keys, roll.old_keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    shape.changes_ds = shape.changes_ds || before[i].has_ds != after[i].has_ds;
    shape.changes_data = shape.changes_data || before[i].signs_data != after[i].signs_data;
  }
  return shape;
}

std::vector<KeyUse> uses_of(std::span<const FolderKey> keys, const KeyRoll& roll) {
  const std::vector<KeyUse> before = uses_without(keys, roll.new_keys);
  const std::vector<KeyUse> after = uses_without(keys, roll.old_keys);
  const bool is_of_algorithm = shape_of(keys, roll).is_of_algorithm;
  std::vector<KeyUse> uses;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    uses.push_back(use_at(roll.step, is_of_algorithm, before[i], after[i]));
    uses.back().is_rolled = has(roll.old_keys, keys[i].id) || has(roll.new_keys, keys[i].id);
  }
  return uses;
}

RollStep first_step(const RollShape& shape) noexcept {
  return shape.is_of_algorithm ? RollStep::kSign : RollStep::kPublish;
}

namespace {

RollStep step_after(RollStep step, const RollShape& shape) noexcept {
  switch (step) {
    case RollStep::kSign:
      return RollStep::kPublish;
    case RollStep::kPublish:
      return RollStep::kSwap;
    case RollStep::kSwap:
      return shape.is_of_algorithm ? RollStep::kWithdraw : RollStep::kRemove;
    case RollStep::kWithdraw:
      return RollStep::kRemove;
    case RollStep::kNone:
    case RollStep::kRemove:
      break;
  }
  return RollStep::kNone;
}

}  // namespace

RollState roll_state(const KeyRoll& roll, const RollShape& shape, const RollWaits& waits,
                     std::uint64_t now) noexcept {
  if (roll.step == RollStep::kNone) return {};
  if (roll.since == 0) return {RollWait::kZone};
  if (roll.step == RollStep::kRemove) return {RollWait::kNothing, 0, RollStep::kNone, true};
  std::uint64_t until = roll.since + waits.max_ttl + waits.propagation;
  if (roll.step == RollStep::kSwap) {
    until = roll.since;
    if (shape.changes_ds) {
      if (roll.ds_seen == 0) return {RollWait::kParent};
      until = roll.ds_seen + waits.ds_ttl + waits.propagation;
    }
    if (shape.changes_data && !shape.is_of_algorithm) {
      if (roll.signatures_gone == 0) return {RollWait::kSignatures};
      until = std::max(until, roll.signatures_gone + waits.max_ttl + waits.propagation);
    }
  }
  if (now < until) return {RollWait::kCaches, until};
  if (roll.is_held || !(waits.goes_by_itself || roll.is_agreed)) return {RollWait::kOperator};
  return {RollWait::kNothing, 0, step_after(roll.step, shape)};
}

void begin_step(KeyRoll& roll, RollStep step) {
  roll.step = step;
  roll.since = roll.signatures_gone = roll.ds_seen = 0;
  roll.is_agreed = false;
}

}  // namespace pando::manager

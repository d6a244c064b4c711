#include "manager/commit/next_version.h"

#include <utility>

#include "base/unix_time.h"

namespace pando::manager {

namespace {

shm::Transaction begin(shm::Store& store, NextVersion::Step step) {
  shm::Transaction transaction =
      step == NextVersion::Step::kDump ? store.begin_private() : store.begin();
  if (step == NextVersion::Step::kRecovery) transaction.use_reserve();
  return transaction;
}

}  // namespace

NextVersion::NextVersion(shm::Store& store, Step step)
    : store_(store),
      base_(store.current()),
      transaction_(begin(store, step)),
      draft_(transaction_, base_.root, base_.number + 1) {
  // A dump does not tell when its zones changed.
  if (step != Step::kDump) draft_.set_time(unix_seconds());
}

Result<std::uint64_t> NextVersion::publish(std::uint64_t position) {
  return store_.publish(std::move(transaction_), draft_.root(), position);
}

Status recover_position(shm::Store& store, std::uint64_t position) {
  return status_of(store.publish(store.begin(), store.current().root, position));
}

}  // namespace pando::manager

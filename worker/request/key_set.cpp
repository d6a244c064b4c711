#include "worker/request/key_set.h"

#include <algorithm>
#include <iterator>

#include "base/secret.h"

namespace pando::worker {

namespace {
bool precedes(const ipc::HeldKey& a, dns::NameView b) {
  return dns::compare_canonical(a.name, b) < 0;
}
}  // namespace

bool KeySet::is_managers_key(dns::NameView name) const noexcept {
  const auto found = std::lower_bound(held.begin(), held.end(), name, precedes);
  return found != held.end() && found->name == name;
}

std::shared_ptr<const KeySet> make_key_set(ipc::Keys&& keys) {
  auto set = share_secret(KeySet());
  for (auto& key : keys.shared) {
    // The configuration has no duplicates; only a manager with a defect could send a second key of
    // one name.
    [[maybe_unused]] const auto added = set->shared.add(std::move(key));
  }
  set->held = std::move(keys.held);
  set->cookie_secrets = std::move(keys.cookie_secrets);
  std::sort(set->held.begin(), set->held.end(), [](const auto& a, const auto& b) {
    return dns::compare_canonical(a.name, b.name) < 0;
  });
  return set;
}

std::shared_ptr<const KeySet> KeyCollector::take(ipc::Keys&& keys) {
  if (keys.first) collected_ = {};
  std::move(keys.shared.begin(), keys.shared.end(), std::back_inserter(collected_.shared));
  std::move(keys.held.begin(), keys.held.end(), std::back_inserter(collected_.held));
  if (keys.first) collected_.cookie_secrets = std::move(keys.cookie_secrets);
  if (!keys.last) return nullptr;
  return make_key_set(std::exchange(collected_, {}));
}

}  // namespace pando::worker

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dns/tsig/tsig.h"
#include "ipc/worker_messages.h"

namespace pando::worker {

/// The TSIG keys of one configuration as a worker knows them. Immutable: a running transfer keeps
/// the set with which it began.
struct KeySet {
  dns::TsigKeyring shared;         ///< secrets: for queries and transfers
  std::vector<ipc::HeldKey> held;  ///< names only, in canonical order; the manager has the secrets
  std::vector<ipc::CookieSecret> cookie_secrets;  ///< the first signs; without any, cookies are off

  [[nodiscard]] bool is_managers_key(dns::NameView name) const noexcept;
};

/// Assembles a key list that may come in several packets.
class KeyCollector {
 public:
  /// Returns the finished set when `keys` was the last part, else null. A part out of order starts
  /// a new list.
  std::shared_ptr<const KeySet> take(ipc::Keys&& keys);

 private:
  ipc::Keys collected_;
};

/// A set ready for use; a second key of one name is ignored.
std::shared_ptr<const KeySet> make_key_set(ipc::Keys&& keys);

}  // namespace pando::worker

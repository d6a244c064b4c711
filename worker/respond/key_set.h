#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dns/tsig/tsig.h"
#include "ipc/worker_messages.h"

namespace pando::worker {

/// The TSIG keys of one configuration as a worker knows them. Immutable: a transfer that is under
/// way keeps the set it began with.
struct KeySet {
  dns::TsigKeyring shared;         ///< secrets: for queries and transfers
  std::vector<ipc::HeldKey> held;  ///< names only, in canonical order: the manager has the secrets
  std::vector<ipc::CookieSecret> cookie_secrets;  ///< the first signs; none: no cookies

  [[nodiscard]] bool holds(dns::NameView name) const noexcept;
};

/// Puts together a key list that may come in several packets.
class KeyCollector {
 public:
  /// The finished set when `keys` was the last part; null before. Parts out of order start afresh.
  std::shared_ptr<const KeySet> take(ipc::Keys&& keys);

 private:
  ipc::Keys collected_;
};

/// A set ready for use; a second key of one name is left out.
std::shared_ptr<const KeySet> make_key_set(ipc::Keys&& keys);

}  // namespace pando::worker

#pragma once

#include <functional>
#include <map>
#include <memory>

#include "dns/tsig/tsig.h"
#include "ipc/worker_messages.h"

namespace pando::manager {

/// The keys as they are now; the pointer keeps them for as long as a transfer needs them.
using KeyringSource = std::function<std::shared_ptr<const dns::TsigKeyring>()>;

/// Signs the messages of transfers out whose key never leaves the manager. One per worker
/// connection; the signing state of a stream lives here (RFC 8945 §5.3.1).
class TransferSigner {
 public:
  /// As many as a worker has leases, and some that are just ending.
  static constexpr std::size_t kMaxStreams = 128;

  explicit TransferSigner(KeyringSource keyring) : keyring_(std::move(keyring)) {}

  /// The signed message; an error response in place of the first when the request's signature is
  /// wrong; nothing when the stream is unknown or there are too many. `now`: seconds since 1970.
  Bytes sign(ipc::SignTransfer&& request, std::uint64_t now);
  /// Gives back the place of a stream that ends before its last message.
  void abort(std::uint64_t stream) { streams_.erase(stream); }
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }

 private:
  struct Stream {
    std::shared_ptr<const dns::TsigKeyring> keys;
    dns::TsigSession session;
  };
  Bytes begin(ipc::SignTransfer& request, std::uint64_t now);

  KeyringSource keyring_;
  std::map<std::uint64_t, Stream> streams_;
};

}  // namespace pando::manager

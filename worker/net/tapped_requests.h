#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "worker/net/core.h"
#include "worker/request/outcome.h"
#include "worker/tap/exchange.h"

namespace pando::worker {

/// The requests of a batch that are in a sample of the taps, which get them when the batch's
/// answers were sent. Used only while the core has taps.
class TappedRequests {
 public:
  explicit TappedRequests(Core& core) noexcept : core_(core) {}

  /// Notes the request that the core has just handled, if it is in a sample. Request and response
  /// stay in place until tell(). `local`: the address that was asked.
  void note(ByteView request, const Client& client, const IpAddress& local, const Outcome& outcome,
            ByteView space, const timespec& received);
  /// Reports all noted requests to the taps. Called after the send, so that it delays no answer.
  void tell();
  /// The exchange of `request`, if it was noted last and its end is reported when it comes; else
  /// null.
  [[nodiscard]] std::shared_ptr<const HeldExchange> held(ByteView request) const;

 private:
  struct Tapped {
    ByteView request;
    ByteView response;   ///< empty: none, or it comes later
    bool later = false;  ///< the end of the exchange is reported when it comes
    Exchange exchange;
  };
  Core& core_;
  std::vector<Tapped> tapped_;
};

}  // namespace pando::worker

#pragma once

#include "base/address.h"
#include "base/net/peer_identity.h"
#include "dns/name.h"

namespace pando::zone {

/// The sender of a request as rules see it. What the pointers show has to stay in place.
struct Requester {
  IpAddress address;                   ///< behind a PROXY header: the client's
  const dns::Name* key = nullptr;      ///< that signs the request; null: it is not signed
  const PeerIdentity* peer = nullptr;  ///< null: over UDP or plain TCP
};

}  // namespace pando::zone

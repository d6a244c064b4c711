#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "dns/name.h"
#include "manager/dnssec/zone_signer.h"

namespace pando::manager {

/// The zones that this server signs, and their keys, as ChangeRoad sees them. Commit thread.
class ZoneSigners {
 public:
  virtual ~ZoneSigners() = default;
  /// Null: the zone is not signed here. kUnsupported: it is, and its keys cannot be used, or are
  /// not known yet; the text says why. Nothing may change in such a zone then.
  [[nodiscard]] virtual Result<ZoneSignerPtr> signer_of(dns::NameView zone) const = 0;
  /// Whether the zone's signatures are to be taken away, since its parent has no DS records any
  /// more; the value says how its serial moves. Such a zone has no signer, and signer_of() is an
  /// error as long as it is signed.
  [[nodiscard]] virtual std::optional<config::SerialPolicy> unsigning(dns::NameView zone) const = 0;
  /// Whether the zone has a policy, also when it has no signer (yet, or any more). Records that a
  /// signer would make are not its source.
  [[nodiscard]] virtual bool has(dns::NameView zone) const = 0;
  /// A zone that is served unsigned is to be signed: what was seen of it before does not count. False:
  /// nothing was. Else `then` is called when that is durable, or could not be written.
  virtual bool begin_anew(const dns::Name& zone, std::function<void(const Status&)> then) = 0;
  /// Seconds since 1970, for the times of signatures.
  [[nodiscard]] virtual std::uint64_t now() const = 0;
  using Known = std::function<void(Result<ZoneSignerPtr> signer)>;
  /// Calls `known` with the same as soon as the zone's keys were read, perhaps within the call. A
  /// zone without keys gets its first one then, unless its new source `is_signed` by others.
  virtual void when_known(dns::NameView zone, bool is_signed, Known known) = 0;
};

}  // namespace pando::manager

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The names of a zone that a request touches, as ordinary containers: read from the zone when
/// first asked for, changed one record at a time, and compared with what they were at the end. So
/// an update that takes back what it did, or says what is already so, changes nothing.
class TouchedNames {
 public:
  struct RRset {
    dns::Ttl ttl;
    std::vector<Bytes> rdatas;  ///< in canonical order; never empty in a Node
  };
  using RRsets = std::map<dns::RRType, RRset>;
  struct Node {
    dns::Name owner;  ///< as the zone writes it, else as the request does
    RRsets before;
    RRsets now;
    [[nodiscard]] const RRset* find(dns::RRType type) const noexcept;
  };

  explicit TouchedNames(const zone::ZoneView& zone) : zone_(zone) {}

  /// The node at `name` (at or below the apex); reference valid for the overlay's life.
  Node& at(dns::NameView name);

  /// Adds or replaces one record; the TTL becomes that of the whole set (RFC 2181 §5.2).
  static void add(Node& node, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  static void insert(RRset& rrset, dns::RRType type, ByteView rdata);
  static void remove(Node& node, dns::RRType type, ByteView rdata);
  /// RRSIGs have the TTL of what they cover (RFC 4034 §3), not one of their own.
  static bool same_ttl(dns::RRType type, const RRset& a, const RRset& b) noexcept;
  static bool contains(const RRset& rrset, dns::RRType type, ByteView rdata) noexcept;

  [[nodiscard]] const std::map<std::string, Node>& nodes() const noexcept { return nodes_; }
  /// Everything that differs now. A set whose TTL changed goes out and comes in whole, because
  /// IXFR has no other way to say it.
  [[nodiscard]] zone::Changeset changes() const;

 private:
  zone::ZoneView zone_;
  std::map<std::string, Node> nodes_;  // by dns::folded_key()
};

}  // namespace pando::manager

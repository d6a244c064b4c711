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

/// Names that an update touches, as ordinary containers. A name is read from the zone on first use,
/// changed record by record, and compared with its old state at the end. An update that reverts
/// itself, or repeats existing data, therefore changes nothing.
class TouchedNames {
 public:
  struct RRset {
    dns::Ttl ttl;
    std::vector<Bytes> rdatas;  ///< in canonical order; never empty in a Node
  };
  using RRsets = std::map<dns::RRType, RRset>;
  struct Node {
    dns::Name owner;  ///< case as in the zone, else as in the request
    RRsets before;
    RRsets now;
    [[nodiscard]] const RRset* find(dns::RRType type) const noexcept;
  };

  explicit TouchedNames(const zone::ZoneView& zone) : zone_(zone) {}

  /// The node at `name` (at or below the apex); the reference is valid for this object's life.
  Node& at(dns::NameView name);

  /// Makes the node at `name` what another version of the zone has there.
  void set_now(dns::NameView name, const zone::ZoneView& zone);

  /// Adds or replaces one record; its TTL becomes the TTL of the whole set (RFC 2181 §5.2).
  static void add(Node& node, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  static void insert(RRset& rrset, dns::RRType type, ByteView rdata);
  static void remove(Node& node, dns::RRType type, ByteView rdata);
  /// True for equal TTLs, and always for RRSIGs, which have the TTL of the covered set (RFC 4034
  /// §3).
  static bool same_ttl(dns::RRType type, const RRset& a, const RRset& b) noexcept;
  static bool contains(const RRset& rrset, dns::RRType type, ByteView rdata) noexcept;

  /// True for sets of at most one record, where an addition replaces (RFC 2136 §3.4.2.2; DNAME: RFC
  /// 6672 §2.4).
  static bool is_singleton(dns::RRType type) noexcept;

  [[nodiscard]] const std::map<std::string, Node>& nodes() const noexcept { return nodes_; }
  /// The changeset of all differences. A set with a new TTL is removed and added whole, because
  /// IXFR cannot express a TTL change otherwise.
  [[nodiscard]] zone::Changeset changes() const;

 private:
  zone::ZoneView zone_;
  std::map<std::string, Node> nodes_;  // by dns::folded_key()
};

}  // namespace pando::manager

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/settings/zone_table.h"
#include "dns/name.h"
#include "manager/dnssec/touched_names.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// An operator's edits of one zone's records, until they are committed. Later edits replace earlier
/// ones of the same records, so memory grows with the records and not with the commands.
///
/// The edits are applied to the version that receives them. Updates made meanwhile stay, except for
/// records that an edit removes or replaces.
class RecordEdits {
 public:
  explicit RecordEdits(dns::NameView zone) : zone_(zone) {}

  /// Adds a record, or replaces the only one of a CNAME, DNAME or SOA set. `ttl` becomes the TTL of
  /// the whole set (RFC 2181 §5.2). Without it the set keeps its TTL, and a new set has the SOA's.
  /// kInvalid: no zone of this name can have the record.
  Status set(dns::NameView owner, dns::RRType type, std::optional<dns::Ttl> ttl, ByteView rdata);
  /// Removes one record (`rdata` given), one set (`type` given), or all records of a name. The apex
  /// keeps its SOA and NS when all its records are removed. `zone` is the present version.
  /// kNotFound: neither the zone nor an earlier edit has such a record. kInvalid: the SOA.
  Status unset(const zone::ZoneView& zone, dns::NameView owner, std::optional<dns::RRType> type,
               std::optional<ByteView> rdata);

  /// The changeset that makes the edits in `zone`; empty when they change nothing. The serial moves
  /// by `policy` unless a SOA was set. `now` is seconds since 1970. kInvalid: the SOA goes back, or
  /// the zone is signed and the edits bring no consistent signatures (check_signed_update).
  [[nodiscard]] Result<zone::Changeset> changes(const zone::ZoneView& zone,
                                                config::SerialPolicy policy,
                                                std::uint64_t now) const;

  /// Records, sets and names that are set or unset.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Approximate memory.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Upper estimate of the records that the edits change in `zone`.
  [[nodiscard]] std::uint64_t records(const zone::ZoneView& zone) const;

 private:
  struct SetEdit {
    bool cleared = false;  // the zone's records go first
    std::optional<dns::Ttl> ttl;
    TouchedNames::RRset added;
    TouchedNames::RRset removed;
  };
  struct NameEdit {
    dns::Name owner;
    bool cleared = false;  // all sets of the zone's go first
    std::map<dns::RRType, SetEdit> sets;
  };

  NameEdit& at(dns::NameView owner);
  void unset_name(NameEdit& edit);
  void unset_set(NameEdit& edit, dns::RRType type);
  void unset_record(NameEdit& edit, dns::RRType type, ByteView rdata);
  void count(const NameEdit& edit, bool in);
  void apply(const NameEdit& edit, dns::Ttl default_ttl, TouchedNames::Node& node) const;
  [[nodiscard]] Status check_exists(const zone::ZoneView& zone, dns::NameView owner,
                                    std::optional<dns::RRType> type,
                                    std::optional<ByteView> rdata) const;

  dns::Name zone_;
  std::map<std::string, NameEdit> names_;  // by dns::folded_key()
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace pando::manager

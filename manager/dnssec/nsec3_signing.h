#pragma once

#include <map>
#include <optional>
#include <vector>

#include "dns/dnssec/nsec3_hash.h"
#include "manager/dnssec/changed_sets.h"
#include "manager/dnssec/changed_zone.h"
#include "zone/dnssec/signing_denial.h"

namespace pando::manager {

/// Makes the NSEC3 records of a changed zone (RFC 5155 §7.1). The chain equals that of a zone that
/// is signed as a whole: with opt-out, too, a record goes with the DS of a delegation.
class Nsec3Signing {
 public:
  /// References outlive the object. `ttl` is that of all new records. The zone was signed with
  /// `denial` before. `max_names` limits the names that are read to find out whether an empty
  /// non-terminal still needs its record.
  Nsec3Signing(ChangedZone& zone, TouchedNames& touched, ChangedSets& sets,
               const zone::SigningDenial& denial, dns::Ttl ttl, std::size_t max_names) noexcept
      : zone_(zone),
        touched_(touched),
        sets_(sets),
        denial_(denial),
        ttl_(ttl),
        max_names_(max_names) {}

  /// Makes, changes or removes the records of `names`, of empty non-terminals above them, and of
  /// the hashes before those that come or go. If `names` has owners of NSEC3 records, their
  /// signatures are made anew where they do not fit. Only once. False: more than `max_names` names.
  /// kInvalid: a name has the hash of another one; kUnsupported: OpenSSL does not sign.
  Result<bool> run(const NameSet& names);

 private:
  Status take_name(const dns::Name& name);
  Status take_empty(const dns::Name& name, const NameSet& names);
  std::optional<std::vector<dns::RRType>> types_in_chain(const dns::Name& name);
  Status link(const dns::Name& name, const std::vector<dns::RRType>& types);
  void unlink(const dns::Name& name);
  bool keeps_record(const dns::Name& name, const NameSet& names);
  bool had_no_record(const dns::Name& name);
  dns::Name owner_of(dns::NameView name);
  [[nodiscard]] bool was_linked(dns::NameView owner) const;

  Status put_records(const NameSet& names);
  Status put(const dns::Name& owner, ByteView type_bitmap);
  Status put_same_types(const dns::Name& owner);
  dns::Name next_in_chain(const dns::Name& owner);
  dns::Name previous_in_chain(const dns::Name& owner);
  std::optional<dns::Name> first_staying(zone::RecordView from);
  std::optional<dns::Name> last_staying(zone::RecordView from);

  ChangedZone& zone_;
  TouchedNames& touched_;
  ChangedSets& sets_;
  const zone::SigningDenial& denial_;
  dns::Ttl ttl_;
  std::size_t max_names_;
  dns::Nsec3Hasher hasher_;

  NameSet linked_;          // names with data that are in the chain
  NameSet above_linked_;    // names above these
  NameSet above_unlinked_;  // names that leave the chain, and names above them
  NameSet maybe_empty_;     // names without data, and names above changed ones
  std::map<dns::Name, Bytes, dns::CanonicalLess> records_;  // type bitmaps by owner
  NameSet come_, gone_;                                     // owners
  Shortcuts forward_, backward_;                            // skip owners that are gone
  std::size_t names_read_ = 0;
};

}  // namespace pando::manager

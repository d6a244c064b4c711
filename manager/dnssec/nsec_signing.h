#pragma once

#include "manager/dnssec/changed_sets.h"
#include "manager/dnssec/changed_zone.h"

namespace pando::manager {

/// Makes the NSEC records of a changed zone (RFC 4034 §4, RFC 4035 §2.3).
class NsecSigning {
 public:
  /// References outlive the object. `ttl` is that of all new records.
  NsecSigning(ChangedZone& zone, TouchedNames& touched, ChangedSets& sets, dns::Ttl ttl) noexcept
      : zone_(zone), touched_(touched), sets_(sets), ttl_(ttl) {}

  /// Makes, changes or removes the records of `names`, and of the names before those that come or
  /// go. kUnsupported: OpenSSL does not sign.
  Status run(const NameSet& names);

 private:
  Status sign_name(const dns::Name& name);
  TouchedNames::RRset nsec_of(dns::NameView name);
  bool in_chain(dns::NameView name);
  dns::Name next_in_chain(dns::NameView name);
  dns::Name previous_in_chain(dns::NameView name);

  ChangedZone& zone_;
  TouchedNames& touched_;
  ChangedSets& sets_;
  dns::Ttl ttl_;
  NameSet before_changed_;        // names whose NSEC gets another next name
  Shortcuts forward_, backward_;  // skip names outside the chain
};

}  // namespace pando::manager

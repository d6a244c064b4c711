#pragma once

#include <map>

#include "dns/dnssec/denial_fields.h"
#include "dns/dnssec/nsec3_hash.h"
#include "manager/dnssec/changed_zone.h"

namespace pando::manager {

/// Checks the NSEC records around an update's changes (RFC 4034 §4, RFC 4035 §2.3). Exactly the
/// authoritative names and the delegations have an NSEC, with the right types. The chain is closed
/// around each of these names.
class NsecCheck {
 public:
  explicit NsecCheck(ChangedZone& zone) : zone_(zone) {}
  Fault run();

 private:
  Fault check_name(dns::NameView name);
  Fault check_types(const ChangedZone::Node& node, ChangedZone::Place place);
  /// Checks that the NSEC at `name` points to the next name of the chain.
  Fault check_link(dns::NameView name);
  bool in_chain(dns::NameView name);
  dns::Name next_in_chain(dns::NameView name);
  dns::Name previous_in_chain(dns::NameView name);

  ChangedZone& zone_;
  Shortcuts forward_, backward_;  // skip names outside the chain
};

/// Checks NSEC3 records in the same way (RFC 5155 §7.1), for the one chain that NSEC3PARAM at the
/// apex names. The check covers empty non-terminals and opt-out (§6).
///
/// An NSEC3 record does not reveal its name. So a record that comes, goes or lists other types must
/// belong to a changed name, or to an empty non-terminal above one. No record may lose its opt-out
/// flag, because the names without a record in its range could not be found.
class Nsec3Check {
 public:
  explicit Nsec3Check(ChangedZone& zone) : zone_(zone) {}
  Fault run();

 private:
  /// The record that the chain must have for a name (RFC 5155 §7.1).
  enum class Need : std::uint8_t {
    kNothing,   ///< no data, or no authoritative data
    kOptional,  ///< a delegation without DS: an opt-out record may cover the name
    kEmpty,     ///< an empty non-terminal
    kRecord,
  };
  struct Hashed {
    dns::Name owner;  ///< owner of the name's NSEC3 record
    dns::Nsec3Hash hash{};
  };

  Fault read_parameters();
  Fault check_names();
  Fault check_name(dns::NameView name);
  Fault check_absence(dns::NameView name, Need need, const Hashed& hashed);
  Fault check_types(dns::NameView name, const dns::Nsec3Fields& record);
  Fault check_record(dns::NameView owner, const ChangedZone::Node& node);
  Fault check_change(dns::NameView owner, const dns::Nsec3Fields* before,
                     const dns::Nsec3Fields* now);
  Fault check_opt_out(dns::NameView owner, const dns::Nsec3Fields* before,
                      const dns::Nsec3Fields* now);
  /// Checks that the NSEC3 at `owner` points to the next hash of the chain.
  Fault check_link(dns::NameView owner);

  Need need_of(dns::NameView name);
  bool is_above_secure(dns::NameView name);
  std::optional<Hashed> hash(dns::NameView name);
  std::optional<dns::Nsec3Fields> record_of(const ChangedZone::RRsets& rrsets) const;
  std::optional<dns::Nsec3Fields> record_now(dns::NameView owner);
  dns::Name next_in_chain(dns::NameView owner);
  dns::Name previous_in_chain(dns::NameView owner);
  std::optional<dns::Name> first_from(std::optional<dns::Name> owner);
  std::optional<dns::Name> last_until(std::optional<dns::Name> owner);

  ChangedZone& zone_;
  Shortcuts forward_, backward_;  // skip records of other chains
  dns::Nsec3Fields parameters_;
  dns::Nsec3Hasher hasher_;
  NameSet above_secure_;  // names above a name that must have a record
  // owners of the checked names' records
  std::map<dns::Name, dns::Nsec3Hash, dns::CanonicalLess> checked_;
};

/// Runs the check of the zone's kind of denial, which no changes may exchange for the other.
[[nodiscard]] Fault check_denial(ChangedZone& zone);

}  // namespace pando::manager

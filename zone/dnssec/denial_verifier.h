#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dns/dnssec/denial_fields.h"
#include "dns/dnssec/nsec3_hash.h"
#include "zone/dnssec/fault_list.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// Status of a name's data (RFC 4035 §2.2, §2.3). All of it is authoritative, or only DS and NSEC
/// at a delegation, or nothing below a delegation or DNAME. An empty non-terminal has none.
enum class Place : std::uint8_t { kAuthoritative, kCut, kOccluded, kEmpty };

/// A name of a zone on a walk in canonical order.
struct PlacedName {
  dns::Name owner;
  RecordView record;  ///< none for kEmpty
  Place place = Place::kOccluded;
  /// Whether denial must know the name: false for empty non-terminals that are above delegations
  /// without DS alone (RFC 5155 §7.1).
  bool above_secure = false;
};

/// Whether the name exists for validators: it has types beside NSEC, NSEC3 and RRSIG, or it is
/// empty, and it is not occluded.
[[nodiscard]] bool exists(const PlacedName& name);
/// True for a delegation without DS, which an opt-out record may cover.
[[nodiscard]] bool is_insecure_cut(const PlacedName& name);

/// The chain of NSEC records (RFC 4034 §4, RFC 4035 §2.3): exactly the names that exist have one,
/// with the right types, and each points to the next, the last to the apex. One thread.
class NsecChain {
 public:
  NsecChain(const ZoneView& zone, FaultList& faults) : apex_(zone.apex()), faults_(faults) {}
  /// All names but empty ones, in canonical order.
  void take(const PlacedName& name, std::uint64_t place);
  void finish();

 private:
  void end_link(const dns::Name& next);
  [[nodiscard]] std::string fault_of_types(const PlacedName& name, const dns::NsecFields& nsec);

  dns::Name apex_;
  FaultList& faults_;
  std::optional<dns::Name> last_;       // the last owner of an NSEC
  std::optional<dns::Name> promised_;   // the next name of its NSEC
  std::uint64_t last_place_ = 0;
};

/// The links of the NSEC3 chain that NSEC3PARAM names (RFC 5155 §7.1). One thread.
class Nsec3Links {
 public:
  Nsec3Links(const ZoneView& zone, FaultList& faults);
  /// All owners of NSEC3 records, in the order of their hashes.
  void take(const dns::Name& owner, const RecordView& record, std::uint64_t place);
  void finish();
  /// Number of records in the chain.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  void end_link(const Bytes& next);

  dns::Nsec3Fields parameters_;
  FaultList& faults_;
  std::uint64_t count_ = 0;
  Bytes first_, last_, promised_;  // hashes
  dns::Name last_owner_;
  std::uint64_t last_place_ = 0;
};

/// Checks that names have their NSEC3 records with the right types, or lack them rightly. One per
/// thread.
class Nsec3Names {
 public:
  explicit Nsec3Names(const ZoneView& zone) : zone_(zone) {}
  /// A name that exists. The fault; empty = none.
  [[nodiscard]] std::string check(const PlacedName& name);
  /// Hashes of the records that were found.
  [[nodiscard]] std::vector<dns::Nsec3Hash>& found() noexcept { return found_; }

 private:
  [[nodiscard]] std::string check_absence(const PlacedName& name, const dns::Nsec3Hash& hash) const;

  ZoneView zone_;
  dns::Nsec3Hasher hasher_;
  std::vector<dns::Nsec3Hash> found_;
};

/// Faults of records of the chain that are of no name. `found` are the hashes of all records that
/// are of a name.
void find_surplus_nsec3(const ZoneView& zone, std::vector<dns::Nsec3Hash> found,
                        std::uint64_t in_chain, FaultList& faults);

}  // namespace pando::zone

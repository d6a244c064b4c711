#pragma once

#include <vector>

#include "base/bytes.h"
#include "dns/dnssec/derived_types.h"
#include "dns/name.h"
#include "zone/dnssec/denial_verifier.h"
#include "zone/dnssec/nsec3_chain.h"
#include "zone/dnssec/set_signer.h"
#include "zone/dnssec/signing_denial.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// A set that the signer puts into the zone.
struct MadeSet {
  dns::RRType type{};
  dns::Ttl ttl{};
  std::vector<Bytes> rdatas;
};

/// A name of the source on a walk in canonical order, and where it stands. Empty non-terminals,
/// which have no record, are among them with NSEC3 alone.
struct SourceName {
  dns::Name owner;
  RecordView record;
  Place place = Place::kOccluded;
  bool is_apex = false;
  /// With NSEC: the next name that exists, or the apex behind the last one, in lower case. Not of
  /// occluded names, which are in no chain.
  dns::Name next;
};

/// Calls `visit(RRsetView)` for each set of the name's source: neither derived ones nor, at the
/// apex, the SOA and a digest of the zone, which change with signing.
template <class Visit>
void for_each_source_set(const RecordView& record, bool is_apex, Visit&& visit) {
  if (!record) return;
  record.for_each_rrset([&](const RRsetView& set) {
    if (set.count() == 0 || dns::is_dropped_by_signing(set.type(), is_apex)) return;
    if (!is_apex || set.type() != dns::RRType::kSOA) visit(set);
  });
}

/// Makes the derived records of names. Of one thread.
class NameSigner {
 public:
  /// `apex_sets`: SOA, DNSKEY and the like; they and `denial` outlive the signer. `denial_ttl`: of
  /// NSEC and NSEC3 records.
  NameSigner(SetSigner signer, const std::vector<MadeSet>& apex_sets, const SigningDenial& denial,
             dns::Ttl denial_ttl)
      : signer_(std::move(signer)),
        apex_sets_(apex_sets),
        denial_(denial),
        denial_ttl_(denial_ttl) {}

  /// Appends the name's derived records, and the apex's sets to those of the apex, as
  /// CollectedRecords (zone/draft/collected.h). With NSEC3, the name becomes a link of the chain.
  /// False when OpenSSL fails.
  [[nodiscard]] bool sign(const SourceName& name, Bytes& out);
  /// Appends the NSEC3 record of a link, and its signatures, in the same form.
  [[nodiscard]] bool sign_link(const Nsec3Chain& chain, std::size_t index, dns::NameView apex,
                               Bytes& out);
  /// Links of the names that were signed with NSEC3; not closed.
  [[nodiscard]] Nsec3Chain& links() noexcept { return links_; }
  /// Number of signatures made.
  [[nodiscard]] std::uint64_t made() const noexcept { return signer_.made(); }

 private:
  [[nodiscard]] bool sign_set(const SourceName& name, const RRsetView& set, Bytes& out);
  [[nodiscard]] bool sign_rdatas(dns::NameView owner, dns::RRType type, dns::Ttl ttl, Bytes& out);
  [[nodiscard]] bool put_apex_sets(const SourceName& name, Bytes& out);
  [[nodiscard]] bool put_nsec(const SourceName& name, Bytes& out);
  [[nodiscard]] bool add_link(const SourceName& name);

  SetSigner signer_;
  const std::vector<MadeSet>& apex_sets_;
  const SigningDenial& denial_;
  dns::Ttl denial_ttl_;
  dns::Nsec3Hasher hasher_;
  Nsec3Chain links_;
  // of the name that is signed; kept for their memory
  std::vector<dns::RRType> types_;
  std::vector<Bytes> rdatas_;
  Bytes bitmap_;
};

}  // namespace pando::zone

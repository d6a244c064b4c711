#pragma once

#include "base/result.h"
#include "zone/draft/draft.h"
#include "zone/record/record_codec.h"

namespace pando::zone {

/// Checks whether a zone of that name can have the record, whatever the other records are:
/// kInvalid.
Status check_record(dns::NameView apex, dns::NameView owner, dns::RRType type, ByteView rdata);

/// Rules on the RRsets of one name that hold for every zone, whatever its source. At most one
/// CNAME, with only DNSSEC records beside it (RFC 1034 §3.6.2, RFC 2181 §10.1, RFC 4034 §3). One
/// DNAME (RFC 6672 §2.4). SOA at the apex only, once, and NS at the apex (RFC 1035 §5.2). kInvalid
/// with the owner in the text.
Status check_name(const NameDraft& name, dns::NameView apex);

/// The part of check_name() that additional records cannot repair.
Status check_together(const NameDraft& name, dns::NameView apex);

/// Limits on one name (RRset sizes, types). A `before` beyond the limits may stay so, but not grow.
/// kFull with the owner in the text.
Status check_limits(const NameDraft& before, const NameDraft& after, const DataLimits& limits,
                    dns::NameView apex);

/// True for records that live in the NSEC3 trie: NSEC3 and the RRSIGs that cover it.
[[nodiscard]] bool belongs_to_nsec3(dns::RRType type, ByteView rdata) noexcept;

/// Splits one record into its set and the octets that are stored. An RRSIG belongs to the set of
/// the type that it covers, without the octets of that type.
struct Placed {
  dns::RRType set;
  bool is_signature;
  ByteView octets;
};
[[nodiscard]] Placed place(dns::RRType type, ByteView rdata) noexcept;

}  // namespace pando::zone

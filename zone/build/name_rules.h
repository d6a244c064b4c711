#pragma once

#include "base/result.h"
#include "zone/build/draft.h"
#include "zone/record/record_codec.h"

namespace pando::zone {

/// Whether a record can be in a zone of that name, whatever the others are: kInvalid.
Status check_record(dns::NameView apex, dns::NameView owner, dns::RRType type, ByteView rdata);

/// Rules on the RRsets of one name that hold for every zone, however it came in: one CNAME and
/// nothing beside it but DNSSEC records (RFC 1034 §3.6.2, RFC 2181 §10.1, RFC 4034 §3), one DNAME
/// (RFC 6672 §2.4), SOA at the apex only, once, and NS at the apex (RFC 1035 §5.2).
/// kInvalid with the owner in the text.
Status check_name(const NameDraft& name, dns::NameView apex);

/// The part of check_name() that more records cannot mend.
Status check_together(const NameDraft& name, dns::NameView apex);

/// Limits on one name (RRset sizes, types). What was beyond them `before` may stay, but not grow.
/// kFull with the owner in the text.
Status check_limits(const NameDraft& before, const NameDraft& after, const DataLimits& limits,
                    dns::NameView apex);

/// True for records that live in the NSEC3 trie: NSEC3 and the RRSIGs that cover it.
[[nodiscard]] bool belongs_to_nsec3(dns::RRType type, ByteView rdata) noexcept;

/// Splits one record into the set it belongs to and the octets that are kept: an RRSIG belongs to
/// the type it covers, without the octets that say so.
struct Placed {
  dns::RRType set;
  bool is_signature;
  ByteView octets;
};
[[nodiscard]] Placed place(dns::RRType type, ByteView rdata) noexcept;

}  // namespace pando::zone

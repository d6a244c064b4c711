#include "manager/request/update_message.h"

#include "dns/rdata/rdata.h"

namespace pando::manager {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;

using Check = Result<void, Refusal>;

template <class... Args>
tl::unexpected<Refusal> refuse(Rcode rcode, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Refusal>(Refusal{rcode, fmt::format(format, std::forward<Args>(args)...)});
}

tl::unexpected<Refusal> form_error(const Error& error) {
  return refuse(Rcode::kFormErr, "{}", error.text);
}

std::string name_and_type(const UpdateRecord& record) {
  return fmt::format("{} {} {}", to_text(record.owner), to_text(record.rr_class),
                     to_text(record.type));
}

Result<UpdateRecord, Refusal> read_record(dns::MessageReader& reader) {
  auto found = reader.record();
  if (!found) return form_error(found.error());
  UpdateRecord record{found->owner, found->type, found->rr_class, found->ttl, {}, false};
  record.had_rdata = found->rdata_length != 0;
  // Class ANY carries no RDATA, and RDATA of meta types cannot be checked. The form checks refuse
  // both if RDATA is present.
  if (found->rr_class == RRClass::kANY || dns::is_meta_type(found->type)) return record;
  if (found->rr_class == RRClass::kNONE && !record.had_rdata) return record;
  const auto decoded = dns::decompress_rdata(found->type, reader.message(), found->rdata_offset,
                                             found->rdata_length, record.rdata);
  if (!decoded)
    return refuse(Rcode::kFormErr, "{}: {}", name_and_type(record), decoded.error().text);
  return record;
}

Result<std::vector<UpdateRecord>, Refusal> read_section(dns::MessageReader& reader,
                                                        std::uint16_t count) {
  std::vector<UpdateRecord> records;
  // bounded: each record takes at least 11 octets of the message
  for (std::uint16_t i = 0; i < count; ++i) {
    auto record = read_record(reader);
    if (!record) return tl::unexpected<Refusal>(record.error());
    records.push_back(std::move(*record));
  }
  return records;
}

/// RFC 2136 §3.1.1: exactly one zone record, of type SOA.
Check check_zone(const ParsedRequest& request) {
  if (!request.question()) return form_error(request.question().error());
  const dns::Question& zone = *request.question();
  if (zone.type != RRType::kSOA)
    return refuse(Rcode::kFormErr, "zone section of type {}", to_text(zone.type));
  // The server serves class IN only; later steps must not take data of other classes for ours.
  if (zone.rr_class != RRClass::kIN)
    return refuse(Rcode::kNotAuth, "zone section of class {}", to_text(zone.rr_class));
  return {};
}

/// RFC 2136 §3.2.4, except the parts that depend on the zone's data.
Check check_prerequisite(const UpdateRecord& record, dns::NameView zone) {
  if (record.ttl != 0)
    return refuse(Rcode::kFormErr, "prerequisite with a TTL: {}", name_and_type(record));
  if (!record.owner.view().is_at_or_below(zone))
    return refuse(Rcode::kNotZone, "prerequisite outside the zone: {}", name_and_type(record));
  const bool valueless = record.rr_class == RRClass::kANY || record.rr_class == RRClass::kNONE;
  if (valueless && record.had_rdata)
    return refuse(Rcode::kFormErr, "prerequisite with RDATA: {}", name_and_type(record));
  if (!valueless && record.rr_class != RRClass::kIN)
    return refuse(Rcode::kFormErr, "prerequisite of a wrong class: {}", name_and_type(record));
  if (!valueless && dns::is_meta_type(record.type))
    return refuse(Rcode::kFormErr, "prerequisite of a meta type: {}", name_and_type(record));
  return {};
}

/// True if records of `type` may have empty RDATA (APL, RFC 3123 §4, and unknown types). Such
/// records can be deleted by value.
bool may_be_empty(RRType type) {
  Bytes nothing;
  return dns::decompress_rdata(type, {}, 0, 0, nothing).has_value();
}

/// RFC 2136 §3.4.1.2 and §3.4.1.3.
Check check_update(const UpdateRecord& record, dns::NameView zone) {
  if (!record.owner.view().is_at_or_below(zone))
    return refuse(Rcode::kNotZone, "update outside the zone: {}", name_and_type(record));
  const bool any_type = record.type == RRType::kANY;
  const bool meta = dns::is_meta_type(record.type);
  switch (record.rr_class) {
    case RRClass::kIN:
      if (meta) break;
      return {};
    case RRClass::kANY:
      if (record.ttl != 0 || record.had_rdata || (meta && !any_type)) break;
      return {};
    case RRClass::kNONE:
      if (record.ttl != 0 || meta) break;
      if (!record.had_rdata && !may_be_empty(record.type)) break;
      return {};
    default:
      break;
  }
  return refuse(Rcode::kFormErr, "malformed update: {}", name_and_type(record));
}

Check check_sections(const UpdateMessage& update) {
  for (const UpdateRecord& record : update.prerequisites)
    if (auto checked = check_prerequisite(record, update.zone.name); !checked) return checked;
  for (const UpdateRecord& record : update.updates)
    if (auto checked = check_update(record, update.zone.name); !checked) return checked;
  return {};
}

}  // namespace

Result<UpdateMessage, Refusal> parse_update(const ParsedRequest& request) {
  if (auto checked = check_zone(request); !checked) return tl::unexpected<Refusal>(checked.error());
  const auto& header = request.header();
  dns::MessageReader reader = request.records();
  UpdateMessage update;
  update.zone = *request.question();
  auto prerequisites = read_section(reader, header->ancount);
  if (!prerequisites) return tl::unexpected<Refusal>(prerequisites.error());
  update.prerequisites = std::move(*prerequisites);
  auto updates = read_section(reader, header->nscount);
  if (!updates) return tl::unexpected<Refusal>(updates.error());
  update.updates = std::move(*updates);
  if (auto checked = check_sections(update); !checked)
    return tl::unexpected<Refusal>(checked.error());
  return update;
}

}  // namespace pando::manager

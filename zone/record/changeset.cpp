#include "zone/record/changeset.h"

#include <cstring>

namespace pando::zone {

namespace {

/// Flat form: | zone | u32 removed | u32 added | records … |, where a record is
///  | name | u16 type | u32 ttl | u16 length | rdata |. Numbers are in network order.
void put_records(Bytes& out, const std::vector<Record>& records) {
  for (const Record& record : records) {
    append(out, record.owner.view().bytes());
    append_be16(out, static_cast<std::uint16_t>(record.type));
    append_be32(out, record.ttl.seconds);
    append_be16(out, static_cast<std::uint16_t>(record.rdata.size()));
    append(out, record.rdata);
  }
}

/// The size is computed first, so that a large changeset is not copied while its encoding grows.
std::size_t encoded_bytes(const Changeset& changes) {
  std::size_t octets = changes.zone.size() + 4 + 4;
  for (const auto* list : {&changes.removed, &changes.added})
    for (const Record& record : *list)
      octets += record.owner.size() + 2 + 4 + 2 + record.rdata.size();
  return octets;
}

/// Takes fields off the front; `ok` turns false at the first field that is cut off.
struct Source {
  ByteView left;
  bool ok = true;

  ByteView take(std::size_t octets) {
    if (left.size() < octets) {
      ok = false;
      return {};
    }
    const ByteView taken = left.first(octets);
    left = left.subspan(octets);
    return taken;
  }
  std::uint16_t take_u16() {
    const ByteView octets = take(2);
    return ok ? load_be16(octets.data()) : std::uint16_t{0};
  }
  std::uint32_t take_u32() {
    const ByteView octets = take(4);
    return ok ? load_be32(octets.data()) : 0U;
  }
  dns::Name take_name() {
    const std::size_t length = dns::wire_name_length(left);
    if (length == 0) ok = false;
    return ok ? dns::Name(dns::NameView(take(length).data(), length)) : dns::Name();
  }
};

bool take_records(Source& source, std::uint32_t count, std::vector<Record>& out) {
  constexpr std::size_t kSmallest = 1 + 2 + 4 + 2;
  if (count > source.left.size() / kSmallest) return false;  // checked before memory is allocated
  out.reserve(count);
  for (std::uint32_t i = 0; i < count && source.ok; ++i) {
    Record& record = out.emplace_back();
    record.owner = source.take_name();
    record.type = static_cast<dns::RRType>(source.take_u16());
    record.ttl = {source.take_u32()};
    const ByteView rdata = source.take(source.take_u16());
    record.rdata.assign(rdata.begin(), rdata.end());
  }
  return source.ok;
}

}  // namespace

void encode(const Changeset& changes, Bytes& out) {
  out.reserve(out.size() + encoded_bytes(changes));
  append(out, changes.zone.view().bytes());
  append_be32(out, static_cast<std::uint32_t>(changes.removed.size()));
  append_be32(out, static_cast<std::uint32_t>(changes.added.size()));
  put_records(out, changes.removed);
  put_records(out, changes.added);
}

Bytes encode(const Changeset& changes) {
  Bytes out;
  encode(changes, out);
  return out;
}

Result<Changeset> decode_changes(ByteView bytes) {
  Source source{bytes};
  Changeset changes;
  changes.zone = source.take_name();
  const std::uint32_t removed = source.take_u32();
  const std::uint32_t added = source.take_u32();
  if (!source.ok || !take_records(source, removed, changes.removed) ||
      !take_records(source, added, changes.added) || !source.left.empty())
    return fail(Errc::kCorrupt, "stored changes are damaged");
  return changes;
}

}  // namespace pando::zone

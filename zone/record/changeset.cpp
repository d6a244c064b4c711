#include "zone/record/changeset.h"

#include <algorithm>

namespace pando::zone {

namespace {

/// Flat form: | zone | u32 removed | u32 added | records … | author |, where a record is
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
  if (changes.author.is_known())
    octets += 2 + changes.author.name.size() + changes.author.client.size();
  return octets;
}

bool take_records(dns::FieldReader& fields, std::uint32_t count, std::vector<Record>& out) {
  constexpr std::size_t kSmallest = 1 + 2 + 4 + 2;
  if (count > fields.left().size() / kSmallest) return false;  // before memory is allocated
  out.reserve(count);
  for (std::uint32_t i = 0; i < count && fields.ok(); ++i) {
    Record& record = out.emplace_back();
    record.owner = fields.wire_name();
    record.type = static_cast<dns::RRType>(fields.u16());
    record.ttl = {fields.u32()};
    const ByteView rdata = fields.octets(fields.u16());
    record.rdata.assign(rdata.begin(), rdata.end());
  }
  return fields.ok();
}

std::string plain_text(std::string_view text) {
  std::string plain(text.substr(0, kMaxAuthorText));
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  std::replace_if(plain.begin(), plain.end(), [&](char c) { return !is_plain(c); }, '?');
  return plain;
}

}  // namespace

Author make_author(std::string_view name, std::string_view client) {
  return {plain_text(name), plain_text(client)};
}

void put_author(Bytes& out, const Author& author) {
  static_assert(kMaxAuthorText <= 255, "a length has one octet");
  if (!author.is_known()) return;
  for (const std::string* text : {&author.name, &author.client}) {
    out.push_back(static_cast<std::uint8_t>(text->size()));
    out.insert(out.end(), text->begin(), text->end());
  }
}

Author take_author(dns::FieldReader& fields) {
  if (fields.left().empty()) return {};
  const auto take = [&] {
    const ByteView octets = fields.octets(fields.u8());
    return std::string(octets.begin(), octets.end());
  };
  const std::string name = take();
  return make_author(name, take());
}

void encode(const Changeset& changes, Bytes& out) {
  out.reserve(out.size() + encoded_bytes(changes));
  append(out, changes.zone.view().bytes());
  append_be32(out, static_cast<std::uint32_t>(changes.removed.size()));
  append_be32(out, static_cast<std::uint32_t>(changes.added.size()));
  put_records(out, changes.removed);
  put_records(out, changes.added);
  put_author(out, changes.author);
}

Bytes encode(const Changeset& changes) {
  Bytes out;
  encode(changes, out);
  return out;
}

Result<Changeset> decode_changes(ByteView bytes) {
  dns::FieldReader fields(bytes);
  Changeset changes;
  changes.zone = fields.wire_name();
  const std::uint32_t removed = fields.u32();
  const std::uint32_t added = fields.u32();
  if (!fields.ok() || !take_records(fields, removed, changes.removed) ||
      !take_records(fields, added, changes.added))
    return fail(Errc::kCorrupt, "stored changes are damaged");
  changes.author = take_author(fields);
  if (!fields.done()) return fail(Errc::kCorrupt, "stored changes are damaged");
  return changes;
}

}  // namespace pando::zone

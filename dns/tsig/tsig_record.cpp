#include "dns/tsig/tsig_record.h"

#include <cstring>

#include "dns/field_reader.h"
#include "dns/message/message_reader.h"

namespace pando::dns {

namespace {

/// Places of a record's parts; the owner is not read.
struct Outline {
  std::size_t offset;
  RRType type;
  std::size_t end;
};

/// Skips a name, labels or pointer; 0 for an incomplete name.
std::size_t skip_name(ByteView message, std::size_t at) noexcept {
  while (at < message.size()) {
    const std::uint8_t length = message[at];
    if (length >= 0xC0) return at + 2 <= message.size() ? at + 2 : 0;
    if (length > kMaxLabelOctets) return 0;
    at += length + 1U;
    if (length == 0) return at;
  }
  return 0;
}

Result<Outline> outline_record(ByteView message, std::size_t at) {
  const std::size_t fixed = skip_name(message, at);
  if (fixed == 0 || message.size() - fixed < 10)
    return fail(Errc::kTruncated, "message ends inside a record");
  const std::size_t end = fixed + 10 + load_be16(message.data() + fixed + 8);
  if (end > message.size()) return fail(Errc::kTruncated, "RDATA runs over the message");
  return Outline{at, static_cast<RRType>(load_be16(message.data() + fixed)), end};
}

/// RFC 8945 §4.2: algorithm, time, fudge, MAC, original ID, error, Other Data, and nothing else.
bool read_tsig_rdata(ByteView rdata, TsigRecord& tsig) {
  FieldReader fields(rdata);
  const auto counted = [&fields] {
    const ByteView octets = fields.octets(fields.u16());
    return Bytes(octets.begin(), octets.end());
  };
  tsig.algorithm_name = fields.wire_name();
  const std::uint64_t high = fields.u16();
  tsig.time_signed = high << 32 | fields.u32();
  tsig.fudge = fields.u16();
  tsig.mac = counted();
  tsig.original_id = fields.u16();
  tsig.error = fields.u16();
  tsig.other = counted();
  return fields.done();
}

Result<std::optional<TsigRecord>> read_tsig(ByteView message, std::size_t at) {
  std::size_t fixed = at;
  auto owner = read_name(message, fixed);
  if (!owner) return pass(owner);
  const std::uint8_t* p = message.data() + fixed;
  // RFC 8945 §4.2: CLASS ANY and TTL 0. The digest has these constants, not the record's fields, so
  // that no other value may pass.
  if (static_cast<RRClass>(load_be16(p + 2)) != RRClass::kANY || load_be32(p + 4) != 0)
    return fail(Errc::kInvalid, "TSIG record's class is not ANY or its TTL is not 0");
  TsigRecord tsig;
  tsig.key_name = *owner;
  tsig.offset = at;
  if (!read_tsig_rdata(message.subspan(fixed + 10, load_be16(p + 8)), tsig))
    return fail(Errc::kInvalid, "malformed TSIG record");
  return std::optional(std::move(tsig));
}

}  // namespace

Result<std::optional<TsigRecord>> find_tsig(ByteView message) {
  auto header = read_header(message);
  if (!header) return pass(header);
  std::size_t at = kHeaderOctets;
  for (unsigned i = 0; i < header->qdcount; ++i) {
    at = skip_name(message, at);
    if (at == 0 || message.size() - at < 4)
      return fail(Errc::kTruncated, "message ends inside the question");
    at += 4;
  }
  const unsigned records = 0U + header->ancount + header->nscount + header->arcount;
  for (unsigned i = 1; i <= records; ++i) {
    const auto record = outline_record(message, at);
    if (!record) return tl::unexpected(record.error());
    at = record->end;
    if (record->type != RRType::kTSIG) continue;
    // RFC 8945 §5.1: one TSIG, the last of the additional section. The MAC would not cover data
    // after it.
    if (i != records || header->arcount == 0 || at != message.size())
      return fail(Errc::kInvalid, "TSIG is not the last record");
    return read_tsig(message, record->offset);
  }
  return std::optional<TsigRecord>();
}

void put_tsig(const TsigRecord& record, std::uint8_t* out) noexcept {
  const auto put = [&out](ByteView octets) {
    if (!octets.empty()) std::memcpy(out, octets.data(), octets.size());
    out += octets.size();
  };
  const auto put_16 = [&out](std::size_t value) {
    store_be16(out, static_cast<std::uint16_t>(value));
    out += 2;
  };
  put(record.key_name.view().bytes());
  put_16(static_cast<std::uint16_t>(RRType::kTSIG));
  put_16(static_cast<std::uint16_t>(RRClass::kANY));
  put_16(0);  // TTL
  put_16(0);
  put_16(record.algorithm_name.size() + 16 + record.mac.size() + record.other.size());
  put(record.algorithm_name.view().bytes());
  store_be48(out, record.time_signed);
  out += 6;
  put_16(record.fudge);
  put_16(record.mac.size());
  put(record.mac);
  put_16(record.original_id);
  put_16(record.error);
  put_16(record.other.size());
  put(record.other);
}

void store_be48(std::uint8_t* out, std::uint64_t value) noexcept {
  store_be16(out, static_cast<std::uint16_t>(value >> 32));
  store_be32(out + 2, static_cast<std::uint32_t>(value));
}

}  // namespace pando::dns

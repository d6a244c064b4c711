#include "dns/message/message_reader.h"

#include "dns/wire_name.h"

namespace pando::dns {

Result<Name> read_name(ByteView message, std::size_t& at) {
  std::uint8_t octets[kMaxNameOctets];
  std::size_t size = 0;
  auto behind = expand_name(message, at, octets, size);
  if (!behind) return pass(behind);
  at = *behind;
  return Name(NameView(octets, size));
}

Result<Header> MessageReader::header() {
  auto header = read_header(message_);
  if (header) at_ = kHeaderOctets;
  return header;
}

// Results are built in place: a name has 256 octets, too many to copy at each return.

Result<Question> MessageReader::question() {
  Result<Question> result(tl::in_place);
  if (auto read = question(*result); !read) return pass(read);
  return result;
}

/// Most names are not compressed, and are then copied once.
inline Status MessageReader::read_name(std::size_t& at, Name& name) const {
  const std::size_t size = wire_name_length(message_.subspan(at));
  if (size == 0) return read_compressed_name(at, name);
  name = NameView(message_.data() + at, size);
  at += size;
  return {};
}

Status MessageReader::question(Question& question) {
  std::size_t at = at_;
  if (auto read = read_name(at, question.name); !read) return pass(read);
  if (message_.size() - at < 4) return fail(Errc::kTruncated, "question ends early");
  const std::uint8_t* p = message_.data() + at;
  question.type = static_cast<RRType>(load_be16(p));
  question.rr_class = static_cast<RRClass>(load_be16(p + 2));
  at_ = at + 4;
  return {};
}

Result<MessageRecord> MessageReader::record() {
  Result<MessageRecord> record(tl::in_place);
  std::size_t at = at_;
  if (auto read = read_name(at, record->owner); !read) return pass(read);
  record->owner_is_root = record->owner.view().is_root();
  if (auto read = read_fields(at, *record); !read) return pass(read);
  return record;
}

Status MessageReader::record(RecordFields& record) {
  std::size_t at = at_;
  record.owner_is_root = at < message_.size() && message_[at] == 0;
  if (record.owner_is_root) {
    ++at;
  } else {
    Name owner;
    if (auto read = read_name(at, owner); !read) return pass(read);
    record.owner_is_root = owner.view().is_root();  // perhaps by a pointer
  }
  return read_fields(at, record);
}

/// Reads what stands after the owner of the record that starts at at_, and goes past the record.
inline Status MessageReader::read_fields(std::size_t at, RecordFields& record) {
  if (message_.size() - at < 10) return fail(Errc::kTruncated, "record ends before its RDATA");
  const std::uint8_t* p = message_.data() + at;
  at += 10;
  record.type = static_cast<RRType>(load_be16(p));
  record.rr_class = static_cast<RRClass>(load_be16(p + 2));
  record.ttl = load_be32(p + 4);
  record.rdata_length = load_be16(p + 8);
  record.rdata_offset = at;
  record.offset = at_;
  if (message_.size() - at < record.rdata_length)
    return fail(Errc::kTruncated, "RDATA runs over the message");
  at_ = at + record.rdata_length;
  return {};
}

Status MessageReader::read_compressed_name(std::size_t& at, Name& name) const {
  std::uint8_t octets[kMaxNameOctets];
  std::size_t size = 0;
  auto behind = expand_name(message_, at, octets, size);
  if (!behind) return pass(behind);
  at = *behind;
  name = NameView(octets, size);
  return {};
}

}  // namespace pando::dns

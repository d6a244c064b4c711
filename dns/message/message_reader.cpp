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
  std::size_t at = at_;
  Result<Question> question(tl::in_place);
  if (auto read = read_name(at, question->name); !read) return pass(read);
  if (message_.size() - at < 4) return fail(Errc::kTruncated, "question ends early");
  const std::uint8_t* p = message_.data() + at;
  question->type = static_cast<RRType>(load_be16(p));
  question->rr_class = static_cast<RRClass>(load_be16(p + 2));
  at_ = at + 4;
  return question;
}

Result<MessageRecord> MessageReader::record() {
  std::size_t at = at_;
  Result<MessageRecord> record(tl::in_place);
  if (auto read = read_name(at, record->owner); !read) return pass(read);
  if (message_.size() - at < 10) return fail(Errc::kTruncated, "record ends before its RDATA");
  const std::uint8_t* p = message_.data() + at;
  at += 10;
  record->type = static_cast<RRType>(load_be16(p));
  record->rr_class = static_cast<RRClass>(load_be16(p + 2));
  record->ttl = load_be32(p + 4);
  record->rdata_length = load_be16(p + 8);
  record->rdata_offset = at;
  record->offset = at_;
  if (message_.size() - at < record->rdata_length)
    return fail(Errc::kTruncated, "RDATA runs over the message");
  at_ = at + record->rdata_length;
  return record;
}

Status MessageReader::read_name(std::size_t& at, Name& name) const {
  std::uint8_t octets[kMaxNameOctets];
  std::size_t size = 0;
  auto behind = expand_name(message_, at, octets, size);
  if (!behind) return pass(behind);
  at = *behind;
  name = Name(NameView(octets, size));
  return {};
}

}  // namespace pando::dns

#include "dns/message_reader.h"

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

Result<Question> MessageReader::question() {
  std::size_t at = at_;
  auto name = read_name(message_, at);
  if (!name) return pass(name);
  if (message_.size() - at < 4) return fail(Errc::kTruncated, "question ends early");
  const std::uint8_t* p = message_.data() + at;
  at_ = at + 4;
  return Question{*name, static_cast<RRType>(load_be16(p)), static_cast<RRClass>(load_be16(p + 2))};
}

Result<MessageRecord> MessageReader::record() {
  std::size_t at = at_;
  auto owner = read_name(message_, at);
  if (!owner) return pass(owner);
  if (message_.size() - at < 10) return fail(Errc::kTruncated, "record ends before its RDATA");
  const std::uint8_t* p = message_.data() + at;
  const std::uint16_t length = load_be16(p + 8);
  at += 10;
  if (message_.size() - at < length) return fail(Errc::kTruncated, "RDATA runs over the message");
  MessageRecord record{*owner,
                       static_cast<RRType>(load_be16(p)),
                       static_cast<RRClass>(load_be16(p + 2)),
                       load_be32(p + 4),
                       at,
                       length,
                       at_};
  at_ = at + length;
  return record;
}

}  // namespace pando::dns

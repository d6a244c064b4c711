#include "manager/signing/ds_question.h"

#include <array>

#include "dns/mnemonics.h"

namespace pando::manager {

namespace {

constexpr std::size_t kLargestQuestion = 512;  // RFC 1035 §4.2.1

}  // namespace

DsQuestion::DsQuestion(const dns::Name& zone, std::uint16_t id) : zone_(zone), id_(id) {
  std::array<std::uint8_t, kLargestQuestion> space;
  dns::MessageWriter writer(space, space.size());
  dns::Header header;
  header.id = id;
  header.rd = true;
  header.ad = true;  // RFC 6840 §5.7: the client understands the bit of the answer
  writer.put_header(header);
  static_cast<void>(writer.put_question(zone, dns::RRType::kDS, dns::RRClass::kIN));  // fits
  const ByteView message = writer.finish();
  octets_.assign(message.begin(), message.end());
}

Result<ParentDs> DsQuestion::read_answer(ByteView message) const {
  dns::MessageReader reader(message);
  const auto header = reader.header();
  if (!header) return pass(header);
  if (!header->qr || header->id != id_ || header->opcode != dns::Opcode::kQuery ||
      header->qdcount != 1)
    return fail(Errc::kInvalid, "no answer to our question");
  const auto question = reader.question();
  if (!question) return pass(question);
  if (!(question->name == zone_) || question->type != dns::RRType::kDS)
    return fail(Errc::kInvalid, "answer to another question");
  const auto rcode = static_cast<dns::Rcode>(header->rcode);
  if (rcode != dns::Rcode::kNoError) return fail(Errc::kInvalid, "RCODE {}", to_text(rcode));
  if (header->tc) return fail(Errc::kInvalid, "the answer is cut off");
  ParentDs found{header->ad};
  for (std::uint16_t i = 0; i < header->ancount; ++i) {
    const auto record = reader.record();
    if (!record) return pass(record);
    if (record->type != dns::RRType::kDS || !(record->owner == zone_)) continue;
    const ByteView rdata = message.subspan(record->rdata_offset, record->rdata_length);
    found.records.emplace_back(rdata.begin(), rdata.end());
  }
  return found;
}

}  // namespace pando::manager

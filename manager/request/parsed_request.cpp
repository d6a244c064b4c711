#include "manager/request/parsed_request.h"

#include <utility>

namespace pando::manager {

namespace {

constexpr std::size_t kMaxReplyOpt = 400;  // 15 octets and the text of an extended error
constexpr std::size_t kMaxDetailOctets = 256;
constexpr std::uint16_t kOurPayload = 1232;

bool has_opt(const ParsedRequest& request) {
  const dns::Header& header = *request.header();
  dns::MessageReader reader = request.records();
  const std::uint32_t records = std::uint32_t{header.ancount} + header.nscount + header.arcount;
  for (std::uint32_t i = 0; i < records; ++i) {
    const auto record = reader.record();
    if (!record) return false;
    if (record->type == dns::RRType::kOPT) return true;
  }
  return false;
}

dns::OptBuilder make_opt(dns::Rcode rcode, const std::optional<ReplyDetail>& detail) {
  dns::OptBuilder opt(kOurPayload, rcode, false);
  if (detail) opt.add_extended_error(detail->code, detail->text.substr(0, kMaxDetailOctets));
  return opt;
}

}  // namespace

ParsedRequest::ParsedRequest(Bytes octets)
    : octets_(std::move(octets)),
      records_(octets_),
      header_(records_.header()),
      question_(read_question()),
      tsig_(dns::find_tsig(octets_)) {}

Result<dns::Question> ParsedRequest::read_question() {
  if (!header_) return pass(header_);
  if (header_->qdcount != 1)
    return fail(Errc::kInvalid, "{} records in the zone section", header_->qdcount);
  return records_.question();
}

Bytes make_reply(const ParsedRequest& request, dns::Rcode rcode, bool authoritative,
                 const std::optional<ReplyDetail>& detail) {
  if (!request.is_request()) return {};
  const dns::Header& asked = *request.header();
  dns::Header header;
  header.id = asked.id;
  header.qr = true;
  header.opcode = asked.opcode;
  header.rd = asked.rd;
  header.aa = authoritative;
  header.rcode = static_cast<std::uint8_t>(static_cast<unsigned>(rcode) & 0x0F);
  Bytes space(dns::kHeaderOctets + dns::kMaxNameOctets + 4 + kMaxReplyOpt);
  dns::MessageWriter writer(space, space.size());
  writer.put_header(header);
  // Without a question that can be repeated, the place of the other records is not known.
  bool whole = asked.qdcount == 0;
  if (const auto& question = request.question())
    whole = writer.put_question(question->name, question->type, question->rr_class);
  if (whole && has_opt(request))
    static_cast<void>(writer.put_raw_additional(make_opt(rcode, detail).record()));
  space.resize(writer.finish().size());
  return space;
}

}  // namespace pando::manager

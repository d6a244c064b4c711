#include "manager/update/forwarded_request.h"

namespace pando::manager {

namespace {

constexpr std::size_t kMaxReplyOpt = 400;  // 15 octets and the text of an extended error
constexpr std::size_t kMaxDetailOctets = 256;
constexpr std::uint16_t kOurPayload = 1232;

bool has_opt(dns::MessageReader& reader, const dns::Header& header) {
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

Bytes make_reply(ByteView request, dns::Rcode rcode, bool authoritative,
                 const std::optional<ReplyDetail>& detail) {
  dns::MessageReader reader(request);
  auto asked = reader.header();
  if (!asked || asked->qr) return {};
  dns::Header header;
  header.id = asked->id;
  header.qr = true;
  header.opcode = asked->opcode;
  header.rd = asked->rd;
  header.aa = authoritative;
  header.rcode = static_cast<std::uint8_t>(static_cast<unsigned>(rcode) & 0x0F);
  Bytes space(dns::kHeaderOctets + dns::kMaxNameOctets + 4 + kMaxReplyOpt);
  dns::MessageWriter writer(space, space.size());
  writer.put_header(header);
  bool whole = true;
  if (asked->qdcount == 1) {
    const auto question = reader.question();
    whole = question && writer.put_question(question->name, question->type, question->rr_class);
  }
  if (whole && asked->qdcount <= 1 && has_opt(reader, *asked))
    static_cast<void>(writer.put_raw_additional(make_opt(rcode, detail).record()));
  space.resize(writer.finish().size());
  return space;
}

std::shared_ptr<ForwardedRequest> ForwardedRequest::accept(RuntimePtr runtime,
                                                           const Endpoint& client, Bytes message,
                                                           std::uint64_t now) {
  std::shared_ptr<ForwardedRequest> request(
      new ForwardedRequest(std::move(runtime), client, std::move(message)));
  auto record = dns::find_tsig(request->message_);
  if (!record) {
    request->verdict_.rcode = dns::Rcode::kFormErr;
  } else if (*record) {
    request->verdict_ =
        dns::TsigSession::verify_request(request->message_, **record, request->runtime_->keys, now);
    request->session_.emplace(dns::TsigSession::for_response(request->verdict_));
  }
  return request;
}

const dns::Name* ForwardedRequest::key() const noexcept {
  return session_ && verified() ? &verdict_.record.key_name : nullptr;
}

Bytes ForwardedRequest::error_reply(std::uint64_t now) {
  return sign(make_reply(message_, verdict_.rcode, false), now);
}

Bytes ForwardedRequest::sign(Bytes response, std::uint64_t now) {
  if (!session_ || response.empty()) return response;
  if (!session_->sign(response, now)) return {};
  return response;
}

}  // namespace pando::manager

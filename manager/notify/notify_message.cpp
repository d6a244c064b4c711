#include "manager/notify/notify_message.h"

#include <array>

namespace pando::manager {

namespace {

/// RFC 1035 §4.2.1: size that any receiver accepts over UDP, the signature included.
constexpr std::size_t kLargest = 512;

}  // namespace

Result<NotifyMessage> NotifyMessage::make(const dns::Name& zone, ByteView soa, dns::Ttl ttl,
                                          std::uint16_t id,
                                          const dns::TsigKeyring::PreparedKey* key,
                                          std::uint64_t now) {
  NotifyMessage notify(zone, id);
  if (key != nullptr) notify.tsig_.emplace(dns::TsigSession::for_request(*key));
  std::array<std::uint8_t, kLargest> space;
  dns::MessageWriter writer(space, space.size());
  dns::Header header;
  header.id = id;
  header.opcode = dns::Opcode::kNotify;
  header.aa = true;  // RFC 1996 §4.5
  writer.put_header(header);
  if (!writer.put_question(zone, dns::RRType::kSOA, dns::RRClass::kIN))
    return fail(Errc::kFull, "question does not fit");
  if (notify.tsig_) writer.reserve(notify.tsig_->overhead());
  // The SOA is an optional hint: with two long names it may not fit.
  static_cast<void>(writer.put_record(dns::Section::kAnswer, zone, dns::RRType::kSOA,
                                      dns::RRClass::kIN, ttl.seconds, soa));
  const ByteView message = writer.finish();
  notify.octets_.assign(message.begin(), message.end());
  if (notify.tsig_)
    if (auto done = notify.tsig_->sign(notify.octets_, now); !done) return pass(done);
  return notify;
}

Result<dns::Rcode> NotifyMessage::read_answer(ByteView message, std::uint64_t now) {
  dns::MessageReader reader(message);
  auto header = reader.header();
  if (!header) return pass(header);
  if (!header->qr || header->id != id_ || header->opcode != dns::Opcode::kNotify)
    return fail(Errc::kInvalid, "no answer to our NOTIFY");
  const auto rcode = static_cast<dns::Rcode>(header->rcode);
  // A server that does not understand a message need not repeat the question.
  if (header->qdcount > 1 || (header->qdcount == 0 && rcode == dns::Rcode::kNoError))
    return fail(Errc::kInvalid, "answer with {} questions", header->qdcount);
  if (header->qdcount == 1) {
    auto question = reader.question();
    if (!question) return pass(question);
    if (!(question->name == zone_) || question->type != dns::RRType::kSOA)
      return fail(Errc::kInvalid, "answer to another question");
  }
  if (tsig_)
    if (auto good = tsig_->verify_response(message, now); !good) return pass(good);
  return rcode;
}

}  // namespace pando::manager

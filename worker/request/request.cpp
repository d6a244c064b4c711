#include "worker/request/request.h"

namespace pando::worker {

namespace {

using dns::Opcode;
using dns::Rcode;
using dns::RRType;

constexpr ParseOutcome kGood{};
constexpr ParseOutcome kDrop{ParseOutcome::Kind::kDrop, Rcode::kNoError};
constexpr ParseOutcome kFormErr{ParseOutcome::Kind::kError, Rcode::kFormErr};

bool is_known(Opcode opcode) {
  return opcode == Opcode::kQuery || opcode == Opcode::kNotify || opcode == Opcode::kUpdate;
}

/// SERIAL is the first of five 32-bit fields after two names (RFC 1035 §3.3.13).
std::optional<dns::Serial> soa_serial(ByteView message, const dns::RecordFields& record) {
  std::size_t at = record.rdata_offset;
  const std::size_t end = at + record.rdata_length;
  if (!dns::read_name(message, at) || !dns::read_name(message, at)) return std::nullopt;
  constexpr std::size_t kFiveNumbers = 20;
  if (at > end || end - at != kFiveNumbers) return std::nullopt;
  return dns::Serial{load_be32(message.data() + at)};
}

/// Walks the records after the question.
class RecordWalk {
 public:
  RecordWalk(dns::MessageReader& reader, Request& request) : reader_(reader), request_(request) {}

  ParseOutcome run() {
    const dns::Header& header = request_.header;
    if (!skip<&RecordWalk::take_other>(header.ancount) ||
        !skip<&RecordWalk::take_authority>(header.nscount) ||
        !skip<&RecordWalk::take_additional>(header.arcount) || !reader_.at_end())
      return kFormErr;
    if (request_.edns && request_.edns->version != 0)
      return {ParseOutcome::Kind::kError, Rcode::kBadVers};
    return has_tsig_ ? take_tsig() : kGood;
  }

 private:
  /// The counts are hostile, but each record takes at least 11 octets of the message.
  template <auto kTake>
  bool skip(std::uint16_t count) {
    for (std::uint16_t i = 0; i < count; ++i) {
      dns::RecordFields record;
      if (!reader_.record(record) || !(this->*kTake)(record)) return false;
    }
    return true;
  }

  bool take_other(const dns::RecordFields& record) {
    has_tsig_ = has_tsig_ || record.type == RRType::kTSIG;
    return record.type != RRType::kOPT;
  }

  bool take_authority(const dns::RecordFields& record) {
    const bool wants_serial =
        request_.question.type == RRType::kIXFR && record.type == RRType::kSOA;
    if (wants_serial && !request_.client_serial) {
      request_.client_serial = soa_serial(reader_.message(), record);
      return request_.client_serial.has_value();
    }
    return take_other(record);
  }

  bool take_additional(const dns::RecordFields& record) {
    if (record.type != RRType::kOPT) return take_other(record);
    if (request_.edns) return false;  // RFC 6891 §6.1.1: more than one OPT is a FORMERR
    request_.edns.emplace();
    if (dns::read_opt(reader_.message(), record, *request_.edns)) return true;
    request_.edns.reset();
    return false;
  }

  ParseOutcome take_tsig() {
    auto found = dns::find_tsig(reader_.message());
    if (!found) return kFormErr;
    request_.tsig = std::move(*found);
    return request_.tsig ? kGood : kFormErr;
  }

  dns::MessageReader& reader_;
  Request& request_;
  bool has_tsig_ = false;
};

/// Parses the OPT of a message that can only be answered with an error: RFC 6891 §7 wants an OPT in
/// that answer, too. The sections are read as records whatever the opcode. Returns true when all of
/// them could be read.
bool look_for_opt(dns::MessageReader& reader, Request& request) {
  for (std::uint16_t i = 0; i < request.header.qdcount; ++i)  // each takes 5 octets or more
    if (!reader.question()) return false;
  return RecordWalk(reader, request).run().kind == ParseOutcome::Kind::kGood;
}

/// RFC 7873 §5.4: a query without a question asks for a server cookie.
bool is_cookie_query(const Request& request) {
  const dns::Header& header = request.header;
  return header.opcode == Opcode::kQuery && header.qdcount == 0 && header.ancount == 0 &&
         header.nscount == 0 && request.edns && !request.tsig &&
         request.edns->has(dns::kOptionCookie);
}

}  // namespace

ParseOutcome parse_request(ByteView message, Request& request) {
  request.message = message;
  request.has_question = false;
  request.edns.reset();
  request.tsig.reset();
  request.client_serial.reset();
  if (message.size() < dns::kHeaderOctets) return kDrop;
  const dns::Header& header = request.header;
  dns::decode_header(message.data(), request.header);
  if (header.qr) return kDrop;
  dns::MessageReader reader(message);
  reader.skip_header();
  if (!is_known(header.opcode)) {
    look_for_opt(reader, request);
    return {ParseOutcome::Kind::kError, Rcode::kNotImp};
  }
  if (header.qdcount != 1) {
    const bool asks_nothing_more = look_for_opt(reader, request) && is_cookie_query(request);
    return asks_nothing_more ? kGood : kFormErr;
  }
  if (!reader.question(request.question)) return kFormErr;
  request.has_question = true;
  return RecordWalk(reader, request).run();
}

}  // namespace pando::worker

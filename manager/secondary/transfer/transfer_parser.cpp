#include "manager/secondary/transfer/transfer_parser.h"

#include <utility>

#include "dns/message/edns.h"
#include "dns/rdata/rdata.h"
#include "manager/support/soa.h"

namespace pando::manager {

std::optional<std::uint32_t> read_expire(dns::MessageReader& reader, unsigned records) {
  for (unsigned i = 0; i < records; ++i) {
    const auto record = reader.record();
    if (!record) return std::nullopt;
    if (record->type != dns::RRType::kOPT) continue;
    const auto opt = dns::read_opt(reader.message(), *record);
    if (!opt) return std::nullopt;
    const auto value = dns::find_option(opt->options, dns::kOptionExpire);
    if (!value || value->size() != 4) return std::nullopt;
    return load_be32(value->data());
  }
  return std::nullopt;
}

TransferParser::TransferParser(const dns::Name& zone, dns::RRType asked,
                               std::optional<dns::Serial> current, std::uint16_t id,
                               const TransferLimits& limits, shm::Transaction& transaction)
    : zone_(zone),
      asked_(asked),
      current_(current),
      id_(id),
      limits_(limits),
      sequences_(zone, limits.changesets),
      received_(zone, limits.data, transaction) {}

TransferParser::Content TransferParser::content() const noexcept {
  if (up_to_date_) return Content::kUpToDate;
  return sequences_.empty() ? Content::kZone : Content::kChangesets;
}

Result<bool> TransferParser::feed(ByteView message) {
  octets_ += message.size();
  if (octets_ > limits_.octets)
    return fail(Errc::kFull, "transfer above {} octets (limits.transfer-size)", limits_.octets);
  dns::MessageReader reader(message);
  dns::Header header;
  if (auto checked = check_message(reader, header); !checked) return pass(checked);
  for (unsigned i = 0; i < header.ancount; ++i) {
    auto raw = reader.record();
    if (!raw) return pass(raw);
    if (raw->rr_class != dns::RRClass::kIN)
      return fail(Errc::kInvalid, "record of class {} in a transfer", dns::to_text(raw->rr_class));
    zone::Record record{raw->owner, raw->type, dns::Ttl{raw->ttl > 0x7FFFFFFF ? 0 : raw->ttl}, {}};
    auto rdata = dns::decompress_rdata(raw->type, message, raw->rdata_offset, raw->rdata_length,
                                       record.rdata);
    if (!rdata)
      return fail(Errc::kInvalid, "{} {}: {}", dns::to_text(raw->owner), dns::to_text(raw->type),
                  rdata.error().text);
    if (auto fits = dns::check_record_size(raw->owner, raw->type, record.rdata); !fits)
      return pass(fits);
    if (state_ == State::kDone) return fail(Errc::kInvalid, "records behind the last SOA");
    if (auto taken = take(std::move(record)); !taken) return pass(taken);
  }
  // RFC 1995 §2: a server without a newer version sends its SOA alone.
  if (state_ == State::kSecondRecord && asked_ == dns::RRType::kIXFR && current_ &&
      !serial_.ahead_of(*current_)) {
    up_to_date_ = true;
    state_ = State::kDone;
  }
  if (first_message_) expire_ = read_expire(reader, unsigned{header.nscount} + header.arcount);
  first_message_ = false;
  return state_ == State::kDone;
}

Status TransferParser::check_message(dns::MessageReader& reader, dns::Header& header) {
  auto read = reader.header();
  if (!read) return pass(read);
  header = *read;
  if (!header.qr || header.id != id_ || header.opcode != dns::Opcode::kQuery)
    return fail(Errc::kInvalid, "message that is no answer to the transfer's query");
  if (header.tc) return fail(Errc::kInvalid, "truncated message in a transfer");
  if (header.rcode != 0)
    return fail(Errc::kDenied, "primary answers {}",
                dns::to_text(static_cast<dns::Rcode>(header.rcode)));
  // RFC 5936 §2.2.1: the first message has the question; later ones may omit it.
  if (header.qdcount > 1 || (first_message_ && header.ancount == 0))
    return fail(Errc::kInvalid, "no records in the first message of a transfer");
  for (unsigned i = 0; i < header.qdcount; ++i) {
    auto question = reader.question();
    if (!question) return pass(question);
    if (!(question->name == zone_) || question->type != asked_)
      return fail(Errc::kInvalid, "answer to another question");
  }
  return {};
}

Status TransferParser::take(zone::Record&& record) {
  ++records_;
  switch (state_) {
    case State::kFirstSoa:
      return take_first(std::move(record));
    case State::kSecondRecord:
      return take_second(std::move(record));
    case State::kZone:
      return take_zone_record(std::move(record));
    default:
      break;
  }
  auto done = sequences_.take(std::move(record));
  if (!done) return pass(done);
  if (*done) state_ = State::kDone;
  return {};
}

Status TransferParser::take_first(zone::Record&& record) {
  if (record.type != dns::RRType::kSOA || !(record.owner == zone_))
    return fail(Errc::kInvalid, "transfer does not begin with the zone's SOA");
  serial_ = soa_serial(record.rdata);
  first_soa_ = std::move(record);
  state_ = State::kSecondRecord;
  return {};
}

Status TransferParser::take_second(zone::Record&& record) {
  // RFC 1995 §4: a SOA in second place opens a difference sequence; any other record starts a whole
  // zone.
  if (record.type == dns::RRType::kSOA && asked_ == dns::RRType::kIXFR && current_ &&
      soa_serial(record.rdata) != serial_) {
    auto begun = sequences_.begin(std::move(record), *current_, serial_);
    if (begun) state_ = State::kSequences;
    return begun;
  }
  // Our own secondaries would never follow a serial that goes back.
  if (current_ && !serial_.ahead_of(*current_))
    return fail(Errc::kInvalid, "transfer brings serial {}, which is not ahead of ours, {}",
                serial_.value, current_->value);
  state_ = State::kZone;
  if (auto added = received_.add(std::move(first_soa_)); !added) return added;
  return take_zone_record(std::move(record));
}

Status TransferParser::take_zone_record(zone::Record&& record) {
  if (record.type != dns::RRType::kSOA || !(record.owner == zone_))
    return received_.add(std::move(record));
  // RFC 5936 §2.2: the opening SOA also closes the transfer.
  if (soa_serial(record.rdata) != serial_)
    return fail(Errc::kInvalid, "transfer ends with serial {} and began with {}",
                soa_serial(record.rdata).value, serial_.value);
  state_ = State::kDone;
  return {};
}

}  // namespace pando::manager

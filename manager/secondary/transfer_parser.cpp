#include "manager/secondary/transfer_parser.h"

#include <utility>

#include "dns/rdata/rdata.h"
#include "manager/secondary/expire_option.h"
#include "manager/support/soa.h"

namespace pando::manager {

TransferParser::TransferParser(const dns::Name& zone, dns::RRType asked,
                               std::optional<dns::Serial> current, std::uint16_t id,
                               const TransferLimits& limits, shm::Transaction& transaction)
    : zone_(zone),
      asked_(asked),
      current_(current),
      id_(id),
      limits_(limits),
      builder_(zone.view(), transaction, limits.data) {}

TransferParser::Content TransferParser::content() const noexcept {
  if (up_to_date_) return Content::kUpToDate;
  return differences_.empty() ? Content::kZone : Content::kDifferences;
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
  rcode_ = static_cast<dns::Rcode>(header.rcode);
  if (header.rcode != 0) return fail(Errc::kDenied, "primary answers {}", dns::to_text(rcode_));
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
      return take_difference(std::move(record));
  }
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
      soa_serial(record.rdata) != serial_)
    return begin_difference(std::move(record), *current_);
  // Our own secondaries would never follow a serial that goes back.
  if (current_ && !serial_.ahead_of(*current_))
    return fail(Errc::kInvalid, "transfer brings serial {}, which is not ahead of ours, {}",
                serial_.value, current_->value);
  state_ = State::kZone;
  if (auto added = add(std::move(first_soa_)); !added) return added;
  return take_zone_record(std::move(record));
}

Status TransferParser::add(zone::Record&& record) {
  if (limits_.data.zone_records != 0 && zone_records_ >= limits_.data.zone_records)
    return fail(Errc::kFull, "more than {} records (limits.zone-records)",
                limits_.data.zone_records);
  if (!record.owner.view().is_at_or_below(zone_)) {
    ++foreign_;
    return {};
  }
  ++zone_records_;
  if (!waits_) return put(record);
  waiting_.push_back(std::move(record));
  return {};
}

Status TransferParser::put(const zone::Record& record) {
  return comparison_ ? comparison_->add(record.owner, record.type, record.ttl, record.rdata)
                     : builder_.add(record.owner, record.type, record.ttl, record.rdata);
}

bool TransferParser::waits() const noexcept { return waits_ && zone_records_ > 0; }

Status TransferParser::go_on(const zone::ZoneView* live) {
  waits_ = false;
  if (live != nullptr) comparison_.emplace(*live, limits_.data);
  for (const zone::Record& record : std::exchange(waiting_, {}))
    if (auto added = put(record); !added) return added;
  return {};
}

Status TransferParser::build_instead() {
  if (!comparison_) return {};
  auto given = comparison_->give_to(builder_);
  comparison_.reset();
  return given;
}

Status TransferParser::take_zone_record(zone::Record&& record) {
  if (record.type != dns::RRType::kSOA || !(record.owner == zone_)) return add(std::move(record));
  // RFC 5936 §2.2: the opening SOA also closes the transfer.
  if (soa_serial(record.rdata) != serial_)
    return fail(Errc::kInvalid, "transfer ends with serial {} and began with {}",
                soa_serial(record.rdata).value, serial_.value);
  state_ = State::kDone;
  return {};
}

Status TransferParser::begin_difference(zone::Record&& soa, dns::Serial expected) {
  const dns::Serial from = soa_serial(soa.rdata);
  if (from != expected)
    return fail(Errc::kInvalid, "difference from serial {} where {} is needed", from.value,
                expected.value);
  zone::Changeset& changes = differences_.emplace_back();
  changes.zone = zone_;
  kept_octets_ += sizeof(zone::Changeset);
  state_ = State::kRemoving;
  return keep(changes.removed, std::move(soa));
}

/// Changesets stay in memory until complete. A server whose difference sequences are larger than
/// the zone should send the zone instead (RFC 1995 §2).
Status TransferParser::keep(std::vector<zone::Record>& list, zone::Record&& record) {
  if (records_ > limits_.difference_records)
    return fail(Errc::kFull, "differences of more than {} records", limits_.difference_records);
  kept_octets_ += sizeof(zone::Record) + record.owner.size() + record.rdata.size();
  if (kept_octets_ > limits_.difference_octets)
    return fail(Errc::kFull, "differences of more than {} octets", limits_.difference_octets);
  list.push_back(std::move(record));
  return {};
}

Status TransferParser::take_difference(zone::Record&& record) {
  const bool is_soa = record.type == dns::RRType::kSOA && record.owner == zone_;
  if (state_ == State::kRemoving && is_soa) {
    to_ = soa_serial(record.rdata);
    if (!to_.ahead_of(soa_serial(differences_.back().removed.front().rdata)))
      return fail(Errc::kInvalid, "difference to serial {}, which is not ahead", to_.value);
    state_ = State::kAdding;
    return keep(differences_.back().added, std::move(record));
  }
  if (state_ == State::kAdding && is_soa) {
    if (to_ == serial_ && soa_serial(record.rdata) == serial_) {
      state_ = State::kDone;
      return {};
    }
    return begin_difference(std::move(record), to_);
  }
  if (!record.owner.view().is_at_or_below(zone_))
    return fail(Errc::kInvalid, "{} is outside the zone", dns::to_text(record.owner));
  zone::Changeset& changes = differences_.back();
  return keep(state_ == State::kRemoving ? changes.removed : changes.added, std::move(record));
}

}  // namespace pando::manager

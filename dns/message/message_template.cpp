#include "dns/message/message_template.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "dns/message/message_reader.h"

namespace pando::dns {

namespace {

constexpr std::size_t kRecordFixedOctets = 10;  // TYPE, CLASS, TTL, RDLENGTH
/// Appends octets to a block.
void append(Bytes& block, std::span<const std::byte> octets) {
  std::transform(octets.begin(), octets.end(), std::back_inserter(block),
                 std::to_integer<std::uint8_t>);
}

constexpr std::size_t kSoaNumbers = 20;  // five numbers after two names (RFC 1035 §3.3.13)

/// Number of the last end that the writer has room for; 0 if there is none. The ends ascend.
std::size_t last_within(std::span<const RRsetEnd> ends, MessageWriter& writer) noexcept {
  if (writer.fits(ends.back().size)) return ends.size() - 1;
  const auto behind = std::ranges::upper_bound(ends, writer.room(), {}, &RRsetEnd::size);
  return behind == ends.begin() ? 0 : static_cast<std::size_t>(behind - ends.begin()) - 1;
}

/// Walks the names and records of a message made by MessageWriter and collects the places of its
/// pointers.
class PointerScan {
 public:
  PointerScan(ByteView message, std::size_t start) : message_(message), at_(start) {}

  bool records(std::size_t count) {
    while (count-- > 0)
      if (!record()) return false;
    return true;
  }
  [[nodiscard]] bool at_end() const noexcept { return at_ == message_.size(); }
  [[nodiscard]] std::size_t offset() const noexcept { return at_; }
  [[nodiscard]] std::vector<std::uint16_t> take() { return std::move(pointers_); }

 private:
  bool record() {
    if (!name() || message_.size() - at_ < kRecordFixedOctets) return false;
    const auto type = static_cast<RRType>(load_be16(message_.data() + at_));
    const std::size_t rdata_octets = load_be16(message_.data() + at_ + 8);
    at_ += kRecordFixedOctets;
    const std::size_t end = at_ + rdata_octets;
    if (end > message_.size()) return false;
    if (type == RRType::kNS) return name() && at_ == end;
    if (type == RRType::kSOA) {
      if (!name() || !name()) return false;
      at_ += kSoaNumbers;
      return at_ == end;
    }
    at_ = end;
    return detail::compressible_names(type).names == 0;
  }
  bool name() {
    while (at_ < message_.size()) {
      const std::uint8_t length = message_[at_];
      if (length >= 0xC0) {
        if (at_ + 1 == message_.size()) return false;
        pointers_.push_back(static_cast<std::uint16_t>(at_));
        at_ += 2;
        return true;
      }
      at_ += length + 1U;
      if (length == 0) return true;
    }
    return false;
  }

  ByteView message_;
  std::size_t at_;
  std::vector<std::uint16_t> pointers_;
};

}  // namespace

std::optional<Bytes> MessageTemplate::make(ByteView message, std::span<const RRsetEnd> ends,
                                           std::size_t required) {
  MessageReader reader(message);
  const auto header = reader.header();
  if (message.size() > kMaxOctets || !header || header->qdcount != 1 || header->ancount != 0)
    return std::nullopt;
  const auto question = reader.question();
  if (!question || required >= ends.size()) return std::nullopt;
  const std::size_t body = reader.offset();
  PointerScan scan(message, body);
  if (!scan.records(std::size_t{header->nscount} + header->arcount) || !scan.at_end())
    return std::nullopt;
  std::vector<RRsetEnd> ends_in_body;
  for (const RRsetEnd& end : ends) {
    if (end.size < body || end.size > message.size()) return std::nullopt;
    ends_in_body.push_back({static_cast<std::uint16_t>(end.size - body), end.records});
  }
  std::vector<std::uint16_t> pointers = scan.take();
  std::vector<std::uint16_t> values;
  for (std::uint16_t& place : pointers) {
    values.push_back(load_be16(message.data() + place));
    place = static_cast<std::uint16_t>(place - body);
  }
  const Head head{.end_count = static_cast<std::uint16_t>(ends.size()),
                  .pointer_count = static_cast<std::uint16_t>(pointers.size()),
                  .required = static_cast<std::uint16_t>(required),
                  .question_name_octets = static_cast<std::uint16_t>(question->name.size()),
                  .authority_records = header->nscount};
  Bytes block;
  append(block, std::as_bytes(std::span(&head, 1)));
  append(block, std::as_bytes(std::span(ends_in_body)));
  append(block, std::as_bytes(std::span(pointers)));
  append(block, std::as_bytes(std::span(values)));
  append(block, std::as_bytes(message.subspan(body)));
  return block;
}

MessageTemplate::Put MessageTemplate::put(MessageWriter& writer) const noexcept {
  const Head& head = *reinterpret_cast<const Head*>(block_);
  const std::span ends(reinterpret_cast<const RRsetEnd*>(block_ + sizeof(Head)), head.end_count);
  const std::span places(reinterpret_cast<const std::uint16_t*>(ends.data() + ends.size()),
                         head.pointer_count);
  const PointersInRecords pointers{places, places.data() + places.size()};
  const auto* const body = reinterpret_cast<const std::uint8_t*>(pointers.values + places.size());
  const std::size_t longer = writer.question_name().size() - head.question_name_octets;
  const std::size_t last = last_within(ends, writer);
  const RRsetEnd& end = ends[last];
  if (!writer.put_sections({body, end.size}, pointers, longer, head.authority_records, end.records))
    return Put::kNothing;
  return last >= head.required ? Put::kComplete : Put::kTruncated;
}

std::optional<ServerSetTemplate> ServerSetTemplate::from(ByteView message,
                                                         std::span<const RRsetEnd> ends) {
  MessageReader reader(message);
  const auto header = reader.header();
  if (message.size() > MessageTemplate::kMaxOctets || !header || header->qdcount != 1 ||
      header->ancount != 0 || header->nscount == 0 || ends.empty())
    return std::nullopt;
  const auto question = reader.question();
  // The root as an owner is no pointer, but an octet of its own.
  if (!question || question->name.view().is_root()) return std::nullopt;
  const std::size_t body = reader.offset();
  const std::size_t between = ends.front().size;
  if (between < body || between > message.size()) return std::nullopt;
  ServerSetTemplate result;
  result.apex_octets_ = static_cast<std::uint16_t>(question->name.size());
  if (!result.take_servers(message.first(between), body, header->nscount) ||
      !result.take_addresses(message, between, header->arcount))
    return std::nullopt;
  for (const RRsetEnd& end : ends) {
    if (end.size < between || end.size > message.size()) return std::nullopt;
    result.ends_.push_back({static_cast<std::uint16_t>(end.size - between), end.records});
  }
  return result;
}

/// Takes the NS records that end the message. False: other records, or an owner that is no pointer.
bool ServerSetTemplate::take_servers(ByteView message, std::size_t start, std::size_t records) {
  PointerScan scan(message, start);
  for (; records > 0; --records) {
    const std::size_t at = scan.offset();
    if (!scan.records(1) || message[at] < 0xC0 ||
        load_be16(message.data() + at + 2) != static_cast<std::uint16_t>(RRType::kNS))
      return false;
    owners_.push_back(static_cast<std::uint16_t>(at - start));
  }
  for (const std::uint16_t place : scan.take()) {
    const auto in_body = static_cast<std::uint16_t>(place - start);
    if (std::ranges::binary_search(owners_, in_body)) continue;
    server_pointers_.places.push_back(in_body);
    server_pointers_.values.push_back(load_be16(message.data() + place));
  }
  servers_.assign(message.begin() + static_cast<std::ptrdiff_t>(start), message.end());
  return scan.at_end();
}

/// Takes the records that end the message. False if a pointer leads to a place past `start`, from
/// which other records may come to separate it.
bool ServerSetTemplate::take_addresses(ByteView message, std::size_t start, std::size_t records) {
  PointerScan scan(message, start);
  if (!scan.records(records) || !scan.at_end()) return false;
  for (const std::uint16_t place : scan.take()) {
    const std::uint16_t value = load_be16(message.data() + place);
    if ((value & 0x3FFF) >= start) return false;
    address_pointers_.places.push_back(static_cast<std::uint16_t>(place - start));
    address_pointers_.values.push_back(value);
  }
  addresses_.assign(message.begin() + static_cast<std::ptrdiff_t>(start), message.end());
  return true;
}

bool ServerSetTemplate::put_servers(MessageWriter& writer, NameView cut) const noexcept {
  return writer.put_owned_records(servers_, owners_, cut, server_pointers_.view(), longer(writer));
}

void ServerSetTemplate::put_addresses(MessageWriter& writer) const noexcept {
  const RRsetEnd& end = ends_[last_within(ends_, writer)];
  static_cast<void>(writer.put_sections(ByteView(addresses_).first(end.size),
                                        address_pointers_.view(), longer(writer), 0, end.records));
}

}  // namespace pando::dns

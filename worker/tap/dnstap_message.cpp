#include "worker/tap/dnstap_message.h"

#include "dns/message/message.h"

namespace pando::worker {

namespace {

// Field numbers of the schema.
namespace dnstap_field {
enum Number : std::uint32_t { kIdentity = 1, kVersion = 2, kMessage = 14, kType = 15 };
}  // namespace dnstap_field
namespace message_field {
enum Number : std::uint32_t {
  kMessageType = 1,
  kSocketFamily = 2,
  kSocketProtocol = 3,
  kQueryAddress = 4,
  kResponseAddress = 5,
  kQueryPort = 6,
  kResponsePort = 7,
  kQueryTimeSec = 8,
  kQueryTimeNsec = 9,
  kQueryMessage = 10,
  kQueryZone = 11,
  kResponseTimeSec = 12,
  kResponseTimeNsec = 13,
  kResponseMessage = 14,
};
}  // namespace message_field
constexpr std::uint64_t kTypeIsMessage = 1;
constexpr std::uint64_t kInet = 1;
constexpr std::uint64_t kInet6 = 2;

/// How the value of a field is written (Protocol Buffers, "Encoding").
enum WireType : std::uint32_t { kVarint = 0, kLengthDelimited = 2, kFixed32 = 5 };

void put_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}
void put_tag(Bytes& out, std::uint32_t field, WireType type) { put_varint(out, field << 3 | type); }
void put_number(Bytes& out, std::uint32_t field, std::uint64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, value);
}
void put_fixed32(Bytes& out, std::uint32_t field, std::uint32_t value) {
  put_tag(out, field, kFixed32);
  for (int shift = 0; shift < 32; shift += 8)
    out.push_back(static_cast<std::uint8_t>(value >> shift));
}
void put_length(Bytes& out, std::uint32_t field, std::size_t octets) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, octets);
}
void put_octets(Bytes& out, std::uint32_t field, ByteView octets) {
  put_length(out, field, octets.size());
  append(out, octets);
}
void put_text(Bytes& out, std::uint32_t field, std::string_view text) {
  if (text.empty()) return;
  put_length(out, field, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

std::uint64_t protocol_of(ipc::Transport transport) noexcept {
  constexpr std::uint64_t kUdp = 1;
  constexpr std::uint64_t kTcp = 2;
  constexpr std::uint64_t kDot = 3;
  switch (transport) {
    case ipc::Transport::kUdp:
      return kUdp;
    case ipc::Transport::kTcp:
      return kTcp;
    case ipc::Transport::kTls:
      return kDot;
  }
  return kUdp;
}

/// Four octets for an IPv4 address, which the schema wants; none has a scope there.
void put_address(Bytes& out, std::uint32_t field, const IpAddress& address) {
  const IpAddress bare = address.without_scope();
  const ByteView all(bare.octets);
  put_octets(out, field, address.is_v4() ? all.last(4) : all);
}

void put_endpoints(Bytes& out, const Client& client) {
  const bool v4 = client.remote.address.is_v4();
  put_number(out, message_field::kSocketFamily, v4 ? kInet : kInet6);
  put_number(out, message_field::kSocketProtocol, protocol_of(client.transport));
  put_address(out, message_field::kQueryAddress, client.remote.address);
  put_address(out, message_field::kResponseAddress, client.local.address);
  put_number(out, message_field::kQueryPort, client.remote.port);
  put_number(out, message_field::kResponsePort, client.local.port);
}

}  // namespace

DnstapType dnstap_type(ByteView message) noexcept {
  const bool response = (message[2] & 0x80U) != 0;
  const auto opcode = static_cast<dns::Opcode>((message[2] >> 3) & 0x0FU);
  if (opcode == dns::Opcode::kUpdate)
    return response ? DnstapType::kUpdateResponse : DnstapType::kUpdateQuery;
  return response ? DnstapType::kAuthResponse : DnstapType::kAuthQuery;
}

Bytes dnstap_prefix(std::string_view identity, std::string_view version) {
  Bytes prefix;
  put_text(prefix, dnstap_field::kIdentity, identity);
  put_text(prefix, dnstap_field::kVersion, version);
  put_number(prefix, dnstap_field::kType, kTypeIsMessage);
  return prefix;
}

void put_dnstap_head(const Exchange& exchange, ByteView message, const timespec& sent,
                     Bytes& head) {
  const DnstapType type = dnstap_type(message);
  head.clear();
  put_number(head, message_field::kMessageType, static_cast<std::uint64_t>(type));
  put_endpoints(head, exchange.client);
  const timespec& received = exchange.received;
  put_number(head, message_field::kQueryTimeSec, static_cast<std::uint64_t>(received.tv_sec));
  put_fixed32(head, message_field::kQueryTimeNsec, static_cast<std::uint32_t>(received.tv_nsec));
  std::uint32_t last = message_field::kQueryMessage;
  if (is_response(type)) {
    if (!exchange.zone.empty()) put_octets(head, message_field::kQueryZone, exchange.zone);
    put_number(head, message_field::kResponseTimeSec, static_cast<std::uint64_t>(sent.tv_sec));
    put_fixed32(head, message_field::kResponseTimeNsec, static_cast<std::uint32_t>(sent.tv_nsec));
    last = message_field::kResponseMessage;
  }
  put_length(head, last, message.size());
  // The length of the submessage stands before it, and is known only now.
  constexpr std::size_t kLongestLength = 4;
  Bytes length;
  length.reserve(kLongestLength);
  put_length(length, dnstap_field::kMessage, head.size() + message.size());
  head.insert(head.begin(), length.begin(), length.end());
}

}  // namespace pando::worker

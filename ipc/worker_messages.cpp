#include "ipc/worker_messages.h"

#include <concepts>
#include <tuple>
#include <type_traits>

#include "ipc/wire.h"

namespace pando::ipc {

namespace {

template <class Message, class T>
concept Is = std::same_as<std::remove_const_t<Message>, T>;

// The fields of each message, in the order of the wire.
auto fields(Is<SocketDescription> auto& m) {
  return std::tie(m.id, m.local, m.transport, m.position, m.orphaned);
}
auto fields(Is<XdpQueue> auto& m) { return std::tie(m.interface, m.queue); }
auto fields(Is<dns::TsigKey> auto& m) { return std::tie(m.name, m.algorithm, m.secret); }
auto fields(Is<HeldKey> auto& m) { return std::tie(m.name, m.algorithm); }

auto fields(Is<Hello> auto& m) {
  return std::tie(m.slot, m.pid, m.layout, m.sockets, m.xdp_queues, m.build);
}
auto fields(Is<Adopt> auto& m) { return std::tie(m.sockets); }
auto fields(Is<PeerIdentity> auto& m) { return std::tie(m.remotes); }
auto fields(Is<Forward> auto& m) {
  return std::tie(m.id, m.kind, m.transport, m.client, m.local, m.message, m.response, m.through,
                  m.peer);
}
auto fields(Is<SignTransfer> auto& m) {
  return std::tie(m.id, m.stream, m.last, m.request, m.message);
}
auto fields(Is<Drained> auto& m) { return std::tie(m.socket); }
auto fields(Is<TransferFinished> auto& m) {
  return std::tie(m.zone, m.client, m.incremental, m.end, m.serial, m.messages, m.bytes, m.records,
                  m.milliseconds);
}
auto fields(Is<Bye> auto&) { return std::tie(); }
auto fields(Is<DnstapLost> auto&) { return std::tie(); }
auto fields(Is<AdoptXdp> auto& m) { return std::tie(m.queue); }
auto fields(Is<XdpServing> auto& m) { return std::tie(m.queue); }
auto fields(Is<XdpClosed> auto& m) { return std::tie(m.queue); }

auto fields(Is<Setup> auto& m) { return std::tie(m.slot); }
auto fields(Is<Keys> auto& m) {
  return std::tie(m.first, m.last, m.shared, m.held, m.cookie_secrets);
}
auto fields(Is<Sockets> auto& m) { return std::tie(m.sockets, m.descriptors); }
auto fields(Is<CloseSockets> auto& m) { return std::tie(m.sockets); }
auto fields(Is<Reply> auto& m) { return std::tie(m.id, m.message); }
auto fields(Is<Finished> auto& m) { return std::tie(m.ids); }
auto fields(Is<Stop> auto& m) { return std::tie(m.grace_ms); }
auto fields(Is<SentAway> auto& m) { return std::tie(m.slot_taken); }
auto fields(Is<Logging> auto& m) { return std::tie(m.level, m.format); }
auto fields(Is<Dnstap> auto& m) {
  return std::tie(m.on, m.sample, m.queries, m.responses, m.updates, m.identity, m.version);
}
auto fields(Is<QueryLog> auto& m) { return std::tie(m.on, m.sample); }
auto fields(Is<ServeXdp> auto& m) {
  return std::tie(m.queue, m.mtu, m.frame_bytes, m.receive_frames, m.send_frames);
}
auto fields(Is<CloseXdp> auto& m) { return std::tie(m.queue); }

constexpr Transport last_of(Transport) { return Transport::kTls; }
constexpr ForwardKind last_of(ForwardKind) { return ForwardKind::kSignedQuery; }
constexpr TransferEnd last_of(TransferEnd) { return TransferEnd::kNotSigned; }
constexpr dns::TsigAlgorithm last_of(dns::TsigAlgorithm) { return dns::TsigAlgorithm::kSha512_256; }

/// Writes values of each type that a message has.
class ValueWriter {
 public:
  explicit ValueWriter(Encoder& out) : out_(out) {}

  void put(bool value) { out_.boolean(value); }
  void put(std::uint32_t value) { out_.u32(value); }
  void put(std::uint64_t value) { out_.u64(value); }
  void put(const std::string& value) { out_.text(value); }
  void put(const Bytes& value) { out_.bytes(value); }
  void put(const dns::Name& value) { out_.name(value); }
  void put(const Endpoint& value) { out_.endpoint(value); }
  void put(const CookieSecret& value) {
    for (const std::uint8_t octet : value) out_.u8(octet);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const T& element : list) put(element);
  }
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>)
      out_.u8(static_cast<std::uint8_t>(value));
    else
      std::apply([&](const auto&... field) { (put(field), ...); }, fields(value));
  }

 private:
  Encoder& out_;
};

/// Reads what ValueWriter wrote.
class ValueReader {
 public:
  explicit ValueReader(Decoder& in) : in_(in) {}

  void get(bool& value) { value = in_.boolean(); }
  void get(std::uint32_t& value) { value = in_.u32(); }
  void get(std::uint64_t& value) { value = in_.u64(); }
  void get(std::string& value) { value = in_.text(); }
  void get(Bytes& value) {
    const ByteView bytes = in_.bytes();
    value.assign(bytes.begin(), bytes.end());
  }
  void get(dns::Name& value) { value = in_.name(); }
  void get(Endpoint& value) { value = in_.endpoint(); }
  void get(CookieSecret& value) {
    for (std::uint8_t& octet : value) octet = in_.u8();
  }
  template <class T>
  void get(std::optional<T>& value) {
    if (in_.boolean()) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& list) {
    Bytes shortest;  // no element takes less than an empty one
    Encoder out(shortest);
    ValueWriter(out).put(T{});
    list.resize(in_.count(shortest.size()));
    for (T& element : list) get(element);
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_enum_v<T>)
      value = static_cast<T>(in_.choice(static_cast<std::uint8_t>(last_of(value))));
    else
      std::apply([&](auto&... field) { (get(field), ...); }, fields(value));
  }

 private:
  Decoder& in_;
};

// Each packet starts with protocol version (16 bits) and message number (8 bits): the position of
// the message in its variant.

template <class Variant>
Bytes encode_any(const Variant& message) {
  Bytes packet;
  Encoder out(packet);
  out.u16(kWorkerProtocol);
  out.u8(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& body) { ValueWriter(out).put(body); }, message);
  return packet;
}

/// Makes the alternative with number `index` current; false when there is none.
template <class Variant, std::size_t I = 0>
bool emplace_at(Variant& message, std::size_t index) {
  if constexpr (I < std::variant_size_v<Variant>) {
    if (index != I) return emplace_at<Variant, I + 1>(message, index);
    message.template emplace<I>();
    return true;
  } else {
    return false;
  }
}

template <class Variant>
Result<Variant> decode_any(ByteView packet) {
  Decoder in(packet);
  const std::uint16_t version = in.u16();
  if (!in.failed() && version != kWorkerProtocol)
    return fail(Errc::kUnsupported, "the other side speaks protocol {}, not {}", version,
                kWorkerProtocol);
  Variant message;
  if (const auto number = in.u8(); !emplace_at(message, number))
    return fail(Errc::kInvalid, "unknown message {}", number);
  std::visit([&](auto& body) { ValueReader(in).get(body); }, message);
  if (auto done = in.finish(); !done) return pass(done);
  return message;
}

}  // namespace

const char* to_text(TransferEnd end) noexcept {
  switch (end) {
    case TransferEnd::kUnknown:
      return "not told by the worker";
    case TransferEnd::kComplete:
      return "all sent";
    case TransferEnd::kClientLeft:
      return "the client closed the connection";
    case TransferEnd::kClientStalled:
      return "the client took nothing for limits.tcp-idle";
    case TransferEnd::kWorkerStopped:
      return "the worker stopped";
    case TransferEnd::kRecordTooLarge:
      return "a record fits no message";
    case TransferEnd::kDataDamaged:
      return "the zone's data in the store are damaged";
    case TransferEnd::kVersionGone:
      return "the store needed the space of the version";
    case TransferEnd::kZoneGone:
      return "the zone was removed";
    case TransferEnd::kSignatureRefused:
      return "the request's signature was refused";
    case TransferEnd::kNotSigned:
      return "the manager did not sign a message";
  }
  return "?";
}

Bytes encode(const FromWorker& message) { return encode_any(message); }
Bytes encode(const ToWorker& message) { return encode_any(message); }
Result<FromWorker> decode_from_worker(ByteView packet) { return decode_any<FromWorker>(packet); }
Result<ToWorker> decode_to_worker(ByteView packet) { return decode_any<ToWorker>(packet); }

}  // namespace pando::ipc

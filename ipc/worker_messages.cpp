#include "ipc/worker_messages.h"

#include <type_traits>

#include "ipc/wire.h"

namespace pando::ipc {

namespace {

// Each packet starts with protocol version (16 bits) and message number (8 bits): the position of
// the message in its variant.
constexpr std::size_t kLeastSocketBytes = 4 + 16 + 2 + 1 + 4 + 1;
constexpr std::uint8_t kLastAlgorithm = static_cast<std::uint8_t>(dns::TsigAlgorithm::kSha512_256);

void put(Encoder& out, const SocketDescription& socket) {
  out.u32(socket.id);
  out.endpoint(socket.local);
  out.u8(static_cast<std::uint8_t>(socket.transport));
  out.u32(socket.position);
  out.boolean(socket.orphaned);
}

void get(Decoder& in, SocketDescription& socket) {
  socket.id = in.u32();
  socket.local = in.endpoint();
  socket.transport = static_cast<Transport>(in.choice(2));
  socket.position = in.u32();
  socket.orphaned = in.boolean();
}

void put(Encoder& out, const std::vector<SocketDescription>& sockets) {
  out.u32(static_cast<std::uint32_t>(sockets.size()));
  for (const auto& socket : sockets) put(out, socket);
}

void get(Decoder& in, std::vector<SocketDescription>& sockets) {
  sockets.resize(in.count(kLeastSocketBytes));
  for (auto& socket : sockets) get(in, socket);
}

void put(Encoder& out, const XdpQueue& queue) {
  out.text(queue.interface);
  out.u32(queue.queue);
}

void get(Decoder& in, XdpQueue& queue) {
  queue.interface = in.text();
  queue.queue = in.u32();
}

void put(Encoder& out, const Hello& hello) {
  out.u32(hello.slot);
  out.u32(hello.pid);
  out.u64(hello.layout);
  out.u32(hello.sockets);
  out.u32(hello.xdp_queues);
  out.text(hello.build);
}

void get(Decoder& in, Hello& hello) {
  hello.slot = in.u32();
  hello.pid = in.u32();
  hello.layout = in.u64();
  hello.sockets = in.u32();
  hello.xdp_queues = in.u32();
  hello.build = in.text();
}

void put(Encoder& out, const Adopt& adopt) { put(out, adopt.sockets); }
void get(Decoder& in, Adopt& adopt) { get(in, adopt.sockets); }

void put(Encoder& out, const Forward& forward) {
  out.u64(forward.id);
  out.u8(static_cast<std::uint8_t>(forward.kind));
  out.u8(static_cast<std::uint8_t>(forward.transport));
  out.endpoint(forward.client);
  out.endpoint(forward.local);
  out.bytes(forward.message);
  out.bytes(forward.response);
  out.boolean(forward.through.has_value());
  if (forward.through) out.u32(*forward.through);
}

void get(Decoder& in, Forward& forward) {
  forward.id = in.u64();
  forward.kind = static_cast<ForwardKind>(in.choice(2));
  forward.transport = static_cast<Transport>(in.choice(2));
  forward.client = in.endpoint();
  forward.local = in.endpoint();
  const ByteView message = in.bytes();
  forward.message.assign(message.begin(), message.end());
  const ByteView response = in.bytes();
  forward.response.assign(response.begin(), response.end());
  if (in.boolean()) forward.through = in.u32();
}

void put(Encoder& out, const SignTransfer& sign) {
  out.u64(sign.id);
  out.u64(sign.stream);
  out.boolean(sign.last);
  out.bytes(sign.request);
  out.bytes(sign.message);
}

void get(Decoder& in, SignTransfer& sign) {
  sign.id = in.u64();
  sign.stream = in.u64();
  sign.last = in.boolean();
  const ByteView request = in.bytes();
  sign.request.assign(request.begin(), request.end());
  const ByteView message = in.bytes();
  sign.message.assign(message.begin(), message.end());
}

void put(Encoder& out, const Drained& drained) { out.u32(drained.socket); }
void get(Decoder& in, Drained& drained) { drained.socket = in.u32(); }

void put(Encoder& out, const TransferFinished& transfer) {
  out.name(transfer.zone);
  out.endpoint(transfer.client);
  out.boolean(transfer.incremental);
  out.u8(static_cast<std::uint8_t>(transfer.end));
  out.u32(transfer.serial);
  out.u64(transfer.messages);
  out.u64(transfer.bytes);
  out.u64(transfer.records);
  out.u32(transfer.milliseconds);
}

void get(Decoder& in, TransferFinished& transfer) {
  transfer.zone = in.name();
  transfer.client = in.endpoint();
  transfer.incremental = in.boolean();
  transfer.end =
      static_cast<TransferEnd>(in.choice(static_cast<std::uint8_t>(TransferEnd::kNotSigned)));
  transfer.serial = in.u32();
  transfer.messages = in.u64();
  transfer.bytes = in.u64();
  transfer.records = in.u64();
  transfer.milliseconds = in.u32();
}

void put(Encoder&, const Bye&) {}
void get(Decoder&, Bye&) {}

void put(Encoder&, const DnstapLost&) {}
void get(Decoder&, DnstapLost&) {}

void put(Encoder& out, const AdoptXdp& adopt) { put(out, adopt.queue); }
void get(Decoder& in, AdoptXdp& adopt) { get(in, adopt.queue); }

void put(Encoder& out, const XdpServing& serving) { put(out, serving.queue); }
void get(Decoder& in, XdpServing& serving) { get(in, serving.queue); }

void put(Encoder& out, const XdpClosed& closed) { put(out, closed.queue); }
void get(Decoder& in, XdpClosed& closed) { get(in, closed.queue); }

void put(Encoder& out, const Setup& setup) {
  out.u32(setup.slot);
}

void get(Decoder& in, Setup& setup) {
  setup.slot = in.u32();
}

void put(Encoder& out, const Keys& keys) {
  out.boolean(keys.first);
  out.boolean(keys.last);
  out.u32(static_cast<std::uint32_t>(keys.shared.size()));
  for (const auto& key : keys.shared) {
    out.name(key.name);
    out.u8(static_cast<std::uint8_t>(key.algorithm));
    out.bytes(key.secret);
  }
  out.u32(static_cast<std::uint32_t>(keys.held.size()));
  for (const auto& key : keys.held) {
    out.name(key.name);
    out.u8(static_cast<std::uint8_t>(key.algorithm));
  }
  out.u32(static_cast<std::uint32_t>(keys.cookie_secrets.size()));
  for (const auto& secret : keys.cookie_secrets)
    for (const auto byte : secret) out.u8(byte);
}

void get(Decoder& in, Keys& keys) {
  keys.first = in.boolean();
  keys.last = in.boolean();
  keys.shared.resize(in.count(10));  // name 4+1, algorithm 1, secret's length 4
  for (auto& key : keys.shared) {
    key.name = in.name();
    key.algorithm = static_cast<dns::TsigAlgorithm>(in.choice(kLastAlgorithm));
    const ByteView secret = in.bytes();
    key.secret.assign(secret.begin(), secret.end());
  }
  keys.held.resize(in.count(6));
  for (auto& key : keys.held) {
    key.name = in.name();
    key.algorithm = static_cast<dns::TsigAlgorithm>(in.choice(kLastAlgorithm));
  }
  keys.cookie_secrets.resize(in.count(16));
  for (auto& secret : keys.cookie_secrets)
    for (auto& byte : secret) byte = in.u8();
}

void put(Encoder& out, const Sockets& sockets) {
  put(out, sockets.sockets);
  out.u32(sockets.descriptors);
}

void get(Decoder& in, Sockets& sockets) {
  get(in, sockets.sockets);
  sockets.descriptors = in.u32();
}

void put(Encoder& out, const CloseSockets& close) {
  out.u32(static_cast<std::uint32_t>(close.sockets.size()));
  for (const auto id : close.sockets) out.u32(id);
}

void get(Decoder& in, CloseSockets& close) {
  close.sockets.resize(in.count(4));
  for (auto& id : close.sockets) id = in.u32();
}

void put(Encoder& out, const Reply& reply) {
  out.u64(reply.id);
  out.bytes(reply.message);
}

void get(Decoder& in, Reply& reply) {
  reply.id = in.u64();
  const ByteView message = in.bytes();
  reply.message.assign(message.begin(), message.end());
}

void put(Encoder& out, const Finished& finished) {
  out.u32(static_cast<std::uint32_t>(finished.ids.size()));
  for (const auto id : finished.ids) out.u64(id);
}

void get(Decoder& in, Finished& finished) {
  finished.ids.resize(in.count(8));
  for (auto& id : finished.ids) id = in.u64();
}

void put(Encoder& out, const Stop& stop) { out.u32(stop.grace_ms); }
void get(Decoder& in, Stop& stop) { stop.grace_ms = in.u32(); }

void put(Encoder& out, const SentAway& away) { out.boolean(away.slot_taken); }
void get(Decoder& in, SentAway& away) { away.slot_taken = in.boolean(); }

void put(Encoder& out, const Logging& logging) {
  out.text(logging.level);
  out.text(logging.format);
}

void get(Decoder& in, Logging& logging) {
  logging.level = in.text();
  logging.format = in.text();
}

void put(Encoder& out, const Dnstap& dnstap) {
  out.boolean(dnstap.on);
  out.u32(dnstap.sample);
  out.boolean(dnstap.queries);
  out.boolean(dnstap.responses);
  out.boolean(dnstap.updates);
  out.text(dnstap.identity);
  out.text(dnstap.version);
}

void get(Decoder& in, Dnstap& dnstap) {
  dnstap.on = in.boolean();
  dnstap.sample = in.u32();
  dnstap.queries = in.boolean();
  dnstap.responses = in.boolean();
  dnstap.updates = in.boolean();
  dnstap.identity = in.text();
  dnstap.version = in.text();
}

void put(Encoder& out, const QueryLog& log) {
  out.boolean(log.on);
  out.u32(log.sample);
}

void get(Decoder& in, QueryLog& log) {
  log.on = in.boolean();
  log.sample = in.u32();
}

void put(Encoder& out, const ServeXdp& serve) {
  put(out, serve.queue);
  out.u32(serve.mtu);
  out.u32(serve.frame_bytes);
  out.u32(serve.receive_frames);
  out.u32(serve.send_frames);
}

void get(Decoder& in, ServeXdp& serve) {
  get(in, serve.queue);
  serve.mtu = in.u32();
  serve.frame_bytes = in.u32();
  serve.receive_frames = in.u32();
  serve.send_frames = in.u32();
}

void put(Encoder& out, const CloseXdp& close) { put(out, close.queue); }
void get(Decoder& in, CloseXdp& close) { get(in, close.queue); }

template <class Variant>
Bytes encode_any(const Variant& message) {
  Bytes packet;
  Encoder out(packet);
  out.u16(kWorkerProtocol);
  out.u8(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& body) { put(out, body); }, message);
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
  std::visit([&](auto& body) { get(in, body); }, message);
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

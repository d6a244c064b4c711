#include "ipc/worker_messages.h"

#include <tuple>

#include "ipc/codec/message_codec.h"

namespace pando::ipc {

namespace {

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
                  m.milliseconds, m.peer);
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
auto fields(Is<TlsIntake> auto& m) { return std::tie(m.slot); }

constexpr Transport last_of(Transport) { return Transport::kTls; }
constexpr ForwardKind last_of(ForwardKind) { return ForwardKind::kSignedQuery; }
constexpr TransferEnd last_of(TransferEnd) { return TransferEnd::kNotSigned; }
constexpr dns::TsigAlgorithm last_of(dns::TsigAlgorithm) { return dns::TsigAlgorithm::kSha512_256; }

/// The fields above, for the codec.
struct WorkerFields {
  template <class Message>
  static auto of(Message& message) {
    return fields(message);
  }
  template <class Enum>
  static constexpr Enum last(Enum value) {
    return last_of(value);
  }
};
using Codec = MessageCodec<WorkerFields, kWorkerProtocol>;

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

Bytes encode(const FromWorker& message) { return Codec::encode(message); }
Bytes encode(const ToWorker& message) { return Codec::encode(message); }
Result<FromWorker> decode_from_worker(ByteView packet) {
  return Codec::decode<FromWorker>(packet);
}
Result<ToWorker> decode_to_worker(ByteView packet) { return Codec::decode<ToWorker>(packet); }

}  // namespace pando::ipc

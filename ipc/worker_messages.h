#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/net/peer_identity.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/tsig/tsig.h"

/// The messages of manager and worker over a Unix SOCK_SEQPACKET connection. One message is one
/// packet (ipc/packet_socket.h); descriptors travel beside it in the order named here. Forms are
/// explicit: big-endian fields, counted strings, no copied structs. Both sides treat received data
/// as hostile: a worker that was taken over must not take the manager with it.
namespace pando::ipc {

inline constexpr std::uint16_t kWorkerProtocol = 7;
/// A signed query of 64 KiB and the response to it fit into one packet.
inline constexpr std::size_t kMaxPacketBytes = std::size_t{132} << 10;
inline constexpr std::size_t kMaxPacketDescriptors = 16;
/// Name of the manager's listening socket in the run directory.
inline constexpr const char* kWorkerSocketName = "workers.sock";

enum class Transport : std::uint8_t { kUdp = 0, kTcp = 1, kTls = 2 };

/// One listening socket of a slot. `id` is the manager's number for the socket. `position` is its
/// place in the kernel's SO_REUSEPORT group, which a later manager needs to steer traffic away from
/// it.
struct SocketDescription {
  std::uint32_t id = 0;
  Endpoint local;
  Transport transport = Transport::kUdp;
  std::uint32_t position = 0;
  /// of a dead slot: the worker reads the socket until it is empty, then sends Drained
  bool orphaned = false;
  bool operator==(const SocketDescription&) const = default;
};

/// One receive queue of a network interface, which one worker serves by an AF_XDP socket.
struct XdpQueue {
  std::string interface{};
  std::uint32_t queue = 0;
  auto operator<=>(const XdpQueue&) const = default;
};

// Worker → manager ------------------------------------------------------------------------------

/// First packet of each connection. `sockets`: how many sockets a worker that survived its manager
/// will hand back in the Adopt packets that follow, and `xdp_queues` in AdoptXdp packets. `build`:
/// own_build() of its program.
struct Hello {
  std::uint32_t slot = 0;
  std::uint32_t pid = 0;
  std::uint64_t layout = 0;
  std::uint32_t sockets = 0;
  std::uint32_t xdp_queues = 0;
  std::string build{};
  bool operator==(const Hello&) const = default;
};
/// Sockets the worker serves; one descriptor each.
struct Adopt {
  std::vector<SocketDescription> sockets;
  bool operator==(const Adopt&) const = default;
};

enum class ForwardKind : std::uint8_t { kUpdate = 0, kNotify = 1, kSignedQuery = 2 };
/// A request that only the manager can answer. For kSignedQuery `response` is the unsigned
/// response: the manager verifies the request's TSIG and gives the signed response, or the error
/// response. With `through`, a UDP socket of the slot, the manager may send to `client` itself: the
/// worker need not wake up for that. A wildcard socket sends from `local`. `peer`: of a client over
/// TLS, and of no other.
struct Forward {
  std::uint64_t id = 0;
  ForwardKind kind = ForwardKind::kUpdate;
  Transport transport = Transport::kUdp;
  Endpoint client;
  Endpoint local;
  Bytes message;
  Bytes response;
  std::optional<std::uint32_t> through{};
  std::optional<PeerIdentity> peer{};
  bool operator==(const Forward&) const = default;
};
/// One message of a transfer out whose request was signed with a key that only the manager has. The
/// first message carries the request: the manager verifies it and keeps the signing state under
/// `stream` until `last` (RFC 8945 §5.3.1). The Reply has the signed message, or an error response
/// in place of the first message. An empty Reply ends the transfer. A packet with `last` and no
/// message ends an aborted stream and gets no Reply.
struct SignTransfer {
  std::uint64_t id = 0;
  std::uint64_t stream = 0;
  bool last = false;
  Bytes request;
  Bytes message;
  [[nodiscard]] bool aborts() const noexcept { return last && message.empty(); }
  bool operator==(const SignTransfer&) const = default;
};
/// An orphaned socket was empty, and the worker has closed it.
struct Drained {
  std::uint32_t socket = 0;
  bool operator==(const Drained&) const = default;
};
/// The end of a transfer out. On the wire the first two values are those of "complete, or not" of
/// builds that knew no reason.
enum class TransferEnd : std::uint8_t {
  kUnknown = 0,
  kComplete,
  kClientLeft,      ///< closed or reset the connection
  kClientStalled,   ///< took no octet for limits.tcp-idle
  kWorkerStopped,   ///< the worker closed its connections
  kRecordTooLarge,  ///< no message can hold the record
  kDataDamaged,
  kVersionGone,  ///< the store needed the space of the version that was being sent
  kZoneGone,
  kSignatureRefused,  ///< the client got an error in place of the first message
  kNotSigned,         ///< the manager did not sign a message
};
[[nodiscard]] const char* to_text(TransferEnd end) noexcept;

/// One transfer out has ended, for the manager's log.
struct TransferFinished {
  dns::Name zone;
  Endpoint client;
  bool incremental = false;
  TransferEnd end = TransferEnd::kUnknown;
  std::uint32_t serial = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::uint32_t milliseconds = 0;
  std::optional<PeerIdentity> peer{};  ///< as in Forward
  bool operator==(const TransferFinished&) const = default;
};
/// The dnstap stream that the worker had has broken, and the worker has closed it.
struct DnstapLost {
  bool operator==(const DnstapLost&) const = default;
};
/// A queue that the worker serves. Two descriptors: the AF_XDP socket, and the link that keeps the
/// program at the interface.
struct AdoptXdp {
  XdpQueue queue;
  bool operator==(const AdoptXdp&) const = default;
};
/// The worker has given the queue's socket its frames, so that the socket may get the queue's.
struct XdpServing {
  XdpQueue queue;
  bool operator==(const XdpServing&) const = default;
};
/// The worker has read the queue's socket to its end, and has closed it.
struct XdpClosed {
  XdpQueue queue;
  bool operator==(const XdpClosed&) const = default;
};
/// The worker leaves now; it has answered its last queries.
struct Bye {
  bool operator==(const Bye&) const = default;
};

// Manager → worker ------------------------------------------------------------------------------

/// The data, by descriptor: the store, the slot's file, and the file of a store's image
/// (shm/borrowing.h) or none. Sent once a connection, and again when the image is no longer needed.
/// A worker that is not attached yet attaches. A worker opens no file itself.
struct Setup {
  std::uint32_t slot = 0;
  bool operator==(const Setup&) const = default;
};
/// A key that stays in the manager: a worker knows its name and algorithm only.
struct HeldKey {
  dns::Name name;
  dns::TsigAlgorithm algorithm{};
  bool operator==(const HeldKey&) const = default;
};
using CookieSecret = std::array<std::uint8_t, 16>;
/// TSIG keys and cookie secrets. A list too long for one packet comes in several: the first has
/// `first`, the last `last`. The worker switches to the new list after the last packet.
struct Keys {
  bool first = true;
  bool last = true;
  std::vector<dns::TsigKey> shared;          ///< for queries and transfers
  std::vector<HeldKey> held;                 ///< named in an allow-update
  std::vector<CookieSecret> cookie_secrets;  ///< first packet only; the first one signs
};
/// Sockets to serve from now on; for sockets known by id, new positions. Each new socket comes with
/// one descriptor, a known one with none. The first `descriptors` sockets are the new ones.
struct Sockets {
  std::vector<SocketDescription> sockets;
  std::uint32_t descriptors = 0;
  bool operator==(const Sockets&) const = default;
};
/// Stop serving these sockets and close them.
struct CloseSockets {
  std::vector<std::uint32_t> sockets;
  bool operator==(const CloseSockets&) const = default;
};
/// Answer to a Forward; empty = send nothing to the client.
struct Reply {
  std::uint64_t id = 0;
  Bytes message;
  bool operator==(const Reply&) const = default;
};
/// Requests whose responses the manager has sent itself (Forward::through), some time ago.
struct Finished {
  std::vector<std::uint64_t> ids;
  bool operator==(const Finished&) const = default;
};
/// Tells the worker to answer queued queries, let connections end (at most `grace_ms`), send Bye,
/// and leave.
struct Stop {
  std::uint32_t grace_ms = 0;
  bool operator==(const Stop&) const = default;
};

/// Before Stop, to a process that is no worker of this manager: it should not be started again.
struct SentAway {
  bool slot_taken = false;  ///< another process has the slot; else nobody may start workers
  bool operator==(const SentAway&) const = default;
};

/// Level and format of the worker's log (server.log). Unknown words select the defaults.
struct Logging {
  std::string level;   ///< as in log::Options
  std::string format;  ///< as in log::Options
  bool operator==(const Logging&) const = default;
};

/// Settings of the messages for a dnstap collector (server.dnstap). At most one descriptor: an
/// opened stream, which replaces the one before. Without one the worker keeps the stream it has.
/// With `on` false the worker ends its stream.
struct Dnstap {
  bool on = false;
  std::uint32_t sample = 1;  ///< one request in this many
  bool queries = false;
  bool responses = false;
  bool updates = false;
  std::string identity;  ///< of this server, in each message
  std::string version;   ///< the same
  bool operator==(const Dnstap&) const = default;
};

/// Settings of the query log (server.query-log). At most one descriptor: a stream for its lines, as
/// in Dnstap. The manager reads the other end of the stream.
struct QueryLog {
  bool on = false;
  std::uint32_t sample = 1;  ///< one request in this many
  bool operator==(const QueryLog&) const = default;
};

/// Serve this queue of an interface from now on (server.xdp). Three descriptors come with it: an
/// AF_XDP socket that is bound to the queue, the memory of its frames, and the program's link. The
/// link keeps the program at the interface while any worker lives. The memory has `receive_frames`
/// and then `send_frames` frames of `frame_bytes` each. The fill and receive rings are as long as
/// the former, the others as the latter.
struct ServeXdp {
  XdpQueue queue;
  std::uint32_t mtu = 0;  ///< of the interface
  std::uint32_t frame_bytes = 0;
  std::uint32_t receive_frames = 0;
  std::uint32_t send_frames = 0;
  bool operator==(const ServeXdp&) const = default;
};
/// No more frames reach the queue's socket: answer the frames that have arrived, then close it.
struct CloseXdp {
  XdpQueue queue;
  bool operator==(const CloseXdp&) const = default;
};

/// One descriptor: a packet connection to the process of pando-tls in this slot, which passes its
/// clients through it (ipc/tls_messages.h). It replaces an earlier one of that slot.
struct TlsIntake {
  std::uint32_t slot = 0;
  bool operator==(const TlsIntake&) const = default;
};

using FromWorker = std::variant<Hello, Adopt, Forward, SignTransfer, Drained, TransferFinished, Bye,
                                DnstapLost, AdoptXdp, XdpServing, XdpClosed>;
using ToWorker = std::variant<Setup, Keys, Sockets, CloseSockets, Reply, Stop, Finished, Logging,
                              Dnstap, QueryLog, ServeXdp, CloseXdp, SentAway, TlsIntake>;

Bytes encode(const FromWorker& message);
Bytes encode(const ToWorker& message);
/// kInvalid or kTruncated for anything that is not exactly one message of this protocol version;
/// kUnsupported for another version.
Result<FromWorker> decode_from_worker(ByteView packet);
Result<ToWorker> decode_to_worker(ByteView packet);

}  // namespace pando::ipc

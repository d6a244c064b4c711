#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "ipc/worker_messages.h"

/// The messages of pando-tls, over Unix SOCK_SEQPACKET connections: to the manager, which gives it
/// all that it needs, and to each worker, which gets connections. Forms are those of
/// ipc/worker_messages.h. All sides treat received data as hostile, because pando-tls reads what
/// strangers send.
namespace pando::ipc {

inline constexpr std::uint16_t kTlsProtocol = 1;
/// Name of the manager's listening socket in the run directory.
inline constexpr const char* kTlsSocketName = "tls.sock";
/// A remote has four pins at most.
inline constexpr std::size_t kMaxPins = 4;
/// Limit of a file that comes by descriptor: a list of authorities takes some 200 KiB.
inline constexpr std::size_t kMaxTlsFileBytes = std::size_t{16} << 20;

// pando-tls → manager ---------------------------------------------------------------------------

/// First packet of each connection. `build`: own_build() of the program.
struct TlsHello {
  std::uint32_t slot = 0;
  std::string build{};
  bool operator==(const TlsHello&) const = default;
};
/// The result of the last TlsCertificate. `fault`: why the pair cannot be used; empty: it is in use.
/// After a fault the pair before stays in use.
struct TlsCertificateResult {
  std::string fault{};
  bool operator==(const TlsCertificateResult&) const = default;
};
/// Totals since the process began.
struct TlsCounts {
  std::uint64_t accepted = 0;    ///< TCP connections
  std::uint64_t refused = 0;     ///< for a limit, before the handshake
  std::uint64_t handshakes = 0;  ///< complete, resumed ones among them
  std::uint64_t resumed = 0;     ///< by a ticket
  std::uint64_t failed = 0;      ///< handshakes that ended with a fault of the client
  std::uint64_t timeouts = 0;    ///< handshakes that took too long
  std::uint64_t identified = 0;  ///< connections whose certificate is a remote's
  std::uint64_t open = 0;        ///< connections now
  bool operator==(const TlsCounts&) const = default;
};

// Manager → pando-tls ---------------------------------------------------------------------------

/// The certificate of the server and its key. One descriptor: a file of at most kMaxTlsFileBytes
/// with the key and the certificates, the own one first, in PEM. The reader wipes its copy and
/// closes the descriptor.
struct TlsCertificate {
  bool operator==(const TlsCertificate&) const = default;
};
/// Keys of session tickets (RFC 8446 §4.6.1): the first encrypts, both decrypt.
using TlsTicketKey = std::array<std::uint8_t, 80>;
struct TlsTicketKeys {
  std::vector<TlsTicketKey> keys;
  bool operator==(const TlsTicketKeys&) const = default;
};
/// The certificate that a client has to show to be the remote of this name. Given both, name and
/// pin must hold. Without either, no client is this remote.
struct TlsDemand {
  std::string remote;
  std::string hostname{};     ///< the certificate is valid for it, by an authority of `ca`; or empty
  Bytes ca{};                 ///< certificates of the authorities in PEM
  std::vector<Bytes> pins{};  ///< SHA-256 of the public key (SubjectPublicKeyInfo), 32 octets each
  bool operator==(const TlsDemand&) const = default;
};
/// The demands of all remotes that some rule names. One descriptor: a file with encode(demands),
/// since lists of authorities fit into no packet. Connections with an identity end if the demands
/// have changed.
struct TlsDemands {
  bool operator==(const TlsDemands&) const = default;
};
struct TlsLimits {
  std::uint32_t connections = 1000;      ///< at one time, a quarter of them from one address or /64
  std::uint32_t handshakes = 1024;       ///< connections whose TLS handshake is under way
  std::uint32_t handshakes_second = 20;  ///< from one address or /64
  std::uint32_t handshake_ms = 10'000;
  std::uint32_t idle_ms = 30'000;  ///< without progress towards the client, once the worker has ended
  std::vector<IpPrefix> proxies{};  ///< addresses that put a PROXY header before the handshake
  bool operator==(const TlsLimits&) const = default;
};
/// Listening sockets to serve from now on, with one descriptor each.
struct TlsListen {
  std::vector<SocketDescription> sockets;
  bool operator==(const TlsListen&) const = default;
};
/// Close these sockets; connections go on.
struct TlsUnlisten {
  std::vector<std::uint32_t> sockets;
  bool operator==(const TlsUnlisten&) const = default;
};
/// One descriptor: the connection to the worker of this slot, which takes TlsConnection. It replaces
/// an earlier one to that slot.
struct TlsWorker {
  std::uint32_t slot = 0;
  bool operator==(const TlsWorker&) const = default;
};
/// Stop listening, and leave once all connections have ended, after `grace_ms` at most.
struct TlsStop {
  std::uint32_t grace_ms = 0;
  bool operator==(const TlsStop&) const = default;
};

using FromTls = std::variant<TlsHello, TlsCertificateResult, TlsCounts>;
using ToTls = std::variant<TlsCertificate, TlsTicketKeys, TlsDemands, TlsLimits, TlsListen,
                           TlsUnlisten, TlsWorker, Logging, TlsStop>;

// pando-tls → worker ----------------------------------------------------------------------------

/// A client whose handshake is complete. One descriptor: a stream socket with the plain octets. The
/// worker never answers on the packet connection.
struct TlsConnection {
  Endpoint client;  ///< behind a PROXY header: the client's
  Endpoint local;   ///< the same for the address that the client asked
  std::string alpn{};            ///< "dot", or empty: the client named none
  std::uint32_t version = 0;     ///< of TLS, as on the wire: 0x0304
  std::vector<std::string> remotes{};  ///< whose demands the client's certificate meets
  bool operator==(const TlsConnection&) const = default;
};

Bytes encode(const FromTls& message);
Bytes encode(const ToTls& message);
Bytes encode(const TlsConnection& message);
Bytes encode(const std::vector<TlsDemand>& demands);
/// kInvalid or kTruncated for anything that is not exactly one message of this protocol version;
/// kUnsupported for another version.
Result<FromTls> decode_from_tls(ByteView packet);
Result<ToTls> decode_to_tls(ByteView packet);
Result<TlsConnection> decode_tls_connection(ByteView packet);
/// Also kInvalid: more than kMaxPins pins, or a pin of another length.
Result<std::vector<TlsDemand>> decode_tls_demands(ByteView octets);

/// A sealed file in memory with these octets, to be passed by descriptor. Its pages are in no
/// process's address space.
Result<Fd> make_tls_file(ByteView octets);
/// All octets of such a file. kFull: more than kMaxTlsFileBytes.
Result<Bytes> read_tls_file(int file);

}  // namespace pando::ipc

#include "ipc/tls_messages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/files/file_status.h"
#include "ipc/codec/message_codec.h"

namespace pando::ipc {

namespace {

/// A list of demands as the only message of its kind.
struct DemandList {
  std::vector<TlsDemand> demands;
};

/// The fields of each message, in the order of the wire.
struct TlsFields {
  static auto of(Is<SocketDescription> auto& m) {
    return std::tie(m.id, m.local, m.transport, m.position, m.orphaned);
  }
  static auto of(Is<TlsHello> auto& m) { return std::tie(m.slot, m.build); }
  static auto of(Is<TlsCertificateResult> auto& m) { return std::tie(m.fault); }
  static auto of(Is<TlsCounts> auto& m) {
    return std::tie(m.accepted, m.refused, m.handshakes, m.resumed, m.failed, m.timeouts,
                    m.identified, m.open);
  }
  static auto of(Is<TlsCertificate> auto&) { return std::tie(); }
  static auto of(Is<TlsTicketKeys> auto& m) { return std::tie(m.keys); }
  static auto of(Is<TlsDemand> auto& m) { return std::tie(m.remote, m.hostname, m.ca, m.pins); }
  static auto of(Is<DemandList> auto& m) { return std::tie(m.demands); }
  static auto of(Is<TlsDemands> auto&) { return std::tie(); }
  static auto of(Is<TlsLimits> auto& m) {
    return std::tie(m.connections, m.handshakes, m.handshakes_second, m.handshake_ms, m.idle_ms,
                    m.proxies);
  }
  static auto of(Is<TlsListen> auto& m) { return std::tie(m.sockets); }
  static auto of(Is<TlsUnlisten> auto& m) { return std::tie(m.sockets); }
  static auto of(Is<TlsWorker> auto& m) { return std::tie(m.slot); }
  static auto of(Is<Logging> auto& m) { return std::tie(m.level, m.format); }
  static auto of(Is<TlsStop> auto& m) { return std::tie(m.grace_ms); }
  static auto of(Is<TlsConnection> auto& m) {
    return std::tie(m.client, m.local, m.alpn, m.version, m.remotes);
  }
  static constexpr Transport last(Transport) { return Transport::kTls; }
};
using TlsCodec = MessageCodec<TlsFields, kTlsProtocol>;
using OneConnection = std::variant<TlsConnection>;
using OneDemandList = std::variant<DemandList>;

}  // namespace

Bytes encode(const FromTls& message) { return TlsCodec::encode(message); }
Bytes encode(const ToTls& message) { return TlsCodec::encode(message); }
Bytes encode(const TlsConnection& message) { return TlsCodec::encode(OneConnection(message)); }
Bytes encode(const std::vector<TlsDemand>& demands) {
  return TlsCodec::encode(OneDemandList(DemandList{demands}));
}

Result<FromTls> decode_from_tls(ByteView packet) { return TlsCodec::decode<FromTls>(packet); }
Result<ToTls> decode_to_tls(ByteView packet) { return TlsCodec::decode<ToTls>(packet); }

Result<TlsConnection> decode_tls_connection(ByteView packet) {
  auto one = TlsCodec::decode<OneConnection>(packet);
  if (!one) return pass(one);
  return std::get<TlsConnection>(std::move(*one));
}

Result<std::vector<TlsDemand>> decode_tls_demands(ByteView octets) {
  constexpr std::size_t kPinOctets = 32;
  auto one = TlsCodec::decode<OneDemandList>(octets);
  if (!one) return pass(one);
  auto& demands = std::get<DemandList>(*one).demands;
  for (const TlsDemand& demand : demands) {
    const bool good = std::all_of(demand.pins.begin(), demand.pins.end(), [](const Bytes& pin) {
      return pin.size() == kPinOctets;
    });
    if (!good || demand.pins.size() > kMaxPins)
      return fail(Errc::kInvalid, "pins of remote {}", demand.remote);
  }
  return std::move(demands);
}

Result<Fd> make_tls_file(ByteView octets) {
  Fd file(::memfd_create("pando-tls", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return fail_errno("memfd_create");
  std::size_t at = 0;
  while (at < octets.size()) {
    const ssize_t put = ::write(file.get(), octets.data() + at, octets.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno("write to memfd");
    at += static_cast<std::size_t>(put);
  }
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno("fcntl(F_ADD_SEALS)");
  return file;
}

Result<Bytes> read_tls_file(int file) {
  struct stat status{};
  if (!file_status(file, status)) return fail_errno("fstat");
  if (status.st_size < 0 || static_cast<std::size_t>(status.st_size) > kMaxTlsFileBytes)
    return fail(Errc::kFull, "{} bytes are too many", status.st_size);
  Bytes octets(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < octets.size()) {
    const ssize_t got = ::pread(file, octets.data() + at, octets.size() - at,
                                static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("pread");
    if (got == 0) return fail(Errc::kTruncated, "the file was cut");
    at += static_cast<std::size_t>(got);
  }
  return octets;
}

}  // namespace pando::ipc

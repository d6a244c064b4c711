#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "ipc/control_results.h"
#include "ipc/control_verbs.h"

/// The control socket: what pandoctl and the manager say to each other.
///
/// AF_UNIX SOCK_SEQPACKET at <run-directory>/control.sock. The client sends one request and gets
/// one reply; it may then send the next request on the same connection. A message is JSON text
/// (UTF-8):
///
///     request  {"verb": "zone-status", "args": {"name": "example.com."}}
///     reply    {"ok": true, "result": {...}}
///              {"ok": false, "code": "not-found", "error": "no zone example.com."}
///
/// A message is sent as one packet or more, because a packet must fit the socket's send buffer. The
/// first byte of each packet says whether more packets of this message follow ('+') or not ('.').
/// The rest is a stretch of the JSON text. The last packet of a request may carry one descriptor
/// (SCM_RIGHTS): ControlRequest::descriptor.
///
/// ipc/control_verbs.h has the verbs with their arguments, ipc/control_results.h the results.
/// docs/reference/control-protocol.md describes all this for authors of other clients.
///
/// An unknown verb gets code "unsupported"; unknown arguments and result fields are ignored, so
/// that programs of neighbouring versions understand each other.
namespace pando::ipc {

inline constexpr std::string_view kControlSocketName = "control.sock";
/// Largest packet in bytes, its first byte included. This size is well below the default send
/// buffer (net.core.wmem_default, 208 KiB), of which the kernel takes its own part.
inline constexpr std::size_t kControlPacketBytes = std::size_t{128} << 10;
/// Room for ten thousand added zones in one request, which takes some 10 ms to parse.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxReplyBytes = std::size_t{16} << 20;
inline constexpr char kPacketContinues = '+';
inline constexpr char kPacketEnds = '.';
/// Rows of one zone-list page: the default and the maximum.
inline constexpr std::uint32_t kZonePageRows = 1000;

/// Value of an absent numeric argument for which each number of 32 bits has a meaning.
inline constexpr std::uint64_t kAbsent = UINT64_MAX;

/// A request as both sides handle it; absent arguments have their defaults.
struct ControlRequest {
  std::string verb{};
  std::string name{};   ///< args.name: zone
  std::string label{};  ///< args.label: snapshot of the zone; settings that the client has
  std::string to{};     ///< args.to: file; empty = the zone's own
  std::string after{};  ///< args.after: the list starts after this zone; empty = from the start
  std::uint32_t limit = kZonePageRows;  ///< args.limit: 1..kZonePageRows
  std::uint32_t count = 1;              ///< args.count: workers
  std::uint32_t serial = 0;             ///< args.serial: serial of the zone
  std::vector<std::string> names{};     ///< args.names: zones
  std::vector<std::uint32_t> serials{};  ///< args.serials: none, from, or from and to
  std::uint64_t if_serial = kAbsent;     ///< args.if_serial: serial that each zone must have
  std::string owner{};                  ///< args.owner: relative to the zone without a final dot
  std::string type{};                   ///< args.type: mnemonic or TYPEnnn
  std::uint64_t ttl = kAbsent;           ///< args.ttl: seconds; absent: that of the set, or the SOA
  std::string rdata{};                  ///< args.rdata: presentation format
  std::vector<std::string> zones{};     ///< args.zones: the JSON text of each element
  std::string value{};                  ///< args.value: JSON text; empty: the key goes
  std::string from{};                   ///< args.from: address of a client
  std::string key{};                    ///< args.key: of a zone's settings; a TSIG key's name
  bool dnssec_ok = false;               ///< args.dnssec_ok: DO bit
  bool while_connected = false;         ///< args.while_connected: they end with the connection
  std::string level{};                  ///< args.level: as `server.log.level`
  std::uint64_t position = 0;           ///< args.position: of the journal
  std::string by{};                     ///< args.by: key of the client that a program acts for
  std::string client{};                 ///< args.client: address of that client
  /// No arguments: the user of the peer, the manager's number of the connection, and the same of a
  /// connection that may use the transactions that it opened and no others, else 0.
  std::uint32_t uid = 0;
  std::uint64_t connection = 0;
  std::uint64_t session = 0;
  /// No argument: what came with the request, and is closed after it. Null: nothing.
  std::shared_ptr<const Fd> descriptor{};
  bool operator==(const ControlRequest&) const = default;
};

[[nodiscard]] nlohmann::json request_to_json(const ControlRequest& request);
/// kInvalid without a verb, or for an argument of a wrong type.
Result<ControlRequest> request_from_json(const nlohmann::json& message);

/// Reply messages; a client takes the result, or the error, out of one.
[[nodiscard]] nlohmann::json ok_reply(nlohmann::json result);
[[nodiscard]] nlohmann::json error_reply(const Error& error);
Result<nlohmann::json> take_result(nlohmann::json reply);

/// Splits a message into packets, in order, each ready to be sent.
[[nodiscard]] std::vector<std::string> to_packets(const nlohmann::json& message);

/// Puts packets together again; for event loops. One per connection.
class PacketAssembler {
 public:
  explicit PacketAssembler(std::size_t max_bytes) noexcept : max_bytes_(max_bytes) {}
  /// Returns a whole message when `packet` ended one, or nothing when more packets follow. After an
  /// error (bad packet, bad JSON, too long) the connection must be closed.
  Result<std::optional<nlohmann::json>> feed(std::string_view packet);
  /// The same with the message as text, which need not be JSON.
  Result<std::optional<std::string>> feed_text(std::string_view packet);

 private:
  std::size_t max_bytes_;
  std::string text_;
};

/// Blocking helpers for clients and tests; `timeout` bounds the whole call.
Result<Fd> connect_control(const std::string& run_directory);
Status send_json(int fd, const nlohmann::json& message, std::chrono::milliseconds timeout);
Result<nlohmann::json> receive_json(int fd, std::size_t max_bytes,
                                    std::chrono::milliseconds timeout);
/// Sends one request, with its descriptor, and returns its whole reply; a refusal that came before
/// the request is that reply. After an error, `under_way` (may be null) is true when only the time
/// ran out: the peer has the request and is still connected. kFull: the request has more than
/// kMaxRequestBytes, and none of it was sent.
Result<nlohmann::json> exchange(int fd, const ControlRequest& request,
                                std::chrono::milliseconds timeout, bool* under_way = nullptr);
/// Waits once more for the reply to a request that is under way; `under_way` as above.
Result<nlohmann::json> await_reply(int fd, std::chrono::milliseconds timeout, bool& under_way);
/// Sends one request and returns the result in its reply.
Result<nlohmann::json> call(int fd, const ControlRequest& request,
                            std::chrono::milliseconds timeout);
/// Waits until the manager at the other end has ended, after it was asked to.
Status await_end(int fd, std::chrono::milliseconds timeout);

}  // namespace pando::ipc

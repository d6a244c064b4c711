#include "ipc/control.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/unix_socket.h"
#include "ipc/control_json.h"
#include "ipc/packet_socket.h"

namespace pando::ipc {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

/// Words for Errc on the wire; the position is the code's value.
constexpr std::array<std::string_view, 10> kErrorWords{
    "invalid", "truncated", "full",    "io",          "not-found",
    "exists",  "layout",    "corrupt", "unsupported", "denied"};

Errc code_from_word(std::string_view word) noexcept {
  const auto found = std::find(kErrorWords.begin(), kErrorWords.end(), word);
  if (found == kErrorWords.end()) return Errc::kInvalid;
  return static_cast<Errc>(found - kErrorWords.begin());
}

struct ErrorReply {
  bool ok = false;
  std::string code{};
  std::string error = "the manager gave no reason";
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ErrorReply, ok, code, error)

/// JSON text that cannot throw: bytes that are not UTF-8 are replaced.
std::string dump(const json& message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> packets_of(std::string_view text) {
  std::vector<std::string> packets;
  for (std::size_t at = 0; at < text.size(); at += kControlPacketBytes - 1) {
    const bool last = text.size() - at <= kControlPacketBytes - 1;
    std::string& packet = packets.emplace_back(1, last ? kPacketEnds : kPacketContinues);
    packet += text.substr(at, kControlPacketBytes - 1);
  }
  return packets;
}

/// Waits until `fd` is ready for `events`; kIo after `deadline`.
Status wait_ready(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<long>(left, 0, 1 << 30)));
    if (ready > 0) return {};
    if (ready == 0) return fail(Errc::kIo, "no answer in time");
    if (errno != EINTR) return fail_errno("poll");
  }
}

bool try_again(int code) noexcept { return code == EAGAIN || code == EINTR || code == ENOBUFS; }

Status send_packet(int fd, std::string_view packet, Clock::time_point deadline) {
  while (true) {
    if (auto ready = wait_ready(fd, POLLOUT, deadline); !ready) return ready;
    if (::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (!try_again(errno)) return fail_errno("send on the control socket");
  }
}

Status send_packet_with(int fd, std::string_view packet, int descriptor,
                        Clock::time_point deadline) {
  const ByteView bytes(reinterpret_cast<const std::uint8_t*>(packet.data()), packet.size());
  while (true) {
    if (auto ready = wait_ready(fd, POLLOUT, deadline); !ready) return ready;
    const auto sent = ipc::send_packet(fd, bytes, std::vector<int>{descriptor});
    if (!sent) return pass(sent);
    if (*sent == SendOutcome::kClosed) return fail(Errc::kIo, "the control connection was closed");
    if (*sent == SendOutcome::kSent) return {};
  }
}

/// `descriptor` (null: none) goes with the last packet.
Status send_text(int fd, std::string_view text, Clock::time_point deadline,
                 const Fd* descriptor = nullptr) {
  const auto packets = packets_of(text);
  for (const std::string& packet : packets) {
    const bool carries = descriptor != nullptr && &packet == &packets.back();
    auto sent = carries ? send_packet_with(fd, packet, descriptor->get(), deadline)
                        : send_packet(fd, packet, deadline);
    if (!sent) return sent;
  }
  return {};
}

/// Receives one packet into `buffer`; 0 bytes = the peer closed.
Result<std::size_t> receive_packet(int fd, std::string& buffer, Clock::time_point deadline) {
  bool was_reset = false;
  while (true) {
    if (auto ready = wait_ready(fd, POLLIN, deadline); !ready) return pass(ready);
    const auto size = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size >= 0 && static_cast<std::size_t>(size) > buffer.size())
      return fail(Errc::kInvalid, "control packet of {} bytes", size);
    if (size >= 0) return static_cast<std::size_t>(size);
    // The kernel reports once that a peer closed without reading; the packets it had sent follow.
    if (errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (!try_again(errno)) return fail_errno("recv on the control socket");
  }
}

/// True while the peer has neither closed the connection nor ended.
bool is_connected(int fd) noexcept {
  char byte;
  const auto size = ::recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return size > 0 || (size < 0 && try_again(errno));
}

}  // namespace

// The members of "args"; the verb is beside them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ControlRequest, name, label, to, after, limit,
                                                count, serial, names, serials, if_serial, owner,
                                                type, ttl, rdata, from, key, dnssec_ok, while_connected,
                                                level, position, by, client)

namespace {

/// Settings of a zone are lists of mappings of lists. Deeper values would let a client make this
/// process recurse as deep as a message is long.
constexpr int kMaxDepth = 8;

bool is_shallow(const json& value, int depth = kMaxDepth) {
  if (!value.is_structured()) return true;
  return depth > 0 && std::all_of(value.begin(), value.end(), [depth](const json& element) {
           return is_shallow(element, depth - 1);
         });
}

/// Arguments that are any JSON: kept as text.
Status take_free_arguments(const json& args, ControlRequest& request) {
  if (!args.is_object()) return {};
  const auto zones = args.find("zones");
  const auto value = args.find("value");
  for (const auto& found : {zones, value})
    if (found != args.end() && !is_shallow(*found))
      return fail(Errc::kInvalid, "arguments of the request: a value is nested too deep");
  if (value != args.end() && !value->is_null()) request.value = dump(*value);
  if (zones == args.end()) return {};
  if (!zones->is_array()) return fail(Errc::kInvalid, "arguments of the request: zones: no list");
  for (const json& zone : *zones) request.zones.push_back(dump(zone));
  return {};
}

/// A number beyond 32 bits must not pass for an absent one: the change would be made whatever the
/// serial is. Of other requests the member means nothing, and older clients send kAbsent.
Status check_if_serial(const std::string& name, const json& args) {
  if ((name != verb::kZoneBegin && name != verb::kZoneCommit) || !args.is_object()) return {};
  const auto given = args.find("if_serial");
  if (given == args.end()) return {};
  if (given->is_number_unsigned() && given->get<std::uint64_t>() <= UINT32_MAX) return {};
  return fail(Errc::kInvalid,
              "arguments of the request: if_serial: {} is no serial, which has 32 "
              "bits",
              given->is_number() ? given->dump() : "the value");
}

}  // namespace

json request_to_json(const ControlRequest& request) {
  json args = request;
  if (request.if_serial == kAbsent) args.erase("if_serial");
  if (!request.value.empty()) args["value"] = json::parse(request.value, nullptr, false);
  for (const std::string& zone : request.zones)
    args["zones"].push_back(json::parse(zone, nullptr, false));
  return {{"verb", request.verb}, {"args", std::move(args)}};
}

Result<ControlRequest> request_from_json(const json& message) {
  const auto verb = message.is_object() ? message.find("verb") : message.end();
  if (!message.is_object() || verb == message.end() || !verb->is_string() || *verb == "")
    return fail(Errc::kInvalid, "the request has no 'verb'");
  static const json kNoArguments = json::object();
  const auto found = message.find("args");
  // No copy: copying recurses, and a client may nest arrays as deep as a message is long.
  const json& args = found == message.end() ? kNoArguments : *found;
  // The library converts fractions to whole numbers before anybody can compare them.
  if (args.is_object() && std::any_of(args.begin(), args.end(),
                                      [](const json& one) { return one.is_number_float(); }))
    return fail(Errc::kInvalid, "arguments of the request: a member is no whole number");
  if (auto serial = check_if_serial(verb->get_ref<const std::string&>(), args); !serial)
    return pass(serial);
  auto request = read_json<ControlRequest>(args);
  if (!request) return fail(Errc::kInvalid, "arguments of the request: {}", request.error().text);
  if (auto taken = take_free_arguments(args, *request); !taken) return pass(taken);
  request->verb = verb->get_ref<const std::string&>();
  request->limit = std::clamp(request->limit, 1U, kZonePageRows);
  return request;
}

json ok_reply(json result) { return {{"ok", true}, {"result", std::move(result)}}; }

json error_reply(const Error& error) {
  return ErrorReply{false, std::string(kErrorWords[static_cast<std::size_t>(error.code)]),
                    error.text};
}

Result<json> take_result(json reply) {
  const auto ok = reply.is_object() ? reply.find("ok") : reply.end();
  if (!reply.is_object() || ok == reply.end() || !ok->is_boolean())
    return fail(Errc::kInvalid, "the manager's reply has no 'ok'");
  if (ok->get<bool>()) return std::move(reply["result"]);
  auto error = read_json<ErrorReply>(reply);
  if (!error) return tl::unexpected<Error>(error.error());
  if (error->error.empty()) error->error = "the manager gives no reason";
  return tl::unexpected<Error>(Error{code_from_word(error->code), std::move(error->error)});
}

std::vector<std::string> to_packets(const json& message) { return packets_of(dump(message)); }

Result<std::optional<std::string>> PacketAssembler::feed_text(std::string_view packet) {
  if (packet.size() < 2 || (packet[0] != kPacketContinues && packet[0] != kPacketEnds))
    return fail(Errc::kInvalid, "malformed control packet");
  if (packet.size() - 1 > max_bytes_ - text_.size())
    return fail(Errc::kInvalid, "control message above {} bytes", max_bytes_);
  text_ += packet.substr(1);
  if (packet[0] == kPacketContinues) return std::optional<std::string>();
  return std::optional<std::string>(std::exchange(text_, {}));
}

Result<std::optional<json>> PacketAssembler::feed(std::string_view packet) {
  auto text = feed_text(packet);
  if (!text) return pass(text);
  if (!*text) return std::optional<json>();
  json message = json::parse(**text, nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded()) return fail(Errc::kInvalid, "control message is not JSON");
  return std::optional<json>(std::move(message));
}

Result<Fd> connect_control(const std::string& run_directory) {
  auto address = unix_address(fmt::format("{}/{}", run_directory, kControlSocketName));
  if (!address) return pass(address);
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return fail_errno(fmt::format("connect to {}", address->sun_path));
  return fd;
}

Status send_json(int fd, const json& message, std::chrono::milliseconds timeout) {
  return send_text(fd, dump(message), Clock::now() + timeout);
}

Result<json> receive_json(int fd, std::size_t max_bytes, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  PacketAssembler assembler(max_bytes);
  std::string buffer(kControlPacketBytes, '\0');
  while (true) {  // bounded by max_bytes: every packet carries at least one byte of the message
    auto size = receive_packet(fd, buffer, deadline);
    if (!size) return pass(size);
    if (*size == 0) return fail(Errc::kIo, "the control connection was closed");
    auto message = assembler.feed(std::string_view(buffer).substr(0, *size));
    if (!message) return pass(message);
    if (*message) return std::move(**message);
  }
}

Result<json> exchange(int fd, const ControlRequest& request, std::chrono::milliseconds timeout,
                      bool* under_way) {
  const auto deadline = Clock::now() + timeout;
  if (under_way != nullptr) *under_way = false;
  const std::string text = dump(request_to_json(request));
  // The manager would close the connection in the middle of a longer one, and say nothing.
  if (text.size() > kMaxRequestBytes)
    return fail(Errc::kFull, "the request is larger than 1 MiB, with {} bytes{}", text.size(),
                request.names.size() > 1 ? ": give fewer zones at a time" : "");
  const auto sent = send_text(fd, text, deadline, request.descriptor.get());
  // A refused client gets the reason as a reply, possibly before its request was sent.
  auto reply = receive_json(fd, kMaxReplyBytes, sent ? timeout : std::chrono::milliseconds(0));
  if (under_way != nullptr)
    *under_way = sent && !reply && Clock::now() >= deadline && is_connected(fd);
  if (!reply) return tl::unexpected<Error>(sent ? reply.error() : sent.error());
  return reply;
}

Result<json> await_reply(int fd, std::chrono::milliseconds timeout, bool& under_way) {
  const auto deadline = Clock::now() + timeout;
  auto reply = receive_json(fd, kMaxReplyBytes, timeout);
  under_way = !reply && Clock::now() >= deadline && is_connected(fd);
  return reply;
}

Result<json> call(int fd, const ControlRequest& request, std::chrono::milliseconds timeout) {
  auto reply = exchange(fd, request, timeout);
  if (!reply) return reply;
  return take_result(std::move(*reply));
}

Status await_end(int fd, std::chrono::milliseconds timeout) {
  // It closes the connection by ending.
  const auto gone = receive_json(fd, kMaxReplyBytes, timeout);
  if (gone || is_connected(fd)) return fail(Errc::kIo, "the manager is still there");
  return {};
}

}  // namespace pando::ipc

// Any octets as the packets of control requests: never a crash, no message above the limit, and a
// request that is taken means the same once it is written again.
//
// Input: packets, each behind its length in two octets.

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "ipc/control.h"

namespace {

using namespace pando;

/// Splits a message again, as a client would send it.
void check_packets(const nlohmann::json& message) {
  ipc::PacketAssembler assembler(ipc::kMaxReplyBytes);
  const auto packets = ipc::to_packets(message);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    auto whole = assembler.feed(packets[i]);
    PANDO_ASSERT(whole && whole->has_value() == (i + 1 == packets.size()));
    if (*whole) PANDO_ASSERT(**whole == message);
  }
}

void check_request(const nlohmann::json& message) {
  const auto request = ipc::request_from_json(message);
  if (!request) return;
  const nlohmann::json written = ipc::request_to_json(*request);
  check_packets(written);
  const auto again = ipc::request_from_json(written);
  PANDO_ASSERT(again && *again == *request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView stream(data, size);
  ipc::PacketAssembler assembler(ipc::kMaxRequestBytes);
  while (stream.size() >= 2) {
    const std::size_t length = std::min<std::size_t>(load_be16(stream.data()), stream.size() - 2);
    const auto packet = stream.subspan(2, length);
    stream = stream.subspan(2 + length);
    auto message =
        assembler.feed({reinterpret_cast<const char*>(packet.data()), packet.size()});
    if (!message) return 0;  // the connection ends
    if (!*message) continue;
    check_request(**message);
    auto result = ipc::take_result(std::move(**message));
    PANDO_ASSERT(result || !result.error().text.empty());
  }
  return 0;
}

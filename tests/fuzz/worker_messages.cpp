// Any octets as a packet between manager and worker: never a crash, and each message that is taken
// has one form, which is the packet.

#include "ipc/worker_messages.h"

#include "base/bytes.h"
#include "base/result.h"

namespace {

using namespace pando;

template <class Message>
void check_form(const Result<Message>& message, ByteView packet) {
  if (!message) return;
  const Bytes again = ipc::encode(*message);
  PANDO_ASSERT(ByteView(again).size() == packet.size() &&
               std::equal(again.begin(), again.end(), packet.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Seeds are of any version, and a packet of another version ends at its first field.
  Bytes packet(data, data + size);
  if (size >= 2 && data[0] == 0) store_be16(packet.data(), ipc::kWorkerProtocol);
  check_form(ipc::decode_from_worker(packet), packet);
  check_form(ipc::decode_to_worker(packet), packet);
  return 0;
}

// Any octets as a packet between manager and worker: never a crash, and each message that is taken
// has one form, which is the packet.

#include "ipc/worker_messages.h"

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
  const ByteView packet(data, size);
  check_form(ipc::decode_from_worker(packet), packet);
  check_form(ipc::decode_to_worker(packet), packet);
  return 0;
}

// Any octets as a frame of a network interface: never a crash, nor a read outside. A frame that is
// read gets a response that is read as well, with the addresses turned round.
//
// Input: one octet that says whether lengths and checksums are mended, else few inputs are read at
// all; then the frame.

#include <algorithm>

#include "base/bytes.h"
#include "base/result.h"
#include "worker/xdp/checksum.h"
#include "worker/xdp/frame.h"

namespace {

using namespace pando;

constexpr std::uint8_t kMend = 1;

std::uint16_t checksum(std::uint64_t sum) {
  return static_cast<std::uint16_t>(~worker::fold_sum(sum));
}

void mend(Bytes& frame) {
  if (frame.size() < 62) return;
  const std::size_t link = load_be16(frame.data() + 12) == 0x8100 ? 18 : 14;
  const bool v4 = (frame[link] >> 4) == 4;
  store_be16(frame.data() + link - 2, v4 ? 0x0800 : 0x86DD);
  std::uint8_t* const ip = frame.data() + link;
  const std::size_t header = v4 ? 20 : 40;
  if (frame.size() < link + header + 8) return;
  const std::size_t udp = frame.size() - link - header;
  if (v4) {
    ip[0] = 0x45;
    ip[9] = 17;
    store_be16(ip + 2, static_cast<std::uint16_t>(20 + udp));
    store_be16(ip + 10, 0);
    store_be16(ip + 10, checksum(worker::add_to_sum(0, {ip, 20})));
  } else {
    ip[6] = 17;
    store_be16(ip + 4, static_cast<std::uint16_t>(udp));
  }
  store_be16(ip + header + 4, static_cast<std::uint16_t>(udp));
  store_be16(ip + header + 6, 0);
  const std::uint64_t pseudo =
      worker::add_to_sum(17 + udp, {ip + (v4 ? 12 : 8), std::size_t{v4 ? 8U : 32U}});
  store_be16(ip + header + 6, checksum(worker::add_to_sum(pseudo, {ip + header, udp})));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 4096) return 0;
  Bytes octets(data + 1, data + size);
  if ((data[0] & kMend) != 0) mend(octets);
  const auto frame = worker::read_frame(octets);
  if (!frame) return 0;
  const std::size_t headers = frame->header_octets();
  Bytes response(headers + frame->message.size());
  std::copy(frame->message.begin(), frame->message.end(),
            response.begin() + static_cast<long>(headers));
  const std::size_t made =
      worker::write_headers(*frame, response.data(), frame->message.size(), data[0]);
  PANDO_ASSERT(made == response.size());
  const auto back = worker::read_frame(response);
  // A destination may be none that a sender can have.
  if (!back) return 0;
  PANDO_ASSERT(back->source == frame->destination && back->destination == frame->source);
  PANDO_ASSERT(std::equal(back->message.begin(), back->message.end(), frame->message.begin(),
                          frame->message.end()));
  return 0;
}

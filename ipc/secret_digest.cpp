#include "ipc/secret_digest.h"

#include <fmt/format.h>

#include "base/result.h"
#include "dns/tsig/tsig_mac.h"

namespace pando::ipc {

std::string secret_digest(std::string_view text) {
  constexpr std::size_t kOctets = 32;
  const auto view = [](std::string_view from) {
    return ByteView(reinterpret_cast<const std::uint8_t*>(from.data()), from.size());
  };
  dns::HmacContext context("SHA256", view(text));
  PANDO_ASSERT(context);
  context.update(view("http.keys"));
  std::string digits;
  const dns::TsigMac mac = context.finish(kOctets);
  for (const std::uint8_t octet : mac.view()) digits += fmt::format("{:02x}", octet);
  return digits;
}

}  // namespace pando::ipc

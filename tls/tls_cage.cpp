#include "tls/tls_cage.h"

#include "sandbox/hardening.h"

namespace pando::tls {

Status confine() {
  if (auto limited = sandbox::limit_memory(); !limited) return limited;
  constexpr std::uint64_t kNoFile = 0;
  if (auto forbidden = sandbox::forbid_files(kNoFile); !forbidden) return forbidden;
  return sandbox::filter_system_calls(sandbox::SocketPairs::kAllowed);
}

}  // namespace pando::tls

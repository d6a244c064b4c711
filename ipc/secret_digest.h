#pragma once

#include <string>
#include <string_view>

namespace pando::ipc {

/// HMAC-SHA-256 with `text` as its key, as 64 hexadecimal digits. Whoever knows the digest of a
/// secret can check the secret, and cannot find it. `text` is not empty.
[[nodiscard]] std::string secret_digest(std::string_view text);

}  // namespace pando::ipc

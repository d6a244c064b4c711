#pragma once

#include <string_view>

namespace pando::dns {

/// Whether `text` is a path as dohpath has it (RFC 9461 §5): UTF-8 that begins with "/", a URI
/// template (RFC 6570 §2) with the variable "dns".
[[nodiscard]] bool is_doh_path(std::string_view text) noexcept;

}  // namespace pando::dns

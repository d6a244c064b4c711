#pragma once

#include <string>

namespace pando::manager {

/// How a program is attached to the interface: "native" or "generic"; empty if none is, or the
/// kernel does not report it.
[[nodiscard]] std::string attached_xdp_mode(int interface);

}  // namespace pando::manager

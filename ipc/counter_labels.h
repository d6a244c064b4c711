#pragma once

#include <cstddef>
#include <string>

/// Names of the counters that are indexed by a protocol number (ipc/counters.h), for people and
/// monitoring. "other" is the name of a block's last counter.
namespace pando::ipc {

/// `index` counts from the block's base.
[[nodiscard]] std::string opcode_label(std::size_t index);
[[nodiscard]] std::string rcode_label(std::size_t index);
[[nodiscard]] std::string type_label(std::size_t index);

}  // namespace pando::ipc

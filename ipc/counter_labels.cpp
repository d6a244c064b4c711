#include "ipc/counter_labels.h"

#include "dns/types.h"
#include "ipc/counters.h"

namespace pando::ipc {

std::string opcode_label(std::size_t index) {
  return dns::to_text(static_cast<dns::Opcode>(index));
}

std::string rcode_label(std::size_t index) {
  return index < kRcodes - 1 ? dns::to_text(static_cast<dns::Rcode>(index)) : "other";
}

std::string type_label(std::size_t index) {
  return index < kTypes - 1 ? dns::to_text(static_cast<dns::RRType>(index)) : "other";
}

}  // namespace pando::ipc

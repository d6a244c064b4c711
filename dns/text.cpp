#include "dns/text.h"

namespace pando::dns {

std::string quote_for_message(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  shown += text.size() > kShown ? "...'" : "'";
  return shown;
}

}  // namespace pando::dns

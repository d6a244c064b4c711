#include "dns/mnemonics.h"

#include "dns/text.h"

namespace pando::dns {

std::optional<std::uint16_t> find_mnemonic(std::span<const Mnemonic> table,
                                           std::string_view text) noexcept {
  for (const Mnemonic& row : table)
    if (equal_ignoring_case(text, row.text)) return row.value;
  return std::nullopt;
}

std::string_view mnemonic_of(std::span<const Mnemonic> table, std::uint16_t value) noexcept {
  for (const Mnemonic& row : table)
    if (row.value == value) return row.text;
  return {};
}

}  // namespace pando::dns

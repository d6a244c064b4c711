#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pando::dns {

/// A mnemonic of a number in RDATA. The first of several mnemonics for one number is printed.
struct Mnemonic {
  std::string_view text;  ///< upper case
  std::uint16_t value;
};

/// The number of the mnemonic `text`, in any case.
[[nodiscard]] std::optional<std::uint16_t> find_mnemonic(std::span<const Mnemonic> table,
                                                         std::string_view text) noexcept;
/// The mnemonic of `value`; empty if `value` has none.
[[nodiscard]] std::string_view mnemonic_of(std::span<const Mnemonic> table,
                                           std::uint16_t value) noexcept;

/// Mnemonics that BIND reads, by IANA registry.
[[nodiscard]] std::span<const Mnemonic> dnssec_algorithms() noexcept;
[[nodiscard]] std::span<const Mnemonic> digest_types() noexcept;
[[nodiscard]] std::span<const Mnemonic> certificate_types() noexcept;
[[nodiscard]] std::span<const Mnemonic> key_flags() noexcept;
[[nodiscard]] std::span<const Mnemonic> key_protocols() noexcept;
[[nodiscard]] std::span<const Mnemonic> nsec3_hashes() noexcept;
[[nodiscard]] std::span<const Mnemonic> dsync_schemes() noexcept;
[[nodiscard]] std::span<const Mnemonic> ip_protocols() noexcept;
[[nodiscard]] std::span<const Mnemonic> well_known_ports() noexcept;

}  // namespace pando::dns

#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/bytes.h"
#include "worker/tap/exchange.h"

/// Messages of dnstap's schema (dnstap.proto of dnstap.info) in the encoding of Protocol Buffers.
/// docs/decisions/073-dnstap-by-lent-streams.md says why this is no generated code.
namespace pando::worker {

/// Message.Type of the schema: the types that an authoritative server sends.
enum class DnstapType : std::uint8_t {
  kAuthQuery = 1,
  kAuthResponse = 2,
  kUpdateQuery = 13,
  kUpdateResponse = 14,
};
/// By the QR bit and the opcode of the message, which has a whole header.
[[nodiscard]] DnstapType dnstap_type(ByteView message) noexcept;
[[nodiscard]] constexpr bool is_update(DnstapType type) noexcept {
  return type == DnstapType::kUpdateQuery || type == DnstapType::kUpdateResponse;
}
[[nodiscard]] constexpr bool is_response(DnstapType type) noexcept {
  return type == DnstapType::kAuthResponse || type == DnstapType::kUpdateResponse;
}

/// The fields that all messages of a server share: identity, version, and the schema's type.
[[nodiscard]] Bytes dnstap_prefix(std::string_view identity, std::string_view version);

/// Writes to `head` all octets between that prefix and `message`, which is the last field. `sent`
/// is the time of a response.
void put_dnstap_head(const Exchange& exchange, ByteView message, const timespec& sent,
                     Bytes& head);

}  // namespace pando::worker

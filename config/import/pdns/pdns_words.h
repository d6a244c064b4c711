#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace pando::config {

inline constexpr std::uint16_t kPdnsPort = 53;

/// Words of a list of PowerDNS: commas, semicolons or blanks stand between them.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

/// The fields of a record's content: blanks stand between them.
[[nodiscard]] std::vector<std::string> fields_of(std::string_view content);

/// `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; kInvalid for anything else.
[[nodiscard]] Result<Endpoint> pdns_endpoint(std::string_view text, std::uint16_t port);

}  // namespace pando::config

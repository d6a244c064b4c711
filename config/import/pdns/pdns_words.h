#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "config/import/model/imported.h"

namespace pando::config {

/// Words of a list of PowerDNS: commas, semicolons or blanks stand between them.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

/// The fields of a record's content: blanks stand between them.
[[nodiscard]] std::vector<std::string> fields_of(std::string_view content);

/// `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; kInvalid for anything else.
[[nodiscard]] Result<Endpoint> pdns_endpoint(std::string_view text, std::uint16_t port = kDnsPort);

/// The remotes at these addresses. `title` comes before an address in the report of a wrong one.
[[nodiscard]] std::vector<std::string> pdns_remotes(std::string_view addresses,
                                                    const SourceLine& at, std::string_view title,
                                                    ImportedConfiguration& out,
                                                    ImportReport& report);

}  // namespace pando::config

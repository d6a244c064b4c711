#pragma once

#include <string_view>

#include "config/import/model/imported.h"

/// Reasons why statements of other servers are not taken over, by their keywords. Statements that
/// an importer translates have a reason here as well, for values that it cannot translate.
namespace pando::config {

/// Whether the value switches its setting off, so that its absence here changes nothing.
[[nodiscard]] bool is_off(std::string_view value) noexcept;

/// Of named.conf, at the top, in options, view and zone.
[[nodiscard]] ImportReason named_reason(std::string_view keyword) noexcept;
/// Of nsd.conf: names of sections, and settings of any of them.
[[nodiscard]] ImportReason nsd_reason(std::string_view keyword) noexcept;
/// Of knot.conf: names of sections and modules, and settings of any section.
[[nodiscard]] ImportReason knot_reason(std::string_view keyword) noexcept;
/// Of pdns.conf.
[[nodiscard]] ImportReason pdns_reason(std::string_view keyword) noexcept;

}  // namespace pando::config

#pragma once

#include <string_view>

/// Reasons why statements of other servers are not taken over, by their keywords.
namespace pando::config {

/// Of named.conf, at the top, in options, view and zone.
[[nodiscard]] std::string_view named_reason(std::string_view keyword) noexcept;
/// Of nsd.conf, knot.conf and pdns.conf.
[[nodiscard]] std::string_view setting_reason(std::string_view keyword) noexcept;

}  // namespace pando::config

#pragma once

#include <string>
#include <vector>

#include "zone/read/store_view.h"

namespace pando::ctl {

/// Warnings about data that loads and serves, yet is probably not meant. Warnings tell of targets
/// without address, missing glue, aliases that lead nowhere, and records hidden below a delegation.
/// One line each, in the order of names, at most kMaxLintLines.
[[nodiscard]] std::vector<std::string> lint_zone(const zone::ZoneView& zone);

inline constexpr std::size_t kMaxLintLines = 100;

}  // namespace pando::ctl

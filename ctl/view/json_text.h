#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pando::ctl {

/// JSON text on one line; octets that are not UTF-8 are replaced, so it never throws.
[[nodiscard]] inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pando::ctl

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

/// The content of requests, which is JSON.
namespace pando::http {

/// kCorrupt: no JSON, or JSON that is nested too deeply.
Result<nlohmann::json> read_document(std::string_view body);
/// Null: `object` is no object, or has no such member, or null there.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& object, std::string_view key);
/// A member that has to be there, and a text. kInvalid.
Result<std::string_view> text_of(const nlohmann::json& object, std::string_view key);
/// Text of a request, as an error repeats it: in quotes, and not too much of it.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace pando::http

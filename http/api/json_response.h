#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "http/serve/http_message.h"

namespace pando::http {

[[nodiscard]] Response json_response(unsigned status, const nlohmann::json& value);
/// Appends the next elements of a list to an empty JSON array, and returns whether more may follow.
/// The work of one call is bounded; it may append nothing.
using NextElements = std::function<Result<bool>(nlohmann::json& elements)>;
/// An array whose elements are made while it is sent, so that memory does not grow with the list.
/// `next` is called for the first time here: its error then is an error response, and a list that
/// ends there has a Content-Length.
[[nodiscard]] Response array_response(NextElements next);
/// {"error": text}
[[nodiscard]] Response error_response(unsigned status, std::string_view text);
/// PowerDNS's status for a kind of error: 404 kNotFound, 422 kInvalid, 409 kExists, 400 kCorrupt
/// (malformed JSON), 403 kDenied; 503 for all others, which time or an operator may end.
[[nodiscard]] Response error_response(const Error& error);
/// 405 with the methods that there are (RFC 9110 §15.5.6).
[[nodiscard]] Response not_allowed(std::string_view methods, std::string_view text);

}  // namespace pando::http

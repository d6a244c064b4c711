#include "http/api/json_response.h"

#include <nlohmann/json.hpp>

namespace pando::http {

using nlohmann::json;

Response json_response(unsigned status, const json& value) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  // Text of zones is printable ASCII; a stranger's octet in an error is replaced.
  response.body = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

Response error_response(unsigned status, std::string_view text) {
  return json_response(status, {{"error", text}});
}

Response error_response(const Error& error) {
  switch (error.code) {
    case Errc::kNotFound:
      return error_response(404, "Not Found");
    case Errc::kInvalid:
      return error_response(422, error.text);
    case Errc::kExists:
      return error_response(409, error.text);
    case Errc::kCorrupt:
      return error_response(400, error.text);
    case Errc::kDenied:
      return error_response(403, error.text);
    default:
      return error_response(503, error.text);
  }
}

Response not_allowed(std::string_view methods, std::string_view text) {
  Response response = error_response(405, text);
  response.fields.emplace_back("Allow", std::string(methods));
  return response;
}

}  // namespace pando::http

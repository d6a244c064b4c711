#include "http/api/json_response.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace pando::http {

using nlohmann::json;

namespace {

constexpr const char* kJson = "application/json";

/// Text of zones is printable ASCII; a stranger's octet in an error is replaced.
std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The text of an array, part by part.
class ArrayText {
 public:
  explicit ArrayText(NextElements next) : next_(std::move(next)) {}

  Result<bool> operator()(std::string& part) {
    json elements = json::array();
    auto more = next_(elements);
    if (!more) return more;
    for (const json& element : elements) {
      part += std::exchange(separator_, ',');
      part += dumped(element);
    }
    if (!*more) part += separator_ == '[' ? "[]" : "]";
    // RFC 8259 §2: white space may stand between elements. A write that fails tells that the client
    // is gone, which ends a long search.
    if (part.empty()) part = "\n";
    return more;
  }

 private:
  NextElements next_;
  char separator_ = '[';
};

}  // namespace

Response json_response(unsigned status, const json& value) {
  Response response;
  response.status = status;
  response.content_type = kJson;
  response.body = dumped(value);
  return response;
}

Response array_response(NextElements next) {
  ArrayText text(std::move(next));
  Response response;
  response.content_type = kJson;
  const auto more = text(response.body);
  if (!more) return error_response(more.error());
  if (*more) response.next_part = std::move(text);
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

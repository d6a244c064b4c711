#include "http/serve/request_header.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <string>

namespace pando::http {

namespace beast = boost::beast;
namespace wire = boost::beast::http;

namespace {

/// RFC 9112 §3.2.2: a target may be a whole URL, as clients of proxies send it. Takes scheme and
/// authority off, and gives the authority; none in a target of another form.
std::optional<std::string> take_authority(std::string& target) {
  for (const beast::string_view scheme :
       {beast::string_view("http://"), beast::string_view("https://")}) {
    if (!beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    std::string authority = target.substr(scheme.size(), end - scheme.size());
    target.erase(0, end);
    if (!target.starts_with('/')) target.insert(0, "/");
    return authority;
  }
  return std::nullopt;
}

}  // namespace

Request header_of(const Message& message) {
  const auto field = [&message](std::string_view name) {
    return std::string(message[beast::string_view(name.data(), name.size())]);
  };
  Request request;
  request.method = std::string(message.method_string());
  std::string target(message.target());
  const auto authority = take_authority(target);
  const auto question = target.find('?');
  if (question != std::string::npos) request.query = target.substr(question + 1);
  request.path = target.substr(0, question);
  request.authorization = field("Authorization");
  request.api_key = field("X-API-Key");
  request.accept = field("Accept");
  request.host = authority.value_or(field("Host"));
  return request;
}

std::optional<Response> header_refusal(const Message& header) {
  const auto hosts = header.count(wire::field::host);
  if (hosts > 1 || (hosts == 0 && header.version() >= 11))  // RFC 9112 §3.2
    return text_response(400, "one Host field is needed");
  const auto codings = header.count(wire::field::transfer_encoding);
  if (codings == 0) return std::nullopt;
  if (header.version() < 11)  // RFC 9112 §6.1
    return text_response(400, "HTTP/1.0 has no Transfer-Encoding");
  if (codings > 1 || !beast::iequals(header[wire::field::transfer_encoding], "chunked"))
    return text_response(501, "of transfer codings only chunked is known");
  return std::nullopt;
}

std::optional<Response> error_refusal(const boost::system::error_code& error) {
  if (error == wire::error::header_limit || error == wire::error::buffer_overflow)
    return text_response(431, "header fields too large");
  if (error == wire::error::body_limit) return text_response(413, "body too large");
  const bool malformed = error.category() == make_error_code(wire::error::bad_target).category();
  const bool ended = error == wire::error::end_of_stream || error == wire::error::partial_message;
  if (malformed && !ended) return text_response(400, "malformed request");
  return std::nullopt;
}

}  // namespace pando::http

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

/// Requests and responses of HTTP as handlers see them: no header of a library.
namespace pando::http {

struct Request {
  std::string method{};
  std::string path{};           ///< of the target, before '?'; not decoded
  std::string query{};          ///< after '?'
  std::string authorization{};  ///< header fields; empty = absent
  std::string api_key{};        ///< X-API-Key
  std::string accept{};
  std::string host{};  ///< with the port, as the client wrote it
  std::string client{};  ///< IP address
  std::string body{};

  /// Whether the method changes nothing (RFC 9110 §9.2.1).
  [[nodiscard]] bool is_safe() const noexcept { return method == "GET" || method == "HEAD"; }
};

/// Appends the next part of a content to an empty text, and returns whether more parts follow. Only
/// the last part may be empty. Its memory and its time are bounded, whatever the content's length.
/// After an error the connection is cut, so that the client does not take a part for the whole.
using NextPart = std::function<Result<bool>(std::string& part)>;

struct Response {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};  ///< further header fields
  /// The content after `body`; absent = `body` is all of it. Called on any of the server's
  /// threads, one call after the other, as the client reads; must not throw.
  NextPart next_part{};
};

/// Called on any of the server's threads; must not throw.
using Handler = std::function<Response(const Request&)>;

struct Handlers {
  Handler answer;
  /// Whether a body above ServerLimits::body_bytes is taken. It is asked before the body is read,
  /// with a request without one; absent = never.
  std::function<bool(const Request&)> may_send_much{};
  /// Whether a request shows a key of a client, if keys are needed; absent = all do. Must not block.
  std::function<bool(const Request&)> is_known{};
};

/// A response of one line of text.
[[nodiscard]] inline Response text_response(unsigned status, std::string line) {
  Response response;
  response.status = status;
  response.body = std::move(line) + "\n";
  return response;
}

}  // namespace pando::http

#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <optional>

#include "http/serve/http_message.h"

/// Reading a request's header, and refusing a malformed or oversized one, without a connection.
namespace pando::http {

using Message = boost::beast::http::request<boost::beast::http::string_body>;

/// All but the body.
[[nodiscard]] Request header_of(const Message& message);

/// The refusal of a header that leaves open whom the request is for, or where it ends.
[[nodiscard]] std::optional<Response> header_refusal(const Message& header);

/// The answer to a request that could not be read; none when the connection is broken, or slow.
[[nodiscard]] std::optional<Response> error_refusal(const boost::system::error_code& error);

}  // namespace pando::http

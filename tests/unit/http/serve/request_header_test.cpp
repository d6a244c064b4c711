#include "http/serve/request_header.h"

#include <gtest/gtest.h>

#include <boost/beast/http/error.hpp>

namespace pando::http {
namespace request_header_test {

namespace wire = boost::beast::http;

Message get(const char* target) {
  Message message(wire::verb::get, target, 11);
  message.set(wire::field::host, "ns.example:8053");
  return message;
}
unsigned status(const std::optional<Response>& refused) { return refused ? refused->status : 0; }

TEST(RequestHeader, ATargetHasPathAndQuery) {
  const Request request = header_of(get("/api/v1?a=b?c"));
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/api/v1");
  EXPECT_EQ(request.query, "a=b?c");
  EXPECT_EQ(request.host, "ns.example:8053");
}

TEST(RequestHeader, AWholeUrlAsTargetNamesTheHost) {
  for (const char* target : {"http://other.example/x?y", "HTTPS://other.example/x?y"}) {
    const Request request = header_of(get(target));
    EXPECT_EQ(request.host, "other.example") << target;
    EXPECT_EQ(request.path, "/x") << target;
    EXPECT_EQ(request.query, "y") << target;
  }
  EXPECT_EQ(header_of(get("http://other.example")).path, "/");
  EXPECT_EQ(header_of(get("http://other.example?y")).path, "/");
  EXPECT_EQ(header_of(get("http://other.example?y")).query, "y");
}

TEST(RequestHeader, FieldsOfAClientAreHandedOver) {
  Message message = get("/");
  message.set("Authorization", "Bearer x");
  message.set("x-api-key", "k");
  message.set("Accept", "text/html");
  const Request request = header_of(message);
  EXPECT_EQ(request.authorization, "Bearer x");
  EXPECT_EQ(request.api_key, "k");
  EXPECT_EQ(request.accept, "text/html");
}

TEST(RequestHeader, OneHostIsNeeded) {
  EXPECT_EQ(status(header_refusal(get("/"))), 0U);
  Message message = get("/");
  message.insert(wire::field::host, "other.example");
  EXPECT_EQ(status(header_refusal(message)), 400U);
  message.erase(wire::field::host);
  EXPECT_EQ(status(header_refusal(message)), 400U);
  message.version(10);
  EXPECT_EQ(status(header_refusal(message)), 0U) << "HTTP/1.0 does not need it";
}

TEST(RequestHeader, OnlyTheChunkedCodingIsKnown) {
  Message message = get("/");
  message.set(wire::field::transfer_encoding, "Chunked");
  EXPECT_EQ(status(header_refusal(message)), 0U);
  message.set(wire::field::transfer_encoding, "gzip, chunked");
  EXPECT_EQ(status(header_refusal(message)), 501U);
  message.set(wire::field::transfer_encoding, "chunked");
  message.insert(wire::field::transfer_encoding, "chunked");
  EXPECT_EQ(status(header_refusal(message)), 501U) << "twice";
  message.version(10);
  EXPECT_EQ(status(header_refusal(message)), 400U);
}

TEST(RequestHeader, OnlyAReadableFaultHasAnAnswer) {
  EXPECT_EQ(status(error_refusal(wire::error::header_limit)), 431U);
  EXPECT_EQ(status(error_refusal(wire::error::body_limit)), 413U);
  EXPECT_EQ(status(error_refusal(wire::error::bad_target)), 400U);
  EXPECT_EQ(status(error_refusal(wire::error::end_of_stream)), 0U);
  EXPECT_EQ(status(error_refusal(wire::error::partial_message)), 0U);
  EXPECT_EQ(status(error_refusal(
                boost::system::error_code(ECONNRESET, boost::system::system_category()))),
            0U);
}

}  // namespace request_header_test
}  // namespace pando::http

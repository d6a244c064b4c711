#include "http/serve/access.h"

#include <gtest/gtest.h>

#include "http/serve/request_rate.h"

namespace pando::http {
namespace access_test {

Request with_key(std::string authorization, std::string api_key = "") {
  Request request;
  request.authorization = std::move(authorization);
  request.api_key = std::move(api_key);
  return request;
}

const Access& access() {
  static const Access keyed(known_keys({{"prometheus", "read-secret", Role::kRead, {}},
                                        {"root", "admin-secret", Role::kAdmin, {}}}));
  return keyed;
}

TEST(Access, WithoutKeysEverybodyReadsAndNobodyChanges) {
  const Access open({});
  ASSERT_NE(open.key_of({}), nullptr);
  EXPECT_EQ(open.key_of({})->role, Role::kRead);
  EXPECT_TRUE(open.key_of({})->zones.empty());
}

TEST(Access, AKeyIsABearerTokenOrAFieldOfItsOwn) {
  EXPECT_EQ(access().key_of(with_key("Bearer read-secret"))->name, "prometheus");
  EXPECT_EQ(access().key_of(with_key("bEARER   admin-secret"))->role, Role::kAdmin);
  EXPECT_EQ(access().key_of(with_key("", "admin-secret"))->role, Role::kAdmin);
  EXPECT_EQ(access().key_of(with_key("Bearer admin-secret", "wrong")), nullptr);
}

TEST(Access, WrongAndMissingKeysAreRefused) {
  for (const char* shown : {"", "Bearer", "Bearer ", "Bearer read-secre", "Bearer read-secret2",
                            "Basic read-secret", "read-secret"}) {
    EXPECT_EQ(access().key_of(with_key(shown)), nullptr) << shown;
    const Response refused = Access::refusal(with_key(shown));
    EXPECT_EQ(refused.status, 401U);
    EXPECT_EQ(refused.fields.at(0).first, "WWW-Authenticate");
  }
}

TEST(RequestRate, AllowsABurstAndThenItsPace) {
  const auto start = RequestRate::Clock::now();
  RequestRate rate(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rate.take(start));
  EXPECT_FALSE(rate.take(start));
  EXPECT_TRUE(rate.take(start + std::chrono::milliseconds(150)));
  EXPECT_FALSE(rate.take(start + std::chrono::milliseconds(160)));
}

Request for_host(std::string host) {
  Request request;
  request.host = std::move(host);
  return request;
}

TEST(Access, WithoutKeysOnlyTheServersOwnNamesReachIt) {
  const Access open({}, {"pando.example"});
  for (const char* own : {"", "127.0.0.1", "127.0.0.1:8053", "[::1]", "[::1]:8053", "localhost",
                          "LocalHost:8053", "localhost.:80", "192.0.2.7:80", "pando.example",
                          "PANDO.Example.:8053"})
    EXPECT_TRUE(open.is_addressed_by(for_host(own))) << own;
  for (const char* other :
       {"rebound.example", "rebound.example:8053", "127.0.0.1.rebound.example", "localhost.example",
        "xlocalhost", "127.0.0.1@rebound.example", "pando.example.test", "sub.pando.example",
        "[::1", "[rebound.example]", "[]", ":8053", ".", "0x7f000001", "2130706433", "127.1"})
    EXPECT_FALSE(open.is_addressed_by(for_host(other))) << other;
  EXPECT_FALSE(Access({}).is_addressed_by(for_host("pando.example")));
}

TEST(Access, WithKeysAnyNameReachesIt) {
  EXPECT_TRUE(access().is_addressed_by(for_host("any.example:8053")));
}

TEST(Access, ThatIsClosedLetsNobodyInWithoutAKey) {
  Access closed({}, {"pando.example"});
  closed.close();
  EXPECT_EQ(closed.key_of({}), nullptr);
  EXPECT_EQ(closed.key_of(with_key("", "any")), nullptr);
}

TEST(Access, OfAnotherHostsRequestsIsAMisdirection) {
  const Response response = Access::misdirected();
  EXPECT_EQ(response.status, 421U);
  EXPECT_NE(response.body.find("http.hosts"), std::string::npos);
}

}  // namespace access_test
}  // namespace pando::http

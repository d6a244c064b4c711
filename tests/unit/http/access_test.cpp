#include "http/serve/access.h"

#include <gtest/gtest.h>

#include "http/serve/request_rate.h"

namespace pando::http {
namespace {

Request with_key(std::string authorization, std::string api_key = "") {
  Request request;
  request.authorization = std::move(authorization);
  request.api_key = std::move(api_key);
  return request;
}

const Access& access() {
  static const Access keyed(
      {{"prometheus", "read-secret", Role::kRead}, {"root", "admin-secret", Role::kAdmin}});
  return keyed;
}

TEST(Access, WithoutKeysEverybodyReadsAndNobodyChanges) {
  const Access open({});
  EXPECT_FALSE(open.refuse({}, Role::kRead));
  EXPECT_EQ(open.refuse({}, Role::kAdmin)->status, 403U);
}

TEST(Access, AKeyIsABearerTokenOrAFieldOfItsOwn) {
  EXPECT_EQ(access().role_of(with_key("Bearer read-secret")), Role::kRead);
  EXPECT_EQ(access().role_of(with_key("bEARER   admin-secret")), Role::kAdmin);
  EXPECT_EQ(access().role_of(with_key("", "admin-secret")), Role::kAdmin);
  EXPECT_EQ(access().role_of(with_key("Bearer admin-secret", "wrong")), std::nullopt);
}

TEST(Access, WrongAndMissingKeysAreRefused) {
  for (const char* shown : {"", "Bearer", "Bearer ", "Bearer read-secre", "Bearer read-secret2",
                            "Basic read-secret", "read-secret"}) {
    const auto refused = access().refuse(with_key(shown), Role::kRead);
    ASSERT_TRUE(refused) << shown;
    EXPECT_EQ(refused->status, 401U);
    EXPECT_EQ(refused->fields.at(0).first, "WWW-Authenticate");
  }
  EXPECT_EQ(access().refuse(with_key("Bearer read-secret"), Role::kAdmin)->status, 403U);
  EXPECT_FALSE(access().refuse(with_key("Bearer admin-secret"), Role::kRead));
}

TEST(RequestRate, AllowsABurstAndThenItsPace) {
  const auto start = RequestRate::Clock::now();
  RequestRate rate(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rate.take(start));
  EXPECT_FALSE(rate.take(start));
  EXPECT_TRUE(rate.take(start + std::chrono::milliseconds(150)));
  EXPECT_FALSE(rate.take(start + std::chrono::milliseconds(160)));
}

}  // namespace
}  // namespace pando::http

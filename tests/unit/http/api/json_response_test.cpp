#include "http/api/json_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pando::http {
namespace json_response_test {

using nlohmann::json;
using ::testing::ElementsAre;

/// A list whose steps append these numbers, and then end or fail.
NextElements list_of(std::vector<std::vector<int>> steps, bool fails = false) {
  return
      [steps = std::move(steps), fails, at = std::size_t{0}](json& list) mutable -> Result<bool> {
        if (at == steps.size()) return fail(Errc::kFull, "the list is gone");
        for (const int number : steps[at]) list.push_back(number);
        ++at;
        return fails || at < steps.size();
      };
}

/// The body and all further parts.
std::vector<std::string> parts_of(Response response) {
  std::vector<std::string> parts{response.body};
  for (bool more = static_cast<bool>(response.next_part); more;) {
    const auto next = response.next_part(parts.emplace_back());
    if (!next) parts.back() = next.error().text;
    more = next && *next;
  }
  return parts;
}

TEST(ArrayResponse, OfOneStepIsWhole) {
  const Response response = array_response(list_of({{1, 2}}));
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_FALSE(response.next_part);
  EXPECT_EQ(response.body, "[1,2]");
  EXPECT_EQ(array_response(list_of({{}})).body, "[]");
}

TEST(ArrayResponse, OfSeveralStepsComesInParts) {
  EXPECT_THAT(parts_of(array_response(list_of({{1, 2}, {3}, {4}}))),
              ElementsAre("[1,2", ",3", ",4]"));
}

TEST(ArrayResponse, AStepWithoutElementsIsWhiteSpace) {
  EXPECT_THAT(parts_of(array_response(list_of({{}, {1}, {}, {}, {2}, {}}))),
              ElementsAre("\n", "[1", "\n", "\n", ",2", "]"));
  EXPECT_THAT(parts_of(array_response(list_of({{}, {}}))), ElementsAre("\n", "[]"));
}

TEST(ArrayResponse, AnErrorOfTheFirstStepIsAnErrorResponse) {
  const Response response = array_response(list_of({}));
  EXPECT_EQ(response.status, 503U);
  EXPECT_EQ(response.body, R"({"error":"the list is gone"})");
  EXPECT_THAT(parts_of(array_response(list_of({{1}}, true))),
              ElementsAre("[1", "the list is gone"));
}

}  // namespace json_response_test
}  // namespace pando::http

#include "manager/support/request_author.h"

#include <gmock/gmock.h>

namespace pando::manager {
namespace request_author_test {

using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(RequestAuthor, IsTheUserOfTheSocket) {
  ipc::ControlRequest request;
  request.uid = 4'000'000'000;  // no user has it
  EXPECT_EQ(author_of(request), (zone::Author{"user uid 4000000000", ""}));
}

TEST(RequestAuthor, NamesTheUserBesideAnyNameOfAClient) {
  ipc::ControlRequest request;
  request.uid = 4'000'000'000;
  request.client = "192.0.2.7";
  request.by = "web";
  EXPECT_EQ(author_of(request), (zone::Author{"API key web (user uid 4000000000)", "192.0.2.7"}));
  request.by = "web (user alice)" + std::string(500, ' ');
  EXPECT_THAT(author_of(request).name, StartsWith("API key web (user alice) "));
  EXPECT_THAT(author_of(request).name, EndsWith(" (user uid 4000000000)"));
}

}  // namespace request_author_test
}  // namespace pando::manager

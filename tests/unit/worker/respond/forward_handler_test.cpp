#include "worker/respond/forward_handler.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace forward_handler_test {

using dns::Rcode;
using dns::RRType;
using pando::testing::Query;
using testing::key;
using testing::notify;
using testing::number;
using testing::signed_query;
using testing::update;

class ForwardHandlerTest : public testing::RequestTest {
 protected:
  Outcome update_of(const Query& query) { return handler_.update(request(query)); }
  Outcome notify_of(const Query& query) { return handler_.notify(request(query)); }

  ForwardHandler handler_{cache_};
};

TEST_F(ForwardHandlerTest, AnUpdateThatARuleMayAllowIsForwarded) {
  const Outcome outcome = update_of(update("address.test."));
  EXPECT_EQ(outcome.action, Action::kForward);
  EXPECT_EQ(outcome.forward, ipc::ForwardKind::kUpdate);
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  EXPECT_EQ(rcode_of(update_of(update("address.test."))), number(Rcode::kRefused));
}

TEST_F(ForwardHandlerTest, AnUpdateOfNoZoneOrOfAnotherTypeIsAnError) {
  EXPECT_EQ(rcode_of(update_of(update("nowhere.test."))), number(Rcode::kNotAuth));
  Query wrong = update("address.test.");
  wrong.qtype = RRType::kA;
  EXPECT_EQ(rcode_of(update_of(wrong)), number(Rcode::kFormErr));
}

TEST_F(ForwardHandlerTest, ASecondaryForwardsUpdatesOnlyWhenConfigured) {
  EXPECT_EQ(rcode_of(update_of(update("secondary.test."))), number(Rcode::kRefused));
  const Outcome outcome =
      handler_.update(request(signed_query(update("passing.test."), key("unknown."))));
  EXPECT_EQ(outcome.action, Action::kForward) << "the primary alone may have the key";
  EXPECT_FALSE(context_.has_managers_key);
}

TEST_F(ForwardHandlerTest, ANotifyIsForwardedForASecondaryAndItsPrimary) {
  EXPECT_EQ(rcode_of(notify_of(notify("secondary.test."))), number(Rcode::kRefused));
  EXPECT_EQ(rcode_of(notify_of(notify("example.com."))), number(Rcode::kNotAuth));
  client_.remote = Endpoint::from_text("192.0.2.53@53").value();
  EXPECT_EQ(notify_of(notify("secondary.test.")).forward, ipc::ForwardKind::kNotify);
}

TEST_F(ForwardHandlerTest, ARefusalHasAReasonForTheLog) {
  client_.remote = Endpoint::from_text("203.0.113.5@1").value();
  update_of(update("address.test."));
  EXPECT_EQ(context_.refusal, "no rule of allow-update allows it");
  update_of(update("nowhere.test."));
  EXPECT_EQ(context_.refusal, "no such zone");
  update_of(update("secondary.test."));
  EXPECT_EQ(context_.refusal, "the zone is secondary: update its primary");
  notify_of(notify("secondary.test."));
  EXPECT_EQ(context_.refusal, "neither a primary of the zone nor allowed by allow-notify");
}

TEST_F(ForwardHandlerTest, WithoutAManagerAnUpdateIsServfail) {
  batch_.manager_connected = false;
  EXPECT_EQ(rcode_of(update_of(update("address.test."))), number(Rcode::kServFail));
}

}  // namespace forward_handler_test
}  // namespace pando::worker

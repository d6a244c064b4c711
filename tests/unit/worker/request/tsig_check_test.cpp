#include "worker/request/tsig_check.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace tsig_check_test {

using dns::Rcode;
using pando::testing::Query;
using testing::key;
using testing::kNow;
using testing::number;
using testing::signed_query;

using TsigCheckTest = testing::RequestTest;

TEST_F(TsigCheckTest, AnUnsignedRequestPasses) {
  RequestContext& context = request(Query{});
  EXPECT_FALSE(check_tsig(context, VerifiedBy::kWorker));
  EXPECT_FALSE(context.session || context.has_managers_key);
}

TEST_F(TsigCheckTest, AWorkersKeyIsVerifiedAndSignsTheResponse) {
  RequestContext& context = request(signed_query({}, key("query.")));
  EXPECT_FALSE(check_tsig(context, VerifiedBy::kWorker));
  EXPECT_TRUE(context.session);
  EXPECT_FALSE(context.has_managers_key);
}

TEST_F(TsigCheckTest, ASignatureOutOfItsTimeIsNotauth) {
  RequestContext& context = request(signed_query({}, key("query."), kNow - 1000));
  const auto failed = check_tsig(context, VerifiedBy::kWorker);
  ASSERT_TRUE(failed);
  EXPECT_EQ(rcode_of(*failed), number(Rcode::kNotAuth));
}

TEST_F(TsigCheckTest, AKnownKeyIsLeftToTheManagerThatGetsTheRequest) {
  RequestContext& context = request(signed_query({}, key("query."), kNow - 1000));
  EXPECT_FALSE(check_tsig(context, VerifiedBy::kManager));
  EXPECT_FALSE(context.session || context.has_managers_key);
}

TEST_F(TsigCheckTest, AnUnknownKeyIsNotauthAtOnce) {
  for (const auto verifier : {VerifiedBy::kWorker, VerifiedBy::kManager}) {
    const auto failed = check_tsig(request(signed_query({}, key("unknown."))), verifier);
    ASSERT_TRUE(failed);
    EXPECT_EQ(rcode_of(*failed), number(Rcode::kNotAuth));
  }
}

TEST_F(TsigCheckTest, AManagersKeyPassesWhileTheManagerIsConnected) {
  RequestContext& context = request(signed_query({}, key("update.")));
  EXPECT_FALSE(check_tsig(context, VerifiedBy::kWorker));
  EXPECT_TRUE(context.has_managers_key);
  EXPECT_FALSE(context.session);
  batch_.manager_connected = false;
  const auto failed = check_tsig(context, VerifiedBy::kWorker);
  ASSERT_TRUE(failed);
  EXPECT_EQ(rcode_of(*failed), number(Rcode::kServFail));
}

}  // namespace tsig_check_test
}  // namespace pando::worker

#include "worker/respond/signature_check.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/respond/request_fixture.h"

namespace pando::worker {
namespace {

using dns::Rcode;
using pando::testing::Query;
using testing::key;
using testing::kNow;
using testing::number;
using testing::signed_query;

using SignatureCheckTest = testing::RequestTest;

TEST_F(SignatureCheckTest, AnUnsignedRequestPasses) {
  RequestContext& context = request(Query{});
  EXPECT_FALSE(check_signature(context, VerifiedBy::kWorker));
  EXPECT_FALSE(context.session || context.held_key);
}

TEST_F(SignatureCheckTest, AWorkersKeyIsVerifiedAndSignsTheResponse) {
  RequestContext& context = request(signed_query({}, key("query.")));
  EXPECT_FALSE(check_signature(context, VerifiedBy::kWorker));
  EXPECT_TRUE(context.session);
  EXPECT_FALSE(context.held_key);
}

TEST_F(SignatureCheckTest, ASignatureOutOfItsTimeIsNotauth) {
  RequestContext& context = request(signed_query({}, key("query."), kNow - 1000));
  const auto failed = check_signature(context, VerifiedBy::kWorker);
  ASSERT_TRUE(failed);
  EXPECT_EQ(rcode_of(*failed), number(Rcode::kNotAuth));
}

TEST_F(SignatureCheckTest, AKnownKeyIsLeftToTheManagerThatGetsTheRequest) {
  RequestContext& context = request(signed_query({}, key("query."), kNow - 1000));
  EXPECT_FALSE(check_signature(context, VerifiedBy::kManager));
  EXPECT_FALSE(context.session || context.held_key);
}

TEST_F(SignatureCheckTest, AnUnknownKeyIsNotauthAtOnce) {
  for (const auto verifier : {VerifiedBy::kWorker, VerifiedBy::kManager}) {
    const auto failed = check_signature(request(signed_query({}, key("unknown."))), verifier);
    ASSERT_TRUE(failed);
    EXPECT_EQ(rcode_of(*failed), number(Rcode::kNotAuth));
  }
}

TEST_F(SignatureCheckTest, AManagersKeyPassesWhileTheManagerIsConnected) {
  RequestContext& context = request(signed_query({}, key("update.")));
  EXPECT_FALSE(check_signature(context, VerifiedBy::kWorker));
  EXPECT_TRUE(context.held_key);
  EXPECT_FALSE(context.session);
  batch_.manager_connected = false;
  const auto failed = check_signature(context, VerifiedBy::kWorker);
  ASSERT_TRUE(failed);
  EXPECT_EQ(rcode_of(*failed), number(Rcode::kServFail));
}

}  // namespace
}  // namespace pando::worker

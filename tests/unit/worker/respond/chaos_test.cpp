#include "worker/respond/chaos.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace chaos_test {

using dns::Rcode;
using dns::RRType;
using pando::testing::option;
using pando::testing::Query;
using pando::testing::Response;
using testing::number;

class ChaosTest : public testing::RequestTest {
 protected:
  Response ask(const char* qname, RRType type = RRType::kTXT) {
    return read(answer_chaos(request({.qname = qname, .qtype = type, .qclass = 3})));
  }
};

TEST_F(ChaosTest, BothNamesGiveTheIdentity) {
  for (const char* qname : {"id.server.", "hostname.bind."}) {
    const Response response = ask(qname);
    ASSERT_EQ(response.answer.size(), 1U);
    EXPECT_EQ(response.answer_text()[0], std::string(qname) + " TXT \"ns1.example.net\"");
  }
}

TEST_F(ChaosTest, AValueThatIsNotConfiguredIsRefused) {
  EXPECT_EQ(ask("version.bind.").rcode, number(Rcode::kRefused));
  settings_.version = "1.2";
  EXPECT_EQ(ask("version.server.").answer.size(), 1U);
  EXPECT_EQ(ask("version.bind.", RRType::kA).rcode, number(Rcode::kRefused));
  EXPECT_EQ(ask("elsewhere.").rcode, number(Rcode::kRefused));
}

TEST_F(ChaosTest, ALongValueIsCutToOneString) {
  settings_.version = std::string(300, 'v');
  ASSERT_EQ(ask("version.bind.").answer.size(), 1U);
  EXPECT_EQ(ask("version.bind.").answer[0].rdata_length, 256U);
}

TEST_F(ChaosTest, TheOptRecordGoesBeforeAnAnswerThatDoesNotFitBeside) {
  settings_.version = settings_.identity = std::string(255, 'v');
  Query query{.qname = "version.bind.", .qtype = RRType::kTXT, .qclass = 3};
  query.edns = true;
  query.payload = 512;
  query.options = option(dns::kOptionNsid, {});
  const Response response = read(answer_chaos(request(query)));
  EXPECT_TRUE(response.header.tc && response.edns);
}

}  // namespace chaos_test
}  // namespace pando::worker

// What becomes of answers and transfers when the store's octets have changed. tests/fuzz/store.cpp
// looks for crashes; here is what clients get instead.

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"
#include "worker/respond/transfer_out.h"

namespace pando::worker {
namespace damaged_store_test {

using namespace std::string_view_literals;
using dns::Rcode;
using dns::RRType;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::Response;

const std::string kLabel(60, 'c');
const std::string kZone = kLabel + " 300 NS " + kLabel + "." + kLabel + "." + kLabel + ".last.\n" +
                          R"($TTL 300
@ SOA ns1 admin 7 3600 600 86400 60
@ NS ns1
alias CNAME target
target A 192.0.2.5
tree DNAME elsewhere
cut NS ns1.cut
cut NS ns1
ns1.cut A 192.0.2.53
ns1 A 192.0.2.1
host TXT "hello"
)";

class DamagedStore : public ::testing::Test {
 protected:
  DamagedStore() : store_({{"example.com.", kZone}}) {}

  /// Writes `after` over each `before` that is in a block; there must be one.
  void change(std::string_view before, std::string_view after) {
    ASSERT_EQ(before.size(), after.size());
    const shm::Window window = store_.store().window();
    auto* const blocks =
        reinterpret_cast<char*>(const_cast<std::byte*>(window.base())) + shm::kFirstBlock;
    char* const end = blocks + (window.limit() - shm::kFirstBlock);
    std::size_t found = 0;
    for (char* at = blocks; (at = std::search(at, end, before.begin(), before.end())) != end;
         at += after.size(), ++found)
      std::copy(after.begin(), after.end(), at);
    EXPECT_GT(found, 0U);
  }
  Response ask(const char* qname, RRType type = RRType::kA) {
    Responder responder(*counters_,
                        [this](std::uint32_t index) { return store_.store().side(index); });
    responder.begin(store_.view(), 1'700'000'000, true);
    const Query query{.qname = qname, .qtype = type, .edns = true};
    const auto outcome = responder.handle(query.octets(), {}, space_);
    EXPECT_EQ(outcome.action, Action::kRespond);
    return pando::testing::read_response({space_.data(), outcome.size});
  }
  ZoneStream::Step transfer() {
    ZoneStream stream(store_.view().zone_at(name("example.com.")));
    Bytes space(65535);
    dns::MessageWriter writer(space, space.size());
    writer.put_header({});
    return stream.fill(writer);
  }
  static std::uint16_t number(Rcode rcode) { return static_cast<std::uint16_t>(rcode); }

  pando::testing::ZoneStore store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Bytes space_ = Bytes(kUdpSpace);
};

TEST_F(DamagedStore, AnAliasWhoseTargetIsNoNameIsServfail) {
  EXPECT_EQ(ask("alias.example.com.").rcode, number(Rcode::kNoError));
  change("\6target\7example"sv, "\77target\7example"sv);
  const Response response = ask("alias.example.com.");
  EXPECT_EQ(response.rcode, number(Rcode::kServFail));
  EXPECT_TRUE(response.answer.empty());
}

TEST_F(DamagedStore, ADnameWhoseTargetIsNoNameIsServfail) {
  EXPECT_EQ(ask("x.tree.example.com.").rcode, number(Rcode::kNXDomain));
  change("\11elsewhere\7example"sv, "\11elsewhere\100example"sv);
  EXPECT_EQ(ask("x.tree.example.com.").rcode, number(Rcode::kServFail));
}

TEST_F(DamagedStore, ACutThatHasLostItsServersIsServfail) {
  EXPECT_EQ(ask("x.cut.example.com.").authority.size(), 2U);
  change("\3cut\42\2"sv, "\3cut\42\20"sv);  // the NS RRset has become TXT
  for (int time = 0; time < 4; ++time) {    // nothing of it may be cached either
    const Response response = ask("x.cut.example.com.");
    EXPECT_EQ(response.rcode, number(Rcode::kServFail));
    EXPECT_TRUE(response.authority.empty());
  }
}

TEST_F(DamagedStore, AServerWhoseNameIsNoneHasNoGlue) {
  EXPECT_EQ(ask("x.cut.example.com.").additional.size(), 2U);
  change("\4\3ns1"sv, "\4\0ns1"sv);
  EXPECT_EQ(ask("x.cut.example.com.").additional.size(), 1U);
}

TEST_F(DamagedStore, AServerWhoseNameBecomesTooLongIsNotThere) {
  const std::string qname = "x." + std::string(60, 'c') + ".example.com.";
  EXPECT_EQ(ask(qname.c_str()).authority.size(), 1U);
  change("\4last\0"sv, "\4last\1"sv);  // so that it seems to go on with the owner
  for (int time = 0; time < 4; ++time) {
    const Response response = ask(qname.c_str());
    EXPECT_TRUE(response.authority.empty());
    EXPECT_TRUE(response.additional.empty());
  }
  EXPECT_EQ(transfer(), ZoneStream::Step::kDamaged);
}

TEST_F(DamagedStore, AnOwnerThatCannotBeReadIsServfail) {
  EXPECT_EQ(ask("host.example.com.", RRType::kTXT).rcode, number(Rcode::kNoError));
  change("\4host\41\20"sv, "\0host\41\20"sv);
  EXPECT_EQ(ask("host.example.com.", RRType::kTXT).rcode, number(Rcode::kServFail));
  EXPECT_EQ(ask("alias.example.com.").rcode, number(Rcode::kNoError));
}

TEST_F(DamagedStore, NothingIsDeniedWithoutASoa) {
  EXPECT_EQ(ask("none.example.com.").rcode, number(Rcode::kNXDomain));
  EXPECT_EQ(ask("host.example.com.").rcode, number(Rcode::kNoError));
  change("\41\6\54\1"sv, "\41\20\54\1"sv);  // the SOA RRset has become TXT
  EXPECT_EQ(ask("none.example.com.").rcode, number(Rcode::kServFail));
  EXPECT_EQ(ask("host.example.com.").rcode, number(Rcode::kServFail));
}

TEST_F(DamagedStore, AZoneWhoseApexIsNoNameIsNotServed) {
  change("\7example\3com\0"sv, "\7example\100com\0"sv);
  EXPECT_FALSE(store_.view().zone_at(name("example.com.")));
  EXPECT_FALSE(store_.view().find_zone(name("www.example.com.")));
  EXPECT_EQ(ask("www.example.com.").rcode, number(Rcode::kRefused));
}

TEST_F(DamagedStore, ATransferThatLacksAnRRsetDoesNotEndAsIfItWereWhole) {
  EXPECT_EQ(transfer(), ZoneStream::Step::kDone);
  change("\7\6\5hello"sv, "\377\377\377hello"sv);  // the RRset's length has no end
  EXPECT_EQ(transfer(), ZoneStream::Step::kDamaged);
}

TEST_F(DamagedStore, ATransferThatLacksARecordDoesNotEndAsIfItWereWhole) {
  change("\7\6\5hello"sv, "\7\177\5hello"sv);  // the RDATA is longer than its RRset
  EXPECT_EQ(transfer(), ZoneStream::Step::kDamaged);
}

/// A worker that reads requests together, whose store changes between two batches of one version.
class DamagedBetweenBatches : public DamagedStore {
 protected:
  DamagedBetweenBatches() {
    responder_.read_ahead_above(0);
    for (int i = 0; i < 4; ++i) ask_together(kBelow);
  }
  Response ask_together(const char* qname, RRType type = RRType::kA) {
    const Bytes request = Query{.qname = qname, .qtype = type, .edns = true}.octets();
    const Bytes other = Query{.qname = "nowhere."}.octets();
    const std::vector<Arrival> arrivals = {{request, {}}, {other, {}}};
    responder_.begin(store_.view(), 1'700'000'000, true);
    responder_.read(arrivals);
    const auto outcome = responder_.answer(0, space_);
    const Foreseen* const foreseen = responder_.last().foreseen;
    recalled_ = foreseen != nullptr && foreseen->is_recalled;
    return pando::testing::read_response({space_.data(), outcome.size});
  }

  static constexpr const char* kBelow = "x.absent.example.com.";
  Responder responder_{*counters_,
                       [this](std::uint32_t index) { return store_.store().side(index); }};
  bool recalled_ = false;
};

TEST_F(DamagedBetweenBatches, AZoneWhoseApexIsNoNameIsNotServed) {
  EXPECT_EQ(ask_together(kBelow).rcode, number(Rcode::kNXDomain));
  EXPECT_TRUE(recalled_);
  change("\7example\3com\0"sv, "\7example\100com\0"sv);
  EXPECT_EQ(ask_together(kBelow).rcode, number(Rcode::kRefused));
}

TEST_F(DamagedBetweenBatches, AZoneWhoseApexIsTooLongIsNotServed) {
  EXPECT_EQ(ask_together(kBelow).rcode, number(Rcode::kNXDomain));
  EXPECT_TRUE(recalled_);
  constexpr std::size_t kNameOctets = 1, kEntryOctets = 128;  // zone/trie/zone_layout.h
  const zone::ZoneView zone = store_.view().zone_at(name("example.com."));
  const_cast<std::uint8_t*>(zone.apex().data())[-std::ptrdiff_t(kEntryOctets) + kNameOctets] = 255;
  EXPECT_EQ(ask_together(kBelow).rcode, number(Rcode::kRefused));
  EXPECT_EQ(ask_together("*.absent.example.com.", RRType::kMX).rcode, number(Rcode::kRefused));
}

TEST_F(DamagedBetweenBatches, ALookupOfAZoneWhoseApexIsAnotherNameIsNotRecalled) {
  EXPECT_EQ(ask_together("y.absent.example.com.").rcode, number(Rcode::kNXDomain));
  EXPECT_TRUE(recalled_);
  change("\7example\3com\0"sv, "\7exampls\3com\0"sv);
  EXPECT_EQ(ask_together("z.absent.example.com.").rcode, number(Rcode::kRefused));
  EXPECT_FALSE(recalled_);
}

TEST_F(DamagedBetweenBatches, ACachedAnswerOfADamagedZoneIsNotRepeated) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ask_together("target.example.com.").rcode, number(Rcode::kNoError));
  change("\7example\3com\0"sv, "\7example\100com\0"sv);
  EXPECT_EQ(ask_together("target.example.com.").rcode, number(Rcode::kRefused));
}

}  // namespace damaged_store_test
}  // namespace pando::worker

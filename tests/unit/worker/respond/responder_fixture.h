#pragma once

#include "tests/unit/worker/request_fixture.h"
#include "worker/respond/responder.h"

/// A responder beside a store with zones of every kind, and a client that asks it.
namespace pando::worker::testing {

class ResponderTest : public ::testing::Test {
 protected:
  ResponderTest() {
    settings_.identity = "ns1.example.net";
    store_ = std::make_unique<pando::testing::ZoneStore>(zones(), settings_);
    responder_.set_keys(worker_keys());
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }

  Outcome handle(const Bytes& message) {
    responder_.begin(store_->view(), now_, manager_);
    return responder_.handle(message, client_, space_);
  }
  Response ask(const Query& query) { return ask_octets(query.octets()); }
  Response ask_octets(const Bytes& message) {
    outcome_ = handle(message);
    EXPECT_EQ(outcome_.action, Action::kRespond);
    return pando::testing::read_response({space_.data(), outcome_.size});
  }
  void use_tcp() { client_.transport = ipc::Transport::kTcp; }
  std::uint64_t count(ipc::Counter counter) const {
    return (*counters_)[ipc::counter_index(counter)].load();
  }
  /// That this is the answer when a key that workers have signs the request, and is signed with it.
  void expect_signed(const Query& query, dns::Rcode rcode) {
    dns::TsigKeyring ring;
    ASSERT_TRUE(ring.add(key("query.")));
    auto session = dns::TsigSession::for_request(*ring.find(name("query.")));
    Bytes message = query.octets();
    ASSERT_TRUE(session.sign(message, kNow));
    const Response response = ask_octets(message);
    EXPECT_EQ(response.rcode, number(rcode));
    EXPECT_TRUE(session.verify_response(response.octets, kNow));
  }

  zone::ServerSettings settings_;
  std::unique_ptr<pando::testing::ZoneStore> store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Responder responder_{*counters_,
                       [this](std::uint32_t index) { return store_->store().side(index); }};
  Client client_;
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
  std::uint64_t now_ = kNow;
  bool manager_ = true;
  Outcome outcome_;
};

}  // namespace pando::worker::testing

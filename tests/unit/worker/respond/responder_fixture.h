#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"

/// A responder beside a store with zones of every kind, and a client that asks it.
namespace pando::worker::testing {

using pando::testing::allow_address;
using pando::testing::allow_key;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::Response;
using pando::testing::TestZone;

inline constexpr std::uint64_t kNow = 1'700'000'000;

inline std::uint16_t number(dns::Rcode rcode) { return static_cast<std::uint16_t>(rcode); }

inline constexpr const char* kZone = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.80
big TXT "0123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "1123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "2123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "3123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "4123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "5123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "6123456789012345678901234567890123456789012345678901234567890123456789"
)";

inline std::vector<TestZone> zones() {
  TestZone open{"example.com.", kZone};
  open.settings.allow_transfer = {allow_address("192.0.2.0/24"), allow_key("transfer."),
                                  allow_key("update.")};
  open.settings.allow_update = {allow_key("update.")};
  TestZone closed{"closed.test.", kZone};
  closed.settings.allow_query = {allow_address("198.51.100.0/24"), allow_key("query.")};
  TestZone unloaded{"unloaded.test.", ""};
  TestZone secondary{"secondary.test.", kZone};
  secondary.settings.is_secondary = true;
  secondary.settings.allow_notify = {allow_address("192.0.2.53/32")};
  secondary.settings.allow_transfer = {pando::testing::allow_all()};
  TestZone by_address{"address.test.", kZone};
  by_address.settings.allow_update = {allow_address("192.0.2.0/24")};
  TestZone passing{"passing.test.", kZone};  // updates to its primary
  passing.settings.is_secondary = passing.settings.forward_updates = true;
  TestZone choosing{"choosing.test.", kZone};
  choosing.settings = passing.settings;
  choosing.settings.allow_update = {allow_address("192.0.2.0/24"), allow_key("update.")};
  return {open, closed, unloaded, secondary, by_address, passing, choosing};
}

inline dns::TsigKey key(const char* key_name) {
  return {name(key_name), dns::TsigAlgorithm::kSha256, Bytes(32, 0x42)};
}

class ResponderTest : public ::testing::Test {
 protected:
  ResponderTest() {
    settings_.identity = "ns1.example.net";
    store_ = std::make_unique<pando::testing::ZoneStore>(zones(), settings_);
    ipc::Keys keys;
    keys.shared = {key("transfer."), key("query.")};
    keys.held = {{name("update."), dns::TsigAlgorithm::kSha256}};
    responder_.set_keys(make_key_set(std::move(keys)));
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }

  Outcome handle(const Bytes& message) {
    responder_.begin(store_->snapshot(), now_, manager_);
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
  /// A query signed with `key`.
  static Bytes signed_query(const Query& query, const dns::TsigKey& with, std::uint64_t at = kNow) {
    dns::TsigKeyring ring;
    EXPECT_TRUE(ring.add(with));
    auto session = dns::TsigSession::for_request(*ring.find(with.name));
    Bytes message = query.octets();
    EXPECT_TRUE(session.sign(message, at));
    return message;
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

/// Requests without a record but the zone's name: what is looked at before they are passed on.
inline Query update(const char* zone) {
  return {.opcode = 5, .qname = zone, .qtype = dns::RRType::kSOA};
}
inline Query notify(const char* zone) {
  return {.opcode = 4, .qname = zone, .qtype = dns::RRType::kSOA};
}

}  // namespace pando::worker::testing

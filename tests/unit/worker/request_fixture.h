#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/worker/query_builder.h"
#include "worker/request/outcome.h"
#include "worker/request/request_context.h"
#include "worker/request/settings_cache.h"
#include "worker/respond/zone_expiry.h"

/// A store with zones of every kind, and requests to it.
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

/// Requests without a record but the zone's name: what is looked at before they are passed on.
inline Query update(const char* zone) {
  return {.opcode = 5, .qname = zone, .qtype = dns::RRType::kSOA};
}
inline Query notify(const char* zone) {
  return {.opcode = 4, .qname = zone, .qtype = dns::RRType::kSOA};
}

/// A message signed with `key`.
inline Bytes signed_query(const Query& query, const dns::TsigKey& with, std::uint64_t at = kNow) {
  dns::TsigKeyring ring;
  EXPECT_TRUE(ring.add(with));
  auto session = dns::TsigSession::for_request(*ring.find(with.name));
  Bytes message = query.octets();
  EXPECT_TRUE(session.sign(message, at));
  return message;
}

/// The keys "transfer." and "query.", which workers have, and "update.", which only the manager
/// has.
inline std::shared_ptr<const KeySet> worker_keys() {
  ipc::Keys keys;
  keys.shared = {key("transfer."), key("query.")};
  keys.held = {{name("update."), dns::TsigAlgorithm::kSha256}};
  return make_key_set(std::move(keys));
}

/// A request's context as one handler gets it, without a responder.
class RequestTest : public ::testing::Test {
 protected:
  RequestTest() {
    settings_.identity = "ns1.example.net";
    store_ = std::make_unique<pando::testing::ZoneStore>(zones(), settings_);
    batch_.view = store_->view();
    batch_.settings = &settings_;
    batch_.keys = worker_keys();
    batch_.now = kNow;
    batch_.manager_connected = true;
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }

  /// The context of `message`, parsed.
  RequestContext& request(Bytes message) {
    message_ = std::move(message);
    context_.begin(client_);
    context_.begin_response(space_);
    EXPECT_EQ(parse_request(message_, context_.request).kind, ParseOutcome::Kind::kGood);
    return context_;
  }
  RequestContext& request(const Query& query) { return request(query.octets()); }
  Response read(const Outcome& outcome) {
    EXPECT_EQ(outcome.action, Action::kRespond);
    return pando::testing::read_response({space_.data(), outcome.size});
  }
  std::uint16_t rcode_of(const Outcome& outcome) { return read(outcome).rcode; }
  /// The INFO-CODE of the response's extended error (RFC 8914 §2); 0 without one.
  static std::uint16_t detail_of(const Response& response) {
    if (!response.edns) return 0;
    const auto option = dns::find_option(response.edns->options, dns::kOptionEde);
    return option && option->size() >= 2 ? load_be16(option->data()) : std::uint16_t{0};
  }
  void use_tcp() { client_.transport = ipc::Transport::kTcp; }
  std::uint64_t count(ipc::Counter counter) const {
    return (*counters_)[ipc::counter_index(counter)].load();
  }

  zone::ServerSettings settings_;
  std::unique_ptr<pando::testing::ZoneStore> store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  SettingsCache cache_;
  ZoneExpiry expiry_{[this](std::uint32_t index) { return store_->store().side(index); }};
  ResponseLimits limits_;
  BatchContext batch_;
  RequestContext context_{batch_, Counting(*counters_), limits_};
  Client client_;
  Bytes message_;
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
};

}  // namespace pando::worker::testing

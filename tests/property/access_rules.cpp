// Random lists of rules and random clients against a model of what a rule is about.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "zone/settings/acl.h"

namespace pando::zone {
namespace {

constexpr int kRounds = 100'000;
const char* const kAddresses[] = {"192.0.2.1", "192.0.2.200", "198.51.100.7", "2001:db8::1"};
const char* const kPrefixes[] = {"192.0.2.0/24", "192.0.2.1", "0.0.0.0/0", "::/0", "2001:db8::/32"};
const char* const kKeys[] = {"a.", "b."};
const char* const kRemotes[] = {"first", "second", "third"};

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  bool one_in(unsigned n) { return random_() % n == 0; }
  template <class T, std::size_t N>
  T pick(T const (&from)[N]) {
    return from[random_() % N];
  }
  AclRule rule() {
    AclRule made;
    made.deny = one_in(3);
    if (one_in(2)) made.address = *IpPrefix::from_text(pick(kPrefixes));
    if (one_in(3)) made.key = *dns::Name::from_text(pick(kKeys));
    if (one_in(2)) made.tls = std::string(one_in(4) ? "any" : pick(kRemotes));
    return made;
  }
  Acl list() {
    Acl made(random_() % 6);
    std::ranges::generate(made, [this] { return rule(); });
    return made;
  }
  PeerIdentity peer() {
    PeerIdentity made;
    for (const char* remote : kRemotes)
      if (one_in(3)) made.remotes.emplace_back(remote);
    return made;
  }

 private:
  std::mt19937 random_;
};

/// A client with all that it shows.
struct Client {
  explicit Client(Maker& make)
      : address(*IpAddress::from_text(make.pick(kAddresses))),
        key(*dns::Name::from_text(make.pick(kKeys))),
        peer(make.peer()),
        is_signed(make.one_in(2)),
        is_tls(make.one_in(2)) {}
  Requester requester() const {
    return {address, is_signed ? &key : nullptr, is_tls ? &peer : nullptr};
  }
  Requester over_plain_tcp() const { return {address, is_signed ? &key : nullptr, nullptr}; }

  IpAddress address;
  dns::Name key;
  PeerIdentity peer;
  bool is_signed;
  bool is_tls;
};

/// The list as it reads for this peer: a rule about others is gone, one about the peer is about
/// everybody.
Acl as_read_by(const Acl& list, const Client& client) {
  Acl read;
  for (AclRule rule : list) {
    if (rule.tls) {
      const auto& proven = client.peer.remotes;
      const bool named = std::find(proven.begin(), proven.end(), *rule.tls) != proven.end();
      if (!client.is_tls || !(named || *rule.tls == "any")) continue;
      rule.tls.reset();
    }
    read.push_back(std::move(rule));
  }
  return read;
}

TEST(AccessRules, AnIdentityCountsWhereItsRuleNamesIt) {
  Maker make(1);
  int allowed_ones = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Acl list = make.list();
    const Client client(make);
    const Acl read = as_read_by(list, client);
    ASSERT_EQ(allowed(list, client.requester()), allowed(read, client.over_plain_tcp())) << round;
    ASSERT_EQ(could_allow(list, client.requester()), could_allow(read, client.over_plain_tcp()));
    allowed_ones += allowed(list, client.requester()) ? 1 : 0;
  }
  EXPECT_GT(allowed_ones, kRounds / 10);
  EXPECT_LT(allowed_ones, kRounds / 10 * 9);
}

TEST(AccessRules, WithoutTlsRulesAboutTlsAreNotThere) {
  Maker make(2);
  for (int round = 0; round < kRounds; ++round) {
    const Acl list = make.list();
    const Client client(make);
    Acl plain;
    std::ranges::copy_if(list, std::back_inserter(plain), [](const AclRule& r) { return !r.tls; });
    const Requester requester = client.over_plain_tcp();
    ASSERT_EQ(allowed(list, requester), allowed(plain, requester)) << round;
    ASSERT_EQ(could_allow(list, requester), could_allow(plain, requester)) << round;
  }
}

TEST(AccessRules, TheRuleThatDecidesHoldsInAllItsParts) {
  Maker make(3);
  for (int round = 0; round < kRounds; ++round) {
    const Acl list = make.list();
    const Client client(make);
    const Requester who = client.requester();
    const auto holds = [&](const AclRule& rule) {
      return (!rule.address || rule.address->contains(who.address)) &&
             (!rule.key || (who.key != nullptr && *rule.key == *who.key)) &&
             (!rule.tls || (who.peer != nullptr && who.peer->is(*rule.tls)));
    };
    const auto first = std::ranges::find_if(list, holds);
    ASSERT_EQ(allowed(list, who), first != list.end() && !first->deny) << round;
  }
}

TEST(AccessRules, KeepTheirMeaningInTheStore) {
  Maker make(4);
  for (int round = 0; round < kRounds / 10; ++round) {
    ZoneSettings settings;
    settings.allow_transfer = make.list();
    const auto decoded = decode_zone_settings(encode(settings));
    ASSERT_TRUE(decoded);
    ASSERT_EQ(*decoded, settings) << round;
  }
}

}  // namespace
}  // namespace pando::zone

// Answers from cached lookups are those of the lookups. Two workers get the same questions: one
// reads each alone, the other reads them together.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/worker/query_builder.h"
#include "worker/respond/responder.h"

namespace pando::worker {
namespace recalled_answers_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::TestZone;

constexpr std::uint64_t kNow = 1'700'000'000;
const std::vector<std::string> kLabels = {"a", "b", "c", "d", "e", "f"};

/// Random numbers, and names of few labels, so that they meet.
class Source {
 public:
  explicit Source(unsigned seed) : random_(seed) {}
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  const std::string& label() { return kLabels[below(unsigned(kLabels.size()))]; }
  std::string relative(unsigned most) {
    std::string text = label();
    for (unsigned i = below(most); i > 0; --i) text = label() + "." + text;
    return text;
  }

 private:
  std::mt19937_64 random_;
};

enum class Proofs { kNone, kNsec, kNsec3 };

/// A zone of delegations, wildcards, aliases and ENTs, also at the children of its apex.
std::string zone_text(Source& source, Proofs proofs) {
  std::string text = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n";
  std::vector<std::string> names = {"@"};
  const std::string cut_servers = source.relative(3);
  for (unsigned i = 0; i < 8; ++i) {
    const std::string owner = source.relative(3);
    names.push_back(owner);
    switch (source.below(8)) {
      case 0:
        text += owner + " A 192.0.2.2\n";
        break;
      case 1:
        text += "*." + owner + " A 192.0.2.3\n";
        break;
      case 2:
        text += owner + " DNAME b\n";
        break;
      case 3:
      case 4:
        text += owner + " NS ns." + owner + "\nns." + owner + " A 192.0.2.4\n";
        for (char c = 'a'; c < 'a' + int(source.below(26)); ++c)
          text += owner + " NS " + std::string(20, c) + "." + source.label() + "." + owner + "\n";
        if (source.below(2) != 0) text += owner + " DS 1 8 2 " + std::string(64, 'a') + "\n";
        break;
      case 5:
        text += owner + " NS ns." + cut_servers + "\n" + owner + " NS ns\n";
        break;
      case 6:
        text += owner + " TXT x\n";
        break;
      default:
        text += owner + " MX 1 ns\n";
    }
  }
  if (source.below(3) == 0) text += source.below(2) != 0 ? "* A 192.0.2.9\n" : "* CNAME ns.a\n";
  if (source.below(8) == 0) text += "@ DNAME elsewhere.\n";
  if (proofs == Proofs::kNsec)
    for (const std::string& owner : names) text += owner + " NSEC @ A NSEC\n";
  if (proofs == Proofs::kNsec3) {
    text += "@ NSEC3PARAM 1 0 1 -\n";
    for (const char c : {'0', '7', 'e', 'l', 's'})
      text += std::string(32, c) + " NSEC3 1 1 1 - " + std::string(32, 'u') + " A\n";
  }
  return text;
}

struct Counted {
  int recalled = 0;
  int all = 0;
};

/// Up to five zones, one below the other, and the two workers that serve them.
class Compared {
 public:
  explicit Compared(unsigned seed) : source_(seed), store_(zones()) {
    together_.read_ahead_above(0);
    client_.remote = Endpoint::from_text("192.0.2.7@4711").value();
    client_.local = Endpoint::from_text("192.0.2.1@53").value();
  }
  void add_zone(const std::string& apex) { store_.add({apex, zone_text(source_, Proofs::kNone)}); }
  void run(Counted& counted) {
    for (int batch = 0; batch < 60; ++batch) {
      std::vector<Bytes> requests;
      std::vector<std::string> texts;
      std::vector<Client> clients;
      for (int i = 0; i < 16; ++i) {
        requests.push_back(request(texts.emplace_back()));
        clients.push_back(client_);
        if (source_.below(6) == 0) clients.back().transport = ipc::Transport::kTcp;
      }
      std::vector<Arrival> arrivals;
      for (std::size_t i = 0; i < 16; ++i) arrivals.push_back({requests[i], clients[i]});
      alone_.begin(store_.view(), kNow, true);
      together_.begin(store_.view(), kNow, true);
      together_.read(arrivals);
      for (std::size_t i = 0; i < 16; ++i) {
        const auto one = alone_.handle(requests[i], clients[i], space_);
        const auto same = together_.answer(i, other_);
        const Foreseen* const foreseen = together_.last().foreseen;
        const bool recalled = foreseen != nullptr && foreseen->is_recalled;
        counted.recalled += recalled;
        ++counted.all;
        ASSERT_EQ(one.action, same.action) << texts[i];
        ASSERT_EQ(ByteView(space_).first(one.size).size(), same.size)
            << texts[i] << " recalled " << recalled;
        ASSERT_TRUE(
            std::equal(space_.begin(), space_.begin() + std::ptrdiff_t(one.size), other_.begin()))
            << texts[i] << " recalled " << recalled;
      }
    }
  }

 private:
  std::vector<TestZone> zones() {
    std::vector<TestZone> zones;
    const std::vector<std::string> apexes = {".", "a.", "b.a.", "c.b.a.", "b."};
    for (const std::string& apex : apexes) {
      if (source_.below(3) == 0) continue;
      TestZone zone{apex, zone_text(source_, static_cast<Proofs>(source_.below(3)))};
      if (source_.below(8) == 0) zone.text.clear();
      if (source_.below(8) == 0) zone.settings.allow_query.clear();
      zones.push_back(std::move(zone));
    }
    if (zones.empty()) zones.push_back({".", zone_text(source_, Proofs::kNsec)});
    return zones;
  }
  Bytes request(std::string& text) {
    constexpr std::array kTypes = {RRType::kA,   RRType::kA,    RRType::kNS,   RRType::kDS,
                                   RRType::kSOA, RRType::kANY,  RRType::kMX,   RRType::kRRSIG,
                                   RRType::kTXT, RRType::kNSEC, RRType::kAXFR, RRType::kDNAME,
                                   RRType::kDS,  RRType::kCNAME};
    Query query;
    query.qname = source_.relative(5) + ".";
    const bool is_root = source_.below(40) == 0;
    if (source_.below(30) == 0) query.qname = "\\000\\255." + query.qname;
    if (source_.below(30) == 0) query.qname = "*." + query.qname;
    if (source_.below(30) == 0)
      while (query.qname.size() + 2 < 250) query.qname = "x." + query.qname;
    if (is_root) query.qname = ".";
    for (char& c : query.qname)
      if (source_.below(2) != 0) c = static_cast<char>(std::toupper(c));
    query.qtype = kTypes[source_.below(kTypes.size())];
    if (source_.below(30) == 0) query.qclass = source_.below(2) != 0 ? 255 : 3;
    if (source_.below(30) == 0) query.opcode = 4;
    if (source_.below(30) == 0) query.questions = 0;
    query.edns = source_.below(3) != 0;
    query.payload = std::array<std::uint16_t, 4>{512, 600, 1232, 4096}[source_.below(4)];
    query.dnssec_ok = source_.below(2) != 0;
    if (query.edns && source_.below(10) == 0) query.options = pando::testing::option(19, {});
    text = fmt::format("{} type {} class {} edns {} do {}", query.qname,
                       static_cast<int>(query.qtype), query.qclass, query.edns, query.dnssec_ok);
    return query.octets();
  }

  Source source_;
  pando::testing::ZoneStore store_;
  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  SideTable side_ = [this](std::uint32_t index) { return store_.store().side(index); };
  Responder alone_{*counters_, side_};
  Responder together_{*counters_, side_};
  Client client_;
  Bytes space_ = Bytes(65535);
  Bytes other_ = Bytes(65535);
};

TEST(RecalledAnswers, AreThoseOfTheLookups) {
  Counted counted;
  constexpr unsigned kSeeds = 60;
  for (unsigned seed = 0; seed < kSeeds && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Compared compared(seed);
    compared.run(counted);
    for (const char* const apex : {"d.c.b.a.", "f.", "e.a."}) {
      compared.add_zone(apex);
      compared.run(counted);
    }
  }
  EXPECT_GT(counted.recalled, counted.all / 50) << counted.recalled << " of " << counted.all;
}

}  // namespace recalled_answers_test
}  // namespace pando::worker

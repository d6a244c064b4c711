// Random small zones, signed with NSEC or NSEC3, asked for random names: each answer must be what a
// naive reading of the RFCs gives, and a validator that sees only the answer must come to the same
// conclusion. A worker's responder, which puts templates together, must answer with the same records.
// PANDO_PROPERTY_SEED and PANDO_PROPERTY_ZONES choose other and more zones.

#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "dns/message/message.h"
#include "dns/rdata/rdata.h"
#include "tests/property/proof_check.h"
#include "worker/answer/render.h"
#include "worker/answer/resolve.h"
#include "worker/respond/responder.h"
#include "zone/builder/zone_builder.h"

namespace {

using namespace model;
using pando::dns::MessageRecord;
using pando::dns::Rcode;
using pando::worker::Answer;

unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

struct Record {
  Name owner;
  RRType type;
  Bytes rdata;
};

struct Response {
  Rcode rcode;
  bool aa;
  std::vector<Record> sections[3];

  [[nodiscard]] bool has(int section, NameView owner, RRType type) const {
    return std::any_of(sections[section].begin(), sections[section].end(),
                       [&](const Record& r) { return r.type == type && r.owner == owner; });
  }
  [[nodiscard]] bool is_signed(int section, const Record& record) const {
    return std::any_of(sections[section].begin(), sections[section].end(), [&](const Record& r) {
      return r.type == RRType::kRRSIG && r.owner == record.owner &&
             pando::dns::rrsig_covered(r.rdata) == record.type;
    });
  }
};

Response read(ByteView message) {
  pando::dns::MessageReader reader(message);
  const auto header = *reader.header();
  Response response{static_cast<Rcode>(header.rcode), header.aa, {}};
  EXPECT_FALSE(header.tc);
  EXPECT_TRUE(reader.question().has_value());
  const unsigned counts[] = {header.ancount, header.nscount, header.arcount};
  for (int section = 0; section < 3; ++section) {
    for (unsigned i = 0; i < counts[section]; ++i) {
      const MessageRecord record = *reader.record();
      Bytes rdata;
      EXPECT_TRUE(
          decompress_rdata(record.type, message, record.rdata_offset, record.rdata_length, rdata));
      response.sections[section].push_back({record.owner, record.type, rdata});
    }
  }
  EXPECT_TRUE(reader.at_end());
  return response;
}

/// A zone in a store of its own.
class Served {
 public:
  Served(const Zone& zone, const Signing& signing)
      : path_(::testing::TempDir() + "answers_are_proven-" + std::to_string(::getpid()) + ".store"),
        store_(std::move(*pando::shm::Store::create({.path = path_,
                                                     .size_limit = 16U << 20,
                                                     .layout = pando::zone::layout_fingerprint(),
                                                     .allow_any_filesystem = true}))) {
    auto transaction = store_.begin();
    pando::zone::Draft draft(transaction, {}, 2);
    pando::zone::ZoneBuilder builder(zone.apex, transaction);
    const auto filled = Signer(zone, signing).fill(builder);
    EXPECT_TRUE(filled) << filled.error().text;
    const auto built = builder.finish();
    EXPECT_TRUE(built) << built.error().text;
    pando::zone::ZoneSettings settings;
    settings.allow_query.emplace_back();  // everybody
    EXPECT_TRUE(draft.put_zone_settings(zone.apex, settings, 0));
    EXPECT_TRUE(draft.put_zone(zone.apex, **built, {}));
    const auto root = draft.root();
    EXPECT_TRUE(store_.publish(std::move(transaction), root, 0));
  }
  ~Served() { std::remove(path_.c_str()); }

  Response ask(const Name& name, RRType type) {
    const auto current = store_.current();
    const pando::zone::StoreView view(store_.window(), current.root, current.number);
    const pando::dns::Question question{name, type, pando::dns::RRClass::kIN};
    pando::worker::resolve(pando::worker::choose_zone(view, name, type), question,
                           {.dnssec_ok = true}, hasher_, *answer_);
    pando::dns::MessageWriter writer(space_, space_.size());
    writer.put_header({});
    EXPECT_TRUE(writer.put_question(name, type, question.rr_class));
    pando::worker::render(*answer_, question, writer);
    return read(writer.finish());
  }

  /// The answer of a worker, which keeps parts of earlier ones.
  Response ask_worker(const Name& name, RRType type) {
    pando::dns::MessageWriter query(space_, space_.size());
    query.put_header({});
    EXPECT_TRUE(query.put_question(name, type, pando::dns::RRClass::kIN));
    const pando::dns::OptBuilder opt(1232, Rcode::kNoError, true);
    EXPECT_TRUE(query.put_raw_additional(opt.record()));
    const ByteView octets = query.finish();
    const std::vector<std::uint8_t> message(octets.begin(), octets.end());
    const auto current = store_.current();
    responder_.begin({store_.window(), current.root, current.number}, 1'700'000'000, true);
    pando::worker::Client client;
    client.transport = pando::ipc::Transport::kTcp;
    const auto outcome = responder_.handle(message, client, space_);
    Response response = read(ByteView(space_).first(outcome.size));
    std::erase_if(response.sections[2], [](const Record& r) { return r.type == RRType::kOPT; });
    return response;
  }

 private:
  std::string path_;
  pando::shm::Store store_;
  pando::dns::Nsec3Hasher hasher_;
  std::unique_ptr<Answer> answer_ = std::make_unique<Answer>();
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
  std::unique_ptr<pando::worker::CounterArray> counters_ =
      std::make_unique<pando::worker::CounterArray>();
  pando::worker::Responder responder_{*counters_,
                                      [this](std::uint32_t index) { return store_.side(index); }};
};

/// A section's records in an order of their own.
std::vector<std::string> sorted_text(const std::vector<Record>& section) {
  std::vector<std::string> lines;
  for (const Record& r : section)
    lines.push_back(to_text(r.owner.folded()) + " " + to_text(r.type) + " " +
                    rdata_to_text(r.type, r.rdata));
  std::sort(lines.begin(), lines.end());
  return lines;
}

void expect_same(const Response& actual, const Response& expected) {
  EXPECT_EQ(actual.rcode, expected.rcode);
  EXPECT_EQ(actual.aa, expected.aa);
  for (int section = 0; section < 3; ++section)
    EXPECT_EQ(sorted_text(actual.sections[section]), sorted_text(expected.sections[section]));
}

std::unique_ptr<Proof> proof_of(const Response& response, const Name& apex,
                                const Signing& signing) {
  auto nsec = std::make_unique<NsecProof>(apex);
  auto nsec3 = std::make_unique<Nsec3Proof>(apex, signing);
  for (const Record& record : response.sections[1]) {
    if (record.type == RRType::kNSEC) nsec->add(record.owner, record.rdata);
    if (record.type == RRType::kNSEC3) nsec3->add(record.owner, record.rdata);
  }
  if (signing.nsec3) return nsec3;
  return nsec;
}

/// Everything authoritative is signed; not NS at a cut, and not the CNAME that a DNAME made.
void expect_signatures(const Response& response, const Zone& zone) {
  for (int section = 0; section < 2; ++section) {
    for (const Record& record : response.sections[section]) {
      if (record.type == RRType::kRRSIG) continue;
      if (record.type == RRType::kNS && zone.is_cut(record.owner)) continue;
      const auto barrier = zone.barrier(record.owner);
      if (record.type == RRType::kCNAME && barrier) continue;
      EXPECT_TRUE(response.is_signed(section, record))
          << to_text(record.owner) << " " << to_text(record.type);
    }
  }
}

Rcode rcode_of(End end) {
  switch (end) {
    case End::kNameError:
      return Rcode::kNXDomain;
    case End::kTooLong:
      return Rcode::kYXDomain;
    default:
      return Rcode::kNoError;
  }
}

void expect_end(const Response& response, const Outcome& outcome, RRType type, const Zone& zone,
                const Proof& proof) {
  switch (outcome.end) {
    case End::kData:
      EXPECT_TRUE(response.has(0, outcome.last, type));
      break;
    case End::kNoData:
      EXPECT_TRUE(response.has(1, zone.apex, RRType::kSOA));
      EXPECT_TRUE(outcome.wildcard ? proof.wildcard_no_data(outcome.last, type)
                                   : proof.no_data(outcome.last, type));
      break;
    case End::kNameError:
      EXPECT_TRUE(response.has(1, zone.apex, RRType::kSOA));
      EXPECT_TRUE(proof.name_error(outcome.last));
      break;
    case End::kReferral:
      EXPECT_TRUE(response.has(1, outcome.cut, RRType::kNS));
      EXPECT_TRUE(zone.has(outcome.cut, RRType::kDS) ? response.has(1, outcome.cut, RRType::kDS)
                                                     : proof.no_data(outcome.cut, RRType::kDS));
      break;
    default:
      break;
  }
}

void check_zone(const Zone& zone, const Signing& signing, Maker& maker) {
  static const RRType kTypes[] = {RRType::kA,  RRType::kTXT, RRType::kCNAME, RRType::kDS,
                                  RRType::kNS, RRType::kMX,  RRType::kDNAME, RRType::kSOA};
  Served served(zone, signing);
  for (int i = 0; i < 60; ++i) {
    const Name name = i == 0 ? zone.apex : maker.name(zone.apex, 4);
    const RRType type = kTypes[maker.pick(std::size(kTypes))];
    SCOPED_TRACE(to_text(name) + " " + to_text(type));
    const Outcome outcome = answer(zone, name, type, pando::worker::kMaxChain);
    const Response response = served.ask(name, type);
    const auto proof = proof_of(response, zone.apex, signing);
    EXPECT_EQ(response.rcode, rcode_of(outcome.end));
    EXPECT_EQ(response.aa, outcome.end != End::kReferral || !response.sections[0].empty());
    expect_end(response, outcome, type, zone, *proof);
    for (const auto& [synthesized, encloser] : outcome.synthesized)
      EXPECT_TRUE(proof->no_closer_match(synthesized, encloser)) << to_text(synthesized);
    expect_signatures(response, zone);
    for (int time = 0; time < 3; ++time) expect_same(served.ask_worker(name, type), response);
    if (::testing::Test::HasFailure()) return;
  }
}

std::string listing(const Zone& zone) {
  std::string text;
  for (const auto& [owner, types] : zone.nodes) {
    for (const auto& [type, rdatas] : types)
      for (const Bytes& rdata : rdatas)
        text += to_text(owner) + " " + to_text(type) + " " + rdata_to_text(type, rdata) + "\n";
  }
  return text;
}

void check_many(const Signing& signing, unsigned count = 150) {
  const unsigned seed = setting("PANDO_PROPERTY_SEED", 1);
  const unsigned zones = setting("PANDO_PROPERTY_ZONES", count);
  for (unsigned i = 0; i < zones && !::testing::Test::HasFailure(); ++i) {
    Random random(seed + i);
    Maker maker(random);
    const Zone zone = maker.make();
    SCOPED_TRACE("seed " + std::to_string(seed + i) + "\n" + listing(zone));
    check_zone(zone, signing, maker);
  }
}

TEST(AnswersAreProven, ByNsec) { check_many({}); }
TEST(AnswersAreProven, ByNsec3) { check_many({true, false, 1, {0xab}}); }
TEST(AnswersAreProven, ByNsec3WithOptOut) { check_many({true, true, 0, {}}); }
// Between two records of the chain stand hundreds of another, so that neither way to them suffices.
TEST(AnswersAreProven, ByNsec3AmongManyOfAnotherChain) {
  check_many({true, true, 1, {0xab}, 20000}, 5);
}

}  // namespace

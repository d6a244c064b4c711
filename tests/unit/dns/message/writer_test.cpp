#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>

#include "dns/message/message.h"

namespace pando::dns {
namespace writer_test {

Name name(std::string_view text) { return *Name::from_text(text); }

Bytes octets_of(NameView view) { return {view.data(), view.data() + view.size()}; }

/// One RRset as a test wants it written.
struct Set {
  Section section = Section::kAnswer;
  Name owner;
  RRType type = RRType::kA;
  std::vector<Bytes> rdatas;
  Bytes prefix;
};

Bytes mx(std::uint16_t preference, NameView exchange) {
  Bytes rdata;
  append_be16(rdata, preference);
  append(rdata, exchange.bytes());
  return rdata;
}

Bytes soa(NameView mname, NameView rname) {
  Bytes rdata = octets_of(mname);
  append(rdata, rname.bytes());
  rdata.resize(rdata.size() + 20, 7);
  return rdata;
}

bool put(MessageWriter& writer, const Set& set) {
  return writer.put_rrset(
      set.section, set.owner, set.type, RRClass::kIN, Ttl{300},
      [&](auto&& visit) {
        for (const Bytes& rdata : set.rdatas) visit(ByteView(rdata));
      },
      set.prefix);
}

/// A compressor too simple to be wrong: remembers each name ever written, by its text in lower
/// case.
class ReferenceWriter {
  struct Place {
    std::size_t offset;
    unsigned pointers;  // on the way from there to the root
  };

 public:
  Bytes message = Bytes(kHeaderOctets, 0);

  void put_question(NameView question, RRType type) {
    put_name(question);
    append_be16(message, static_cast<std::uint16_t>(type));
    append_be16(message, 1);
    ++message[5];
  }
  void put_set(const Set& set) {
    for (const Bytes& rdata : set.rdatas) put_record(set, rdata);
  }

 private:
  void put_record(const Set& set, const Bytes& rdata) {
    put_name(set.owner);
    append_be16(message, static_cast<std::uint16_t>(set.type));
    append_be16(message, 1);
    append_be32(message, 300);
    const std::size_t length_at = message.size();
    append_be16(message, 0);
    append(message, set.prefix);
    put_rdata(set.type, rdata);
    const std::size_t length = message.size() - length_at - 2;
    store_be16(&message[length_at], static_cast<std::uint16_t>(length));
    std::uint8_t* count = &message[6 + 2 * static_cast<std::size_t>(set.section)];
    store_be16(count, static_cast<std::uint16_t>(load_be16(count) + 1));
  }
  void put_rdata(RRType type, ByteView rdata) {
    std::size_t at = type == RRType::kMX ? 2 : 0;
    std::size_t names = type == RRType::kSOA ? 2 : 1;
    if (type != RRType::kMX && type != RRType::kSOA && type != RRType::kNS) names = 0;
    append(message, rdata.first(at));
    for (; names > 0; --names) {
      const std::size_t length = wire_name_length(rdata.subspan(at));
      put_name(NameView(rdata.data() + at, length));
      at += length;
    }
    append(message, rdata.subspan(at));
  }
  void put_name(NameView view) {
    std::vector<Place*> fresh;
    unsigned pointers = 0;
    for (const std::size_t whole = view.size(); !view.is_root(); view = view.parent()) {
      const auto [found, is_new] =
          places_.try_emplace(to_text(Name(view).folded()), Place{message.size(), 0});
      Place& place = found->second;
      if (!is_new && (view.size() == whole || place.pointers < kMaxChainedPointers)) {
        append_be16(message, static_cast<std::uint16_t>(0xC000 | place.offset));
        pointers = place.pointers + 1;
        break;
      }
      if (is_new && message.size() <= 0x3FFF) fresh.push_back(&place);
      if (is_new && message.size() > 0x3FFF) places_.erase(found);
      message.insert(message.end(), view.data(), view.data() + view.data()[0] + 1);
    }
    for (Place* place : fresh) place->pointers = pointers;
    if (view.is_root()) message.push_back(0);
  }
  std::map<std::string, Place> places_;
};

/// Names from few labels, so that they share ancestors, in any case.
class RandomSets {
 public:
  explicit RandomSets(std::uint32_t seed) : random_(seed) {}

  Name random_name() {
    static const std::array<std::string_view, 9> kLabels = {
        "a", "b", "ns", "www", "mail", "example", "a-longer-label", "com", "x1"};
    std::string text;
    for (std::size_t i = random_() % 6; i > 0; --i) {
      for (const char c : kLabels[random_() % kLabels.size()])
        text += static_cast<char>(random_() % 4 == 0 ? std::toupper(c) : c);
      text += '.';
    }
    return name(text.empty() ? "." : text);
  }
  Set random_set() {
    static const std::array kTypes = {RRType::kA,   RRType::kNS,  RRType::kMX,
                                      RRType::kSOA, RRType::kSRV, RRType::kRRSIG};
    Set set;
    set.section = static_cast<Section>(random_() % 3);
    set.owner = random_name();
    set.type = kTypes[random_() % kTypes.size()];
    if (set.type == RRType::kRRSIG) set.prefix = {0, 1};
    for (std::size_t i = 1 + random_() % 4; i > 0; --i)
      set.rdatas.push_back(random_rdata(set.type));
    return set;
  }
  std::uint32_t operator()() { return static_cast<std::uint32_t>(random_()); }

 private:
  Bytes random_rdata(RRType type) {
    switch (type) {
      case RRType::kA:
        return {192, 0, 2, static_cast<std::uint8_t>(random_())};
      case RRType::kNS:
        return octets_of(random_name());
      case RRType::kMX:
        return mx(static_cast<std::uint16_t>(random_()), random_name());
      case RRType::kSOA:
        return soa(random_name(), random_name());
      case RRType::kSRV: {  // RFC 2782: its name must not be compressed
        Bytes rdata(6, 1);
        append(rdata, octets_of(random_name()));
        return rdata;
      }
      default:
        return Bytes(random_() % 40, 9);
    }
  }
  std::mt19937 random_;
};

struct Message {
  std::vector<std::uint8_t> space;
  MessageWriter writer;
  explicit Message(std::size_t limit = 65535) : space(limit), writer(space, limit) {
    writer.put_header(Header{});
  }
  Bytes finish() {
    const ByteView view = writer.finish();
    return {view.begin(), view.end()};
  }
};

TEST(MessageWriter, AnOwnerEqualToTheQuestionIsAPointerToIt) {
  Message message;
  ASSERT_TRUE(message.writer.put_question(name("www.example.com."), RRType::kA, RRClass::kIN));
  const std::size_t before = message.writer.size();
  const Bytes address = {192, 0, 2, 1};
  ASSERT_TRUE(message.writer.put_record(Section::kAnswer, name("www.example.com."), RRType::kA,
                                        RRClass::kIN, 60, address));
  EXPECT_EQ(message.writer.size() - before, 2U + 10 + 4);
  const Bytes octets = message.finish();
  EXPECT_EQ(load_be16(&octets[before]), 0xC00C);
  EXPECT_EQ(load_be16(&octets[6]), 1);
}

TEST(MessageWriter, ThePartsOfItsOwnQuestionNameAreRecognised) {
  Message message;
  ASSERT_TRUE(message.writer.put_question(name("www.Example.com."), RRType::kNS, RRClass::kIN));
  const NameView question = message.writer.question_name();
  EXPECT_EQ(to_text(question), "www.Example.com.");
  const std::size_t before = message.writer.size();
  ASSERT_TRUE(message.writer.put_record(Section::kAuthority, question.ancestor(1), RRType::kA,
                                        RRClass::kIN, 60, {}));
  EXPECT_EQ(load_be16(&message.finish()[before]), 0xC000 | (12 + 4));
}

TEST(MessageWriter, NamesAreFoundInAnyCaseAndTakeTheFirstOnesCase) {
  Message message;
  ASSERT_TRUE(message.writer.put_question(name("www.Example.COM."), RRType::kNS, RRClass::kIN));
  ASSERT_TRUE(put(message.writer, {Section::kAnswer,
                                   name("WWW.example.com."),
                                   RRType::kNS,
                                   {octets_of(name("ns.eXample.com."))},
                                   {}}));
  const Bytes octets = message.finish();
  MessageReader reader(octets);
  ASSERT_TRUE(reader.header() && reader.question());
  const auto record = reader.record();
  ASSERT_TRUE(record);
  EXPECT_EQ(to_text(record->owner), "www.Example.COM.");
  EXPECT_EQ(record->rdata_length, 3 + 2);
}

TEST(MessageWriter, CanKeepTheCaseOfNames) {
  Message message;
  message.writer.keep_case();
  ASSERT_TRUE(message.writer.put_question(name("www.example.com."), RRType::kNS, RRClass::kIN));
  for (const char* owner : {"www.Example.com.", "WWW.Example.com.", "www.Example.com."})
    ASSERT_TRUE(
        message.writer.put_record(Section::kAnswer, name(owner), RRType::kA, RRClass::kIN, 0, {}));
  const Bytes octets = message.finish();
  MessageReader reader(octets);
  ASSERT_TRUE(reader.header() && reader.question());
  std::vector<std::string> owners;
  for (int i = 0; i < 3; ++i) owners.push_back(to_text(reader.record().value().owner));
  const std::vector<std::string> spelt{"www.Example.com.", "WWW.Example.com.", "www.Example.com."};
  EXPECT_EQ(owners, spelt);
  // Each is compressed against what is spelt the same: "com", then "Example.com", then all of it.
  const std::size_t names = (4 + 8 + 2) + (4 + 2) + 2;
  EXPECT_EQ(octets.size(), kHeaderOctets + (17 + 4) + names + 3 * 10);
}

TEST(MessageWriter, LabelsThatDifferInBitFiveOnlyAreDifferentUnlessTheyAreLetters) {
  // '@' and '`', '[' and '{' differ like upper and lower case but are no letters (RFC 4343 §3).
  for (const std::string filler : {"", "1234567890"}) {
    Message message;
    const Name first = name("\\@[" + filler + ".test.");
    const Name second = name("`{" + filler + ".test.");
    ASSERT_TRUE(message.writer.put_question(name("other."), RRType::kA, RRClass::kIN));
    ASSERT_TRUE(
        message.writer.put_record(Section::kAnswer, first, RRType::kA, RRClass::kIN, 0, {}));
    const std::size_t before = message.writer.size();
    ASSERT_TRUE(
        message.writer.put_record(Section::kAnswer, second, RRType::kA, RRClass::kIN, 0, {}));
    EXPECT_EQ(message.writer.size() - before, 3U + filler.size() + 2 + 10);
  }
}

TEST(MessageWriter, TheRootIsOneOctetAndNeverAPointer) {
  Message message;
  ASSERT_TRUE(message.writer.put_question(name("."), RRType::kNS, RRClass::kIN));
  ASSERT_TRUE(put(message.writer, {Section::kAnswer,
                                   name("."),
                                   RRType::kNS,
                                   {octets_of(name(".")), octets_of(name("."))},
                                   {}}));
  EXPECT_EQ(message.writer.size(), 12U + 5 + 2 * 12);
}

TEST(MessageWriter, EveryCompressibleNameIsCompressedAsAnExhaustiveSearchWould) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    RandomSets random(seed);
    Message message;
    ReferenceWriter reference;
    const Name question = random.random_name();
    ASSERT_TRUE(message.writer.put_question(question, RRType::kANY, RRClass::kIN));
    reference.put_question(question, RRType::kANY);
    for (std::size_t i = random() % 40; i > 0; --i) {
      const Set set = random.random_set();
      ASSERT_TRUE(put(message.writer, set));
      reference.put_set(set);
    }
    ASSERT_EQ(message.finish(), reference.message) << "seed " << seed;
  }
}

/// Pointers that a reader follows in the name at `at`.
unsigned pointers_in_name(const Bytes& message, std::size_t at) {
  unsigned pointers = 0;
  while (message[at] != 0) {
    if (message[at] < 0xC0) {
      at += message[at] + 1U;
    } else {
      at = load_be16(&message[at]) & 0x3FFF;
      ++pointers;
    }
  }
  return pointers;
}

// As a DNAME makes them that leads to a name below itself: a.x., a.d.x., a.d.d.x., ...
TEST(MessageWriter, NamesThatGrowByALabelAreNoLongChainOfPointers) {
  Message message;
  Name owner = name("a.x.");
  ASSERT_TRUE(message.writer.put_question(owner, RRType::kA, RRClass::kIN));
  std::vector<Set> sets;
  for (int i = 0; i < 100; ++i) {
    const Name target = *Name::from_text("a", *Name::from_text("d", owner.view().parent()));
    const Set set{Section::kAnswer, owner, RRType::kNS, {octets_of(target)}, {}};
    ASSERT_TRUE(put(message.writer, set));
    sets.push_back(set);
    owner = target;
  }
  const Bytes octets = message.finish();
  MessageReader reader(octets);
  ASSERT_TRUE(reader.header() && reader.question());
  for (const Set& set : sets) {
    const auto record = reader.record();
    ASSERT_TRUE(record);
    EXPECT_EQ(record->owner, set.owner);
    EXPECT_LE(pointers_in_name(octets, record->rdata_offset), kMaxChainedPointers + 1);
  }
}

TEST(MessageWriter, CompressesExhaustivelyBeyondTheReachOfPointers) {
  RandomSets random(4711);
  Message message;
  ReferenceWriter reference;
  std::size_t serial = 0;
  while (message.writer.size() < 60000) {
    Set set = random.random_set();
    set.owner = *Name::from_text("host" + std::to_string(serial++), random.random_name());
    ASSERT_TRUE(put(message.writer, set));
    reference.put_set(set);
  }
  ASSERT_EQ(message.finish(), reference.message);
}

/// Reads a written message back: the same records, names in any case.
void expect_reads_as(const Bytes& octets, const std::vector<Set>& sets) {
  MessageReader reader(octets);
  ASSERT_TRUE(reader.header());
  for (const Set& set : sets) {
    for (const Bytes& rdata : set.rdatas) {
      const auto record = reader.record();
      ASSERT_TRUE(record) << record.error().text;
      EXPECT_EQ(record->owner, set.owner);
      EXPECT_EQ(record->type, set.type);
      EXPECT_EQ(record->ttl, 300U);
      if (set.type != RRType::kNS) continue;
      std::size_t at = record->rdata_offset;
      const auto target = read_name(octets, at);
      ASSERT_TRUE(target);
      EXPECT_EQ(at, record->rdata_offset + record->rdata_length);
      EXPECT_EQ(target->view(), NameView(rdata.data(), rdata.size()));
    }
  }
  EXPECT_TRUE(reader.at_end());
}

TEST(MessageWriter, WhatIsWrittenReadsBack) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    RandomSets random(seed);
    Message message;
    std::vector<Set> sets;
    for (std::size_t i = random() % 200; i > 0; --i) {
      sets.push_back(random.random_set());
      ASSERT_TRUE(put(message.writer, sets.back()));
    }
    expect_reads_as(message.finish(), sets);
  }
}

TEST(MessageWriter, ATableThatFillsUpStillGivesRightMessages) {
  // 127 labels of one octet each: a message has far more ancestors than any table entries.
  std::mt19937 random(3);
  for (const std::size_t limit : {4000U, 65535U}) {
    Message message(limit);
    std::vector<Set> sets;
    for (bool fitted = true; fitted;) {
      Bytes octets;
      for (int i = 0; i < 127; ++i) {
        octets.push_back(1);
        octets.push_back(static_cast<std::uint8_t>('a' + random() % 26));
      }
      octets.push_back(0);
      const Name long_name = *Name::from_wire(octets);
      Set set{Section::kAnswer,
              long_name,
              RRType::kNS,
              {octets_of(long_name.view().ancestor(100))},
              {}};
      fitted = put(message.writer, set);
      if (fitted) sets.push_back(set);
    }
    EXPECT_GT(sets.size(), limit / 400);
    expect_reads_as(message.finish(), sets);
  }
}

TEST(MessageWriter, RollingBackLeavesWhatWritingTheRestAloneGives) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    RandomSets random(seed);
    const std::size_t limit = seed % 2 == 0 ? 65535 : 3000;
    Message message(limit);
    struct Step {
      MessageWriter::Mark mark;
      std::size_t kept;
    };
    std::vector<Step> marks;
    std::vector<Set> kept;
    const bool with_question = seed % 3 != 0;
    const Name question = random.random_name();
    ASSERT_TRUE(!with_question || message.writer.put_question(question, RRType::kA, RRClass::kIN));
    for (std::size_t i = random() % 120; i > 0; --i) {
      switch (random() % 4) {
        case 0:
          marks.push_back({message.writer.mark(), kept.size()});
          break;
        case 1:
          if (marks.empty()) break;
          message.writer.roll_back(marks.back().mark);
          kept.resize(marks.back().kept);
          marks.pop_back();
          break;
        default:
          const Set set = random.random_set();
          if (put(message.writer, set)) kept.push_back(set);
      }
    }
    Message again(limit);
    ASSERT_TRUE(!with_question || again.writer.put_question(question, RRType::kA, RRClass::kIN));
    for (const Set& set : kept) ASSERT_TRUE(put(again.writer, set));
    ASSERT_EQ(message.finish(), again.finish()) << "seed " << seed;
  }
}

TEST(MessageWriter, AQuestionMayBeRolledBackAndPutAgain) {
  Message message;
  const auto start = message.writer.mark();
  ASSERT_TRUE(message.writer.put_question(name("first.test."), RRType::kA, RRClass::kIN));
  ASSERT_TRUE(
      put(message.writer, {Section::kAnswer, name("x.test."), RRType::kA, {{1, 2, 3, 4}}, {}}));
  message.writer.roll_back(start);
  ASSERT_TRUE(message.writer.put_question(name("second.test."), RRType::kA, RRClass::kIN));
  ASSERT_TRUE(
      put(message.writer, {Section::kAnswer, name("y.test."), RRType::kA, {{1, 2, 3, 4}}, {}}));
  Message again;
  ASSERT_TRUE(again.writer.put_question(name("second.test."), RRType::kA, RRClass::kIN));
  ASSERT_TRUE(
      put(again.writer, {Section::kAnswer, name("y.test."), RRType::kA, {{1, 2, 3, 4}}, {}}));
  EXPECT_EQ(message.finish(), again.finish());
}

TEST(MessageWriter, ASetFitsExactlyWhenItsCompressedOctetsDo) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    RandomSets random(seed);
    const Name question = random.random_name();
    const std::array<Set, 2> sets = {random.random_set(), random.random_set()};
    std::array<std::size_t, 3> sizes{};
    Message whole;
    ASSERT_TRUE(whole.writer.put_question(question, RRType::kA, RRClass::kIN));
    sizes[0] = whole.writer.size();
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(put(whole.writer, sets[i]));
      sizes[i + 1] = whole.writer.size();
    }
    for (std::size_t limit = sizes[0]; limit <= sizes[2]; ++limit) {
      Message message(limit);
      ASSERT_TRUE(message.writer.put_question(question, RRType::kA, RRClass::kIN));
      if (!put(message.writer, sets[0])) {
        EXPECT_LT(limit, sizes[1]);
        EXPECT_EQ(message.writer.size(), sizes[0]);
        EXPECT_EQ(message.writer.count(sets[0].section), 0);
        continue;
      }
      EXPECT_GE(limit, sizes[1]);
      EXPECT_EQ(put(message.writer, sets[1]), limit >= sizes[2]);
      EXPECT_EQ(message.writer.size(), limit >= sizes[2] ? sizes[2] : sizes[1]);
    }
  }
}

RRsetHead head_of(NameView owner, RRType type, NamePlace place = {}) {
  return {owner, type, RRClass::kIN, Ttl{300}, {}, place};
}

auto visit_all(const std::vector<Bytes>& rdatas) {
  return [&rdatas](auto&& visit) {
    for (const Bytes& rdata : rdatas) visit(ByteView(rdata));
  };
}

TEST(NamePlace, OwnersAtKnownPlacesGiveTheSameMessageAsASearch) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    RandomSets random(seed);
    std::vector<Bytes> targets;
    for (std::size_t i = random() % 6; i > 0; --i)
      targets.push_back(octets_of(random.random_name()));
    const Name owner = random.random_name();
    const bool is_mx = random() % 2 == 0;
    if (is_mx)
      for (Bytes& rdata : targets) rdata.insert(rdata.begin(), {0, 10});
    const std::vector<Bytes> addresses = {{192, 0, 2, 1}, {192, 0, 2, 2}};
    Message placed;
    Message searched;
    std::array<NamePlace, 6> places;
    for (Message* message : {&placed, &searched}) {
      ASSERT_TRUE(message->writer.put_question(name("q.example.com."), RRType::kNS, RRClass::kIN));
      RRsetHead head = head_of(owner, is_mx ? RRType::kMX : RRType::kNS);
      ASSERT_TRUE(message->writer.put_rrset(Section::kAuthority, head, visit_all(targets), places));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::size_t at = is_mx ? 2 : 0;
      const NameView target(targets[i].data() + at, targets[i].size() - at);
      EXPECT_EQ(static_cast<bool>(places[i]), !target.is_root());
      RRsetHead head = head_of(places[i] ? NameView() : target, RRType::kA, places[i]);
      ASSERT_TRUE(placed.writer.put_rrset(Section::kAdditional, head, visit_all(addresses)));
      RRsetHead search = head_of(target, RRType::kA);
      ASSERT_TRUE(searched.writer.put_rrset(Section::kAdditional, search, visit_all(addresses)));
    }
    ASSERT_EQ(placed.finish(), searched.finish()) << "seed " << seed;
  }
}

TEST(NamePlace, AnOwnersPlaceServesItsNextRRset) {
  Message message;
  const Name owner = name("www.example.com.");
  RRsetHead head = head_of(owner, RRType::kA);
  const std::vector<Bytes> rdatas = {{192, 0, 2, 1}};
  ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, head, visit_all(rdatas)));
  ASSERT_TRUE(head.owner_place);
  const std::size_t before = message.writer.size();
  head.owner = NameView();
  head.type = RRType::kTXT;
  ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, head, visit_all(rdatas)));
  const Bytes octets = message.finish();
  EXPECT_EQ(load_be16(&octets[before]), 0xC00C);
  EXPECT_EQ(octets.size(), before + 2 + 10 + 4);
}

/// Two servers' places in a message of at most `limit` octets, and an RRset that points to both.
struct Pointing {
  explicit Pointing(std::size_t limit) : writer(space, limit) {
    writer.put_header({});
    RRsetHead head = head_of(first, RRType::kNS);
    const std::vector<Bytes> servers = {octets_of(name("ns1.test.")), octets_of(name("ns2.test."))};
    EXPECT_TRUE(writer.put_rrset(Section::kAnswer, head, visit_all(servers), places));
  }
  bool put(std::size_t count) {
    RRsetHead head = head_of(second, RRType::kNS);
    return writer.put_pointing_rrset(Section::kAnswer, head, std::span(places).first(count));
  }
  const Name first = name("a.example."), second = name("b.example.");
  Bytes space = Bytes(512, 0);
  MessageWriter writer;
  std::array<NamePlace, 2> places;
};

TEST(NamePlace, AnRRsetOfPointersIsThatOfItsNames) {
  Pointing pointing(512);
  ASSERT_TRUE(pointing.put(2));
  Pointing named(512);
  RRsetHead head = head_of(named.second, RRType::kNS);
  const std::vector<Bytes> servers = {octets_of(name("ns1.test.")), octets_of(name("ns2.test."))};
  ASSERT_TRUE(named.writer.put_rrset(Section::kAnswer, head, visit_all(servers)));
  const ByteView expected = named.writer.finish();
  const ByteView found = pointing.writer.finish();
  EXPECT_EQ(Bytes(found.begin(), found.end()), Bytes(expected.begin(), expected.end()));
}

TEST(NamePlace, AnRRsetOfPointersIsWrittenAsAWholeOrNotAtAll) {
  Pointing ample(512);
  const std::size_t before = ample.writer.size();
  ASSERT_TRUE(ample.put(2));
  const std::size_t whole = ample.writer.size();
  ASSERT_EQ(whole - before, 4U + 2 * 14 - 2);  // a label and a pointer, then pointers alone
  for (std::size_t limit = before; limit <= whole; ++limit) {
    Pointing tight(limit);
    EXPECT_EQ(tight.put(2), limit == whole) << limit;
    EXPECT_EQ(tight.writer.size(), limit == whole ? whole : before) << limit;
    EXPECT_EQ(tight.writer.count(Section::kAnswer), limit == whole ? 4 : 2) << limit;
  }
  Pointing none(512);
  EXPECT_TRUE(none.put(0));
  EXPECT_EQ(none.writer.size(), before);
}

TEST(NamePlace, ThereIsNoneForTypesWhoseNamesAreNotCompressed) {
  Message message;
  std::array<NamePlace, 1> places;
  Bytes srv(6, 0);
  append(srv, name("target.example.").view().bytes());
  for (const auto& [type, rdata] : {std::pair(RRType::kSRV, srv), {RRType::kA, Bytes(4, 1)}}) {
    const Name owner = name("a.example.");
    RRsetHead head = head_of(owner, type);
    const std::vector<Bytes> rdatas = {rdata};
    ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, head, visit_all(rdatas), places));
    EXPECT_FALSE(places[0]);
  }
}

TEST(NamePlace, ThereIsNoneBeyondTheReachOfPointers) {
  Message message;
  const std::vector<Bytes> big = {Bytes(0x3FF0, 0)};
  RRsetHead filler = head_of(NameView(), RRType::kNULL);
  ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, filler, visit_all(big)));
  const Name owner = name("far.example.");
  RRsetHead head = head_of(owner, RRType::kA);
  const std::vector<Bytes> rdatas = {{192, 0, 2, 1}, {192, 0, 2, 2}};
  const std::size_t before = message.writer.size();
  ASSERT_GT(before, 0x3FFFU);
  ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, head, visit_all(rdatas)));
  EXPECT_FALSE(head.owner_place);
  EXPECT_EQ(message.writer.size() - before, 2 * (13U + 10 + 4));
}

/// Records of owners below an apex, in a message of at most `limit` octets: with the apex' place,
/// as a transfer has it, or without.
struct BelowApex {
  BelowApex(std::size_t limit, bool with_place, NameCase names)
      : space(limit, 0), writer(space, limit) {
    writer.put_header({});
    if (names == NameCase::kKept) writer.keep_case();
    const std::vector<Bytes> servers = {octets_of(name("ns.b.Example.")), octets_of(name("ns."))};
    put(apex, RRType::kNS, servers);
    const NamePlace place = writer.place_of(apex);
    EXPECT_EQ(static_cast<bool>(place), whole);
    for (const char* text :
         {"a.Example.", "b.Example.", "B.Example.", "a-label-of-18-octets.Example.", "x.b.Example.",
          "a.Example.", "Example.", "a.b.c.Example."}) {
      if (with_place && place) {
        rest = place;
        rest_octets = apex.size();
      }
      put(name(text), RRType::kA, {{192, 0, 2, 1}, {192, 0, 2, 2}});
    }
  }
  void put(const Name& owner, RRType type, const std::vector<Bytes>& rdatas) {
    RRsetHead head = head_of(owner, type);
    head.rest = rest;
    head.rest_octets = rest_octets;
    if (!writer.put_rrset(Section::kAnswer, head, visit_all(rdatas))) whole = false;
  }
  Bytes finish() {
    const ByteView message = writer.finish();
    return {message.begin(), message.end()};
  }
  const Name apex = name("Example.");
  Bytes space;
  MessageWriter writer;
  NamePlace rest;
  std::size_t rest_octets = 1;
  bool whole = true;
};

TEST(NamePlace, OwnersInFrontOfAKnownRestGiveTheSameMessageAsASearch) {
  for (const NameCase names : {NameCase::kIgnored, NameCase::kKept}) {
    const std::size_t octets = BelowApex(1024, false, names).finish().size();
    for (std::size_t limit = 12; limit <= octets; ++limit) {
      BelowApex placed(limit, true, names), searched(limit, false, names);
      EXPECT_EQ(placed.whole, limit == octets);
      ASSERT_EQ(placed.finish(), searched.finish()) << limit;
      EXPECT_EQ(placed.writer.is_crowded(), searched.writer.is_crowded()) << limit;
    }
  }
}

TEST(NamePlace, ANameInFrontOfAKnownRestIsFoundLater) {
  Message message;
  const Name apex = name("example."), owner = name("a.example.");
  const std::vector<Bytes> address = {{192, 0, 2, 1}};
  RRsetHead head = head_of(apex, RRType::kA);
  ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, head, visit_all(address)));
  head = head_of(owner, RRType::kA);
  head.rest = message.writer.place_of(apex);
  head.rest_octets = apex.size();
  ASSERT_TRUE(head.rest);
  ASSERT_TRUE(message.writer.put_rrset(Section::kAnswer, head, visit_all(address)));
  const std::size_t before = message.writer.size();
  const Name below = name("ns.a.example.");
  ASSERT_TRUE(
      message.writer.put_record(Section::kAnswer, below, RRType::kA, RRClass::kIN, 1, address[0]));
  EXPECT_EQ(message.writer.size() - before, 3U + 2 + 10 + 4) << "a label and a pointer";
}

TEST(MessageWriter, DamagedRdataIsWrittenAsItIsAndNeverReadBeyond) {
  // A store that was damaged may hold NS RDATA that is no name.
  for (const Bytes& damaged : {Bytes{5, 'a'}, Bytes{0xC0}, Bytes{1, 'a'}, Bytes{63}, Bytes{}}) {
    Message message;
    ASSERT_TRUE(message.writer.put_question(name("a."), RRType::kNS, RRClass::kIN));
    ASSERT_TRUE(put(message.writer, {Section::kAnswer, name("a."), RRType::kNS, {damaged}, {}}));
    const Bytes octets = message.finish();
    EXPECT_EQ(load_be16(&octets[octets.size() - damaged.size() - 2]), damaged.size());
    EXPECT_TRUE(std::equal(damaged.rbegin(), damaged.rend(), octets.rbegin()));
  }
}

TEST(MessageWriter, ReservedRoomIsKeptForTheRecordsAtTheEnd) {
  Message message(12 + 11);
  const Bytes opt(11, 0);
  message.writer.reserve(11);
  EXPECT_EQ(message.writer.room(), 0U);
  EXPECT_FALSE(message.writer.put_raw_additional(opt));
  message.writer.release(11);
  EXPECT_TRUE(message.writer.put_raw_additional(opt));
  EXPECT_EQ(message.writer.count(Section::kAdditional), 1);
}

TEST(MessageWriter, ReservingMoreThanThereIsLeavesNoRoomRatherThanALot) {
  Message message(20);
  message.writer.reserve(100);
  EXPECT_EQ(message.writer.room(), 0U);
  EXPECT_FALSE(message.writer.put_question(name("a."), RRType::kA, RRClass::kIN));
}

TEST(MessageWriter, AQuestionThatDoesNotFitLeavesTheHeaderAlone) {
  for (std::size_t limit = 12; limit < 12 + 3 + 4; ++limit) {
    Message message(limit);
    EXPECT_FALSE(message.writer.put_question(name("a."), RRType::kA, RRClass::kIN));
    EXPECT_EQ(message.finish(), Bytes(12, 0));
    EXPECT_TRUE(message.writer.question_name().is_root());
  }
}

TEST(MessageWriter, FlagsAreSetWithoutTouchingTheirNeighbours) {
  Message message;
  Header header;
  header.qr = header.rd = header.cd = true;
  header.opcode = Opcode::kNotify;
  message.writer.put_header(header);
  message.writer.set_rcode(Rcode::kBadVers);  // 16: the lower bits are 0
  message.writer.set_rcode(Rcode::kRefused);
  message.writer.set_tc();
  message.writer.set_aa(true);
  const auto read = read_header(message.finish());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->qr && read->rd && read->cd && read->tc && read->aa);
  EXPECT_FALSE(read->ra || read->ad);
  EXPECT_EQ(read->opcode, Opcode::kNotify);
  EXPECT_EQ(read->rcode, 5);
}

}  // namespace writer_test
}  // namespace pando::dns

#include "zone/record/record_codec.h"

#include <deque>
#include <random>

#include "dns/rdata/rdata.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {
namespace record_codec_test {

using testing::name;

/// Writes records and reads them again.
class RecordCodec : public testing::ZoneTest {
 protected:
  /// A set of distinct RDATAs and signatures with the lengths that the type has.
  RRsetDraft make_set(dns::RRType type, std::size_t rdatas, std::size_t signatures,
                      std::uint32_t ttl) {
    RRsetDraft set;
    set.type = type;
    set.ttl = {ttl};
    const std::size_t fixed = dns::fixed_rdata_length(type);
    for (std::size_t i = 0; i < rdatas; ++i)
      set.rdatas.push_back(octets(fixed != 0 ? fixed : 1 + i % 200, i));
    for (std::size_t i = 0; i < signatures; ++i) set.signatures.push_back(octets(20 + i % 50, i));
    return set;
  }
  /// Octets of which the last is the end of a name.
  ByteView octets(std::size_t size, std::size_t number) {
    Bytes& made = kept_.emplace_back(size, static_cast<std::uint8_t>(number));
    made.front() = static_cast<std::uint8_t>(number >> 8);
    made.back() = 0;
    return made;
  }
  void expect_same(const RRsetDraft& read, const RRsetDraft& written) {
    EXPECT_EQ(read.type, written.type);
    EXPECT_EQ(read.ttl, written.ttl);
    const auto same = [](ByteView a, ByteView b) { return std::ranges::equal(a, b); };
    EXPECT_TRUE(std::ranges::equal(read.rdatas, written.rdatas, same));
    EXPECT_TRUE(std::ranges::equal(read.signatures, written.signatures, same));
  }
  /// Writes a record of these sets; gives its octets.
  std::size_t expect_round_trip(std::vector<RRsetDraft> sets) {
    NameDraft draft;
    draft.labels = relative_labels(owner_, apex_);
    draft.rrsets = std::move(sets);
    shm::Transaction transaction = store_->begin();
    const auto ref = write_record(transaction, apex_, draft);
    EXPECT_TRUE(ref) << (ref ? "" : ref.error().text);
    if (!ref) return 0;
    const RecordView view = record_view(transaction.window(), *ref, apex_);
    EXPECT_TRUE(view);
    const NameDraft read = decode_record(view);
    EXPECT_TRUE(std::ranges::equal(read.labels, draft.labels));
    EXPECT_EQ(read.rrsets.size(), draft.rrsets.size());
    for (std::size_t i = 0; i < std::min(read.rrsets.size(), draft.rrsets.size()); ++i)
      expect_same(read.rrsets[i], draft.rrsets[i]);
    RecordParts parts;
    EXPECT_TRUE(take_apart(transaction.window(), *ref, parts));
    return parts.octets;
  }

  const dns::Name apex_ = name("example.");
  const dns::Name owner_ = name("a.example.");
  std::deque<Bytes> kept_;
};

TEST_F(RecordCodec, CountsTtlsAndTypesOfAllSizes) {
  for (const unsigned type :
       {1U, 2U, 6U, 16U, 28U, 43U, 255U, 256U, 257U, 0x8000U, 0xFF00U, 0xFFFEU})
    for (const std::size_t rdatas : {0, 1, 2, 6, 7, 8, 49, 300, 8191})
      for (const std::size_t signatures : {0, 1, 2, 3, 4, 300})
        if (rdatas + signatures > 0)
          expect_round_trip({make_set(static_cast<dns::RRType>(type), rdatas, signatures, 3600)});
  for (const std::uint32_t ttl : {0U, 1U, 255U, 256U, 65'535U, 65'536U, 86'400U, 0xFF'FFFFU,
                                  0x100'0000U, 0x7FFF'FFFFU, 0xFFFF'FFFFU})
    expect_round_trip(
        {make_set(dns::RRType::kA, 2, 1, ttl), make_set(dns::RRType::kTXT, 3, 0, ttl)});
}

TEST_F(RecordCodec, ACommonSetCostsFewOctetsBesideItsData) {
  const std::size_t owner = sizeof(RecordHeader) + 2;
  EXPECT_EQ(expect_round_trip({make_set(dns::RRType::kA, 1, 0, 3600)}), owner + 4 + 4);
  EXPECT_EQ(expect_round_trip({make_set(dns::RRType::kAAAA, 6, 0, 86'400)}), owner + 5 + 6 * 16);
  EXPECT_EQ(expect_round_trip({make_set(dns::RRType::kA, 7, 0, 3600)}), owner + 4 + 2 + 1 + 7 * 4);
  EXPECT_EQ(expect_round_trip({make_set(dns::RRType::kTXT, 1, 0, 60)}), owner + 3 + 1 + 2);
}

TEST_F(RecordCodec, AnyRecordIsReadAsWritten) {
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 2000; ++round) {
    std::vector<RRsetDraft> sets;
    std::uint16_t type = 0;
    for (auto left = 1 + random() % 6; left > 0; --left) {
      type = static_cast<std::uint16_t>(type + 1 + random() % (round % 2 == 0 ? 20 : 9000));
      sets.push_back(make_set(dns::RRType{type}, 1 + random() % 10, random() % 5,
                              static_cast<std::uint32_t>(random() >> random() % 32)));
    }
    expect_round_trip(std::move(sets));
    kept_.clear();
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST_F(RecordCodec, TooManyRecordsAreRefused) {
  NameDraft draft;
  draft.rrsets = {make_set(dns::RRType::kA, 8192, 0, 1)};
  shm::Transaction transaction = store_->begin();
  const auto ref = write_record(transaction, apex_, draft);
  ASSERT_FALSE(ref);
  EXPECT_EQ(ref.error().code, Errc::kInvalid);
}

/// Wherever a record is cut off, or whatever its first octets are, reading ends in the block.
TEST_F(RecordCodec, ASecondSetOfServersByDamageIsNotReadFromFreedMemory) {
  NameDraft draft;
  draft.labels = relative_labels(owner_, apex_);
  RRsetDraft& addresses = draft.at(dns::RRType::kA);
  addresses.ttl = {3600};
  const Bytes address = {3, 2, 'n', 's'};  // with NS for A: size 3, the stored name "ns"
  addresses.rdatas.push_back(address);
  const dns::Name server = name("ns1.a.example.");
  RRsetDraft& servers = draft.at(dns::RRType::kNS);
  servers.ttl = {3600};
  servers.rdatas.push_back(server.view().bytes());
  shm::Transaction transaction = store_->begin();
  const auto ref = write_record(transaction, apex_, draft);
  ASSERT_TRUE(ref);
  auto* block = reinterpret_cast<std::uint8_t*>(transaction.writable(shm::Ref<>{*ref}));
  std::uint8_t& type = block[sizeof(RecordHeader) + draft.labels.size() + 1];
  ASSERT_EQ(type, 1);
  type = 2;
  const NameDraft read = decode_record(record_view(transaction.window(), *ref, apex_));
  ASSERT_EQ(read.rrsets.size(), 2U);
  EXPECT_EQ(read.rrsets[0].type, dns::RRType::kNS);
  EXPECT_EQ(read.rrsets[0].rdatas.size(), 1U);
  EXPECT_EQ(read.rrsets[0].rdatas[0].size(), 2 + draft.labels.size() + apex_.view().size());
  EXPECT_TRUE(read.rrsets[1].rdatas.empty());
}

TEST_F(RecordCodec, AnyFormIsReadWithinTheWindow) {
  for (unsigned form = 0; form < 256; ++form)
    for (const std::uint8_t type : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{0xFF}})
      for (std::size_t size = 0; size < 24; ++size) {
        Bytes octets = {0, 0, 1, static_cast<std::uint8_t>(form), type};
        octets.resize(octets.size() + size, type);
        const auto start = reinterpret_cast<std::uintptr_t>(octets.data()) - shm::kFirstBlock;
        const shm::Window window(reinterpret_cast<const std::byte*>(start),
                                 shm::kFirstBlock + octets.size());
        const RecordView view = record_view(window, shm::kFirstBlock / shm::kUnit, apex_);
        ASSERT_TRUE(view);
        std::size_t seen = 0;
        view.for_each_rrset([&](const RRsetView& set) {
          set.for_each_rdata([&](ByteView rdata) { seen += rdata.size(); });
          set.for_each_signature([&](ByteView rest) { seen += rest.size(); });
        });
        EXPECT_LE(seen, dns::kMaxNameOctets * octets.size());
      }
}

}  // namespace record_codec_test
}  // namespace pando::zone

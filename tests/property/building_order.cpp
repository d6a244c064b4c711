// Random zones in any order against a model that keeps all records and looks at them at the end.

#include <algorithm>
#include <map>
#include <random>

#include "dns/rdata/rdata.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/draft/name_rules.h"

namespace pando::zone {
namespace {

using testing::name;
using testing::record;

struct BeforeInZone {
  bool operator()(const dns::Name& a, const dns::Name& b) const {
    return dns::compare_canonical(a, b) < 0;
  }
};

/// What RFC 2181 §5 and RFC 4034 §3 say of one set's records in the order in which they came.
class ModelSet {
 public:
  void add(const Record& record, const Placed& placed) {
    if (!placed.is_signature && !has_data_) ttl_ = record.ttl;
    if (placed.is_signature && !has_data_ && records_.empty()) ttl_ = record.ttl;
    has_data_ = has_data_ || !placed.is_signature;
    records_.push_back(record);
  }
  /// As zone_fixture.h's dump() tells it: data, then signatures, canonically sorted.
  void tell(const std::string& owner, std::vector<std::string>& lines) const {
    std::vector<Record> sorted = records_;
    std::stable_sort(sorted.begin(), sorted.end(), before);
    const auto end = std::unique(
        sorted.begin(), sorted.end(),
        [](const Record& a, const Record& b) { return !before(a, b) && !before(b, a); });
    for (auto one = sorted.begin(); one != end; ++one)
      lines.push_back(owner + " " + std::to_string(ttl_.seconds) + " " + dns::to_text(one->type) +
                      " " + dns::rdata_to_text(one->type, one->rdata));
  }

 private:
  static bool before(const Record& a, const Record& b) {
    if (a.type != b.type) return b.type == dns::RRType::kRRSIG;
    return dns::compare_rdata_canonical(a.type, a.rdata, b.rdata) < 0;
  }
  bool has_data_ = false;
  dns::Ttl ttl_{};
  std::vector<Record> records_;
};

struct ModelName {
  std::string spelt;
  std::map<dns::RRType, ModelSet> sets;
};

class ModelZone {
 public:
  void add(const Record& record) {
    const Placed placed = place(record.type, record.rdata);
    auto& list = placed.set == dns::RRType::kNSEC3 ? nsec3_ : names_;
    ModelName& owner = list[dns::Name(record.owner)];
    if (owner.spelt.empty()) owner.spelt = dns::to_text(record.owner);
    owner.sets[placed.set].add(record, placed);
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto* list : {&names_, &nsec3_})
      for (const auto& [ignored, owner] : *list)
        for (const auto& [type, set] : owner.sets) set.tell(owner.spelt, lines);
    return lines;
  }
  [[nodiscard]] std::size_t names() const { return names_.size() + nsec3_.size(); }

 private:
  using Names = std::map<dns::Name, ModelName, BeforeInZone>;
  Names names_;
  Names nsec3_;
};

class BuildingOrder : public testing::ZoneTest {
 protected:
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }

  std::string random_owner() {
    static const char* const kLabels[] = {"a", "b", "www", "WWW", "*", "x-y", "\\000", "\\255z"};
    std::string owner;
    for (unsigned labels = 1 + pick(3); labels > 0; --labels)
      owner += std::string(kLabels[pick(8)]) + std::to_string(pick(4)) + ".";
    return owner + "example.";
  }
  std::string random_data(const std::string& owner) {
    const std::string ttl = " " + std::to_string(60 + pick(3));
    const auto digit = [this] { return std::to_string(pick(5)); };
    const std::string signature =
        " 13 2 60 20300101000000 20200101000000 " + digit() + " example. AAAA";
    switch (pick(7)) {
      case 0:
        return owner + ttl + " TXT \"" + std::string(pick(250), 't') + digit() + "\"";
      case 1:
        return owner + ttl + " NS ns" + digit() + ".long-enough-to-be-shared.example.";
      case 2:
        return owner + ttl + " RRSIG A" + signature;
      case 3:
        return "v" + std::to_string(pick(60)) + ".example." + ttl + " NSEC3 1 0 1 AABB " +
               std::string(32, 'v');
      case 4:
        return "v" + std::to_string(pick(60)) + ".example." + ttl + " RRSIG NSEC3" + signature;
      default:
        return owner + ttl + " A 192.0.2." + digit();
    }
  }
  std::vector<std::string> random_zone() {
    std::vector<std::string> lines = {"example. 60 SOA a. b. 1 2 3 4 5", "example. 60 NS a."};
    for (unsigned names = 1 + pick(pick(3) == 0 ? 400 : 60); names > 0; --names) {
      const std::string owner = random_owner();
      for (unsigned records = 1 + pick(4); records > 0; --records)
        lines.push_back(random_data(owner));
    }
    return lines;
  }
  /// Canonical order of owners, but for so many stragglers and exchanges.
  void arrange(std::vector<std::string>& lines, std::size_t stragglers, std::size_t swaps) {
    std::stable_sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
      return dns::compare_canonical(record(a).owner, record(b).owner) < 0;
    });
    const auto count = static_cast<unsigned>(lines.size());
    for (; stragglers > 0; --stragglers) {
      const auto straggler = lines.begin() + pick(count);
      std::rotate(straggler, straggler + 1, lines.end());
    }
    for (; swaps > 0; --swaps) {
      std::swap(lines[pick(count)], lines[pick(count)]);
    }
  }
  void expect_as_model(const std::vector<std::string>& lines) {
    ModelZone model;
    for (const std::string& line : lines) model.add(record(line));
    const auto expected = model.lines();
    ASSERT_EQ(testing::dump(zone("example.")), expected);
    ASSERT_EQ(zone("example.").record_count(), expected.size());
    ASSERT_EQ(zone("example.").name_count(), model.names());
    for (const std::string& line : lines) {
      const bool in_nsec3 = line[0] == 'v';
      ASSERT_TRUE(in_nsec3 || zone("example.").record_at(record(line).owner)) << line;
    }
  }

  std::mt19937 random_;
};

TEST_F(BuildingOrder, MakesNoDifference) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  for (int round = 0; round < 120; ++round) {
    std::vector<std::string> lines = random_zone();
    const std::size_t few = lines.size() / 100 + 1;
    for (const auto& [stragglers, swaps] : std::vector<std::pair<std::size_t, std::size_t>>{
             {0, 0}, {few, 0}, {10 * few, 0}, {few, few}, {0, 2 * lines.size()}}) {
      arrange(lines, stragglers, swaps);
      const auto loaded = load("example.", lines, {}, pick(2) == 0 ? 0 : kWorthSharing);
      ASSERT_TRUE(loaded) << loaded.error().text;
      ASSERT_NO_FATAL_FAILURE(expect_as_model(lines))
          << "round " << round << ": " << stragglers << ", " << swaps;
      ASSERT_TRUE(commit([](Draft& draft) { return dismantle_discarded(draft, 100'000); }));
    }
  }
  ASSERT_TRUE(store_->check());
}

}  // namespace
}  // namespace pando::zone

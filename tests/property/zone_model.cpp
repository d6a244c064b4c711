// Random differences against a plain model of a zone, with compaction in between.

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <random>
#include <set>

#include "shm/inspect/inspection.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/audit/audit.h"
#include "zone/draft/compaction.h"
#include "zone/draft/detached_draft.h"

namespace pando::zone {
namespace {

using testing::name;

/// (owner, type) → TTL and RDATA texts.
struct ModelSet {
  std::string ttl;
  std::set<std::string> rdatas;
};
using Model = std::map<std::pair<std::string, std::string>, ModelSet>;

struct Line {
  std::string owner, ttl, type, rdata;
  [[nodiscard]] std::string text() const { return owner + " " + ttl + " " + type + " " + rdata; }
};

class ZoneModel : public testing::ZoneTest {
 protected:
  std::mt19937 random_;
  Model model_;

  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }

  std::string random_owner() {
    static const char* const kLabels[] = {"a",   "b",    "c",     "www",   "*",
                                          "x-y", "_tcp", "\\000", "\\255z"};
    std::string owner;
    for (unsigned labels = 1 + pick(3); labels > 0; --labels)
      owner += std::string(kLabels[pick(9)]) + ".";
    return owner + "example.";
  }

  /// The server of a delegation; each in one spelling, since another one would be the same record.
  std::string random_server(const std::string& owner) {
    std::string upper = owner;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    const std::array<std::string, 8> servers = {
        owner,         "ns1." + owner,      "NS2." + owner, "ns3." + upper,
        "ns4.a.test.", "ns5\\000." + owner, "example.",     "x." + random_owner()};
    return servers[pick(servers.size())];
  }

  Line random_line() {
    Line line{random_owner(), std::to_string(60 + pick(2)), "A",
              "192.0.2." + std::to_string(pick(6))};
    if (pick(3) == 0) {
      line.type = "NS";
      line.rdata = random_server(line.owner);
    } else if (pick(2) == 0) {
      line.type = "TXT";
      line.rdata = "\"" + std::string(pick(200), 't') + std::to_string(pick(9)) + "\"";
    }
    return line;
  }

  void remove_from_model(const Line& line) {
    const auto set = model_.find({line.owner, line.type});
    if (set == model_.end()) return;
    set->second.rdatas.erase(line.rdata);
    if (set->second.rdatas.empty()) model_.erase(set);
  }

  void add_to_model(const Line& line) {
    auto& set = model_[{line.owner, line.type}];
    set.ttl = line.ttl;
    set.rdatas.insert(line.rdata);
  }

  void random_difference(std::vector<std::string>& removed, std::vector<std::string>& added) {
    std::vector<Line> in;
    for (unsigned changes = 1 + pick(8); changes > 0; --changes) {
      Line line = random_line();
      if (pick(5) < 3) {
        in.push_back(line);
        added.push_back(line.text());
        continue;
      }
      const auto set = model_.find({line.owner, line.type});
      if (set != model_.end() && pick(4) != 0) line.rdata = *set->second.rdatas.begin();
      removed.push_back(line.text());
      remove_from_model(line);
    }
    for (const Line& line : in) add_to_model(line);
  }

  void expect_equal() {
    std::vector<std::string> expected;
    std::set<std::string> owners;
    for (const auto& [key, set] : model_) {
      owners.insert(key.first);
      for (const std::string& rdata : set.rdatas)
        expected.push_back(Line{key.first, set.ttl, key.second, rdata}.text());
    }
    std::sort(expected.begin(), expected.end());
    auto lines = testing::dump(zone("example."));
    std::sort(lines.begin(), lines.end());
    ASSERT_EQ(lines, expected);
    ASSERT_EQ(zone("example.").name_count(), owners.size());
    ASSERT_EQ(zone("example.").record_count(), expected.size());
  }
};

TEST_F(ZoneModel, EveryVersionEqualsTheModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  ASSERT_TRUE(load("example.", {"example. 60 SOA a. b. 1 2 3 4 5", "example. 60 NS a."}));
  add_to_model({"example.", "60", "SOA", "a. b. 1 2 3 4 5"});
  add_to_model({"example.", "60", "NS", "a."});
  CompactCursor cursor;
  for (int round = 0; round < 1500; ++round) {
    std::vector<std::string> removed;
    std::vector<std::string> added;
    random_difference(removed, added);
    const auto applied = apply("example.", removed, added);
    ASSERT_TRUE(applied) << applied.error().text;
    if (round % 50 == 0) store_->choose_victims(80, 1000);
    if (round % 3 == 0) {
      ASSERT_TRUE(commit([&](Draft& draft) { return compact(draft, cursor, 20); }));
    }
    if (round % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_equal()) << "round " << round;
    }
  }
}

/// Each difference is worked out from a version that others may follow before it is adopted.
TEST_F(ZoneModel, EveryVersionEqualsTheModelWhenItIsWorkedOutBeside) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  ASSERT_TRUE(load("example.", {"example. 60 SOA a. b. 1 2 3 4 5", "example. 60 NS a."}));
  add_to_model({"example.", "60", "SOA", "a. b. 1 2 3 4 5"});
  add_to_model({"example.", "60", "NS", "a."});
  CompactCursor cursor;
  int adopted = 0, moved = 0;
  for (int round = 0; round < 1000; ++round) {
    DetachedDraft beside(*store_, store_->current(), name("example."));
    Changeset changes{name("example."), {}, {}};
    const Model before = model_;
    std::vector<std::string> removed;
    std::vector<std::string> added;
    random_difference(removed, added);
    for (const auto& line : removed) changes.removed.push_back(testing::record(line));
    for (const auto& line : added) changes.added.push_back(testing::record(line));
    ASSERT_TRUE(beside.draft().apply(changes, {}));
    if (round % 50 == 0) store_->choose_victims(80, 1000);
    const unsigned meanwhile = pick(4);
    if (meanwhile == 0) {
      ASSERT_TRUE(commit([&](Draft& draft) { return compact(draft, cursor, 20); }));
    } else if (meanwhile == 1) {
      ASSERT_TRUE(commit([&](Draft& draft) {
        return draft.put_zone_settings(name("example."), {}, static_cast<std::uint32_t>(round));
      }));
    }
    const bool fits = beside.fits(view());
    shm::Transaction transaction = store_->begin();
    Draft draft(transaction, store_->current().root, store_->current().number + 1);
    const Status done = beside.adopt(transaction, draft);
    ASSERT_EQ(done.has_value(), fits);
    ASSERT_TRUE(fits || meanwhile == 0) << "only compaction changed the zone's blocks";
    if (fits) {
      ASSERT_TRUE(store_->publish(std::move(transaction), draft.root(), 0));
    } else {
      model_ = before;
    }
    ++(fits ? adopted : moved);
    if (round % 10 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_equal()) << "round " << round;
    }
    if (round % 100 == 0) {
      Audit found = audit(store_->window(), store_->current().root);
      compare_chunks(found, shm::occupancy(store_->window()));
      ASSERT_EQ(found.fault_count, 0U) << found.faults.front();
    }
  }
  EXPECT_GT(adopted, 500);
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace pando::zone

#include "ipc/counter_labels.h"

#include <gtest/gtest.h>

#include <set>

#include "ipc/counters.h"

namespace pando::ipc {
namespace counter_labels_test {

TEST(CounterLabels, NameEachCounterOfABlockDifferently) {
  const auto names = [](std::size_t count, std::string (*label)(std::size_t)) {
    std::set<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.insert(label(i));
    return all;
  };
  EXPECT_EQ(names(kOpcodes, opcode_label).size(), kOpcodes);
  EXPECT_EQ(names(kRcodes, rcode_label).size(), kRcodes);
  EXPECT_EQ(names(kTypes, type_label).size(), kTypes);
}

TEST(CounterLabels, AreTheMnemonicsOfTheNumbersThatAreCounted) {
  EXPECT_EQ(opcode_label(5), "UPDATE");
  EXPECT_EQ(rcode_label(rcode_index(23) - kRcodeBase), "BADCOOKIE");
  EXPECT_EQ(rcode_label(rcode_index(24) - kRcodeBase), "other");
  EXPECT_EQ(type_label(type_index(28) - kTypeBase), "AAAA");
  EXPECT_EQ(type_label(type_index(257) - kTypeBase), "CAA");
  EXPECT_EQ(type_label(type_index(65280) - kTypeBase), "other");
}

TEST(LatencyCounters, HavePowersOfTwoAsBounds) {
  EXPECT_EQ(latency_index(0), kLatencyBase);
  EXPECT_EQ(latency_index(1), kLatencyBase + 1);
  EXPECT_EQ(latency_index(1023), kLatencyBase + 10);
  EXPECT_EQ(latency_index(1024), kLatencyBase + 11);
  EXPECT_EQ(latency_index(UINT64_MAX), kLatencyBase + kLatencies - 1);
}

}  // namespace counter_labels_test
}  // namespace pando::ipc

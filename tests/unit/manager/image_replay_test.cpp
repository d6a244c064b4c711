// What stands in the journal behind an image, on a store that nobody can see yet.

#include "manager/image_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/parts.h"

namespace pando::manager {
namespace {

using shm::test::must;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using ::testing::SizeIs;

std::string soa(std::uint32_t serial) {
  return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
}

void expect_silence(const JournalNote& note) { ADD_FAILURE() << note.text; }

class ReplayOntoImage : public ::testing::Test {
 protected:
  /// Serial `from` to the next: a text of 1 KB takes the place of the last one at its name.
  JournalEntry text(std::uint32_t from) {
    const auto line = [](std::uint32_t serial) {
      const std::string filling(250, 'x');
      return fmt::format("t{0} 60 TXT \"{1}\" \"{2}\" \"{2}\" \"{2}\" \"{2}\"", serial % kNames,
                         serial, filling);
    };
    std::vector<std::string> removed{soa(from)};
    if (from >= 10 + kNames) removed.push_back(line(from - kNames));
    return {name("@"),
            {from},
            {from + 1},
            zone::encode(parts_.changes(removed, {soa(from + 1), line(from)}))};
  }
  void journalled(const std::vector<JournalEntry>& group) {
    ASSERT_TRUE(parts_.journal.append(group).has_value());
  }
  std::vector<dns::Name> replay(shm::Store& store) {
    return must(replay_onto_image(store, parts_.journal, native_files(), expect_silence));
  }

  static constexpr std::uint32_t kNames = 900;
  Parts parts_;
};

TEST_F(ReplayOntoImage, AppliesWhatCameBehindIt) {
  journalled({text(10), text(11)});
  EXPECT_THAT(replay(parts_.zone.store()), IsEmpty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{12});
  EXPECT_EQ(parts_.zone.store().current().journal_position, 2U);
}

TEST_F(ReplayOntoImage, WhatNeverTookPlaceIsNotMissing) {
  parts_.journal.begin_behind(2);  // the segment is from 3, and says that 1 and 2 are void
  journalled({text(10)});
  ASSERT_EQ(parts_.journal.files().segments.front().header.first, 3U);
  EXPECT_THAT(replay(parts_.zone.store()), IsEmpty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{11});
}

TEST_F(ReplayOntoImage, WhatIsMissingBehindItUnloadsTheZones) {
  parts_.journal.skip_to(2);
  journalled({text(10)});
  ASSERT_EQ(parts_.journal.files().segments.front().header.first, 3U);
  EXPECT_THAT(replay(parts_.zone.store()), SizeIs(1));
  EXPECT_FALSE(parts_.zone.zone().loaded());
}

}  // namespace
}  // namespace pando::manager

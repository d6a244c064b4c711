// The journal's records behind an image, applied to a store that nobody can see yet.

#include "manager/checkpoint/image_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "shm/image_state.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/journal/snapshot_maker.h"
#include "zone/dump/dump_index.h"

namespace pando::manager {
namespace image_replay_test {

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
  /// The group was synced, and could not be published.
  void refuse(const std::vector<JournalEntry>& group) {
    const std::uint64_t first = parts_.journal.last_position() + 1;
    journalled(group);
    parts_.journal.abandon(first);
  }
  /// As the next process finds the journal.
  void start_again() {
    const std::string directory = parts_.journal.directory();
    parts_.journal = must(Journal::open({directory, 64 << 10}, native_files(), expect_silence));
  }
  std::vector<dns::Name> replay(shm::Store& store) {
    return must(replay_onto_image(store, parts_.journal, native_files(), limits_, expect_silence));
  }

  std::vector<dns::Name> replay_with_gap() {
    return must(replay_onto_image(parts_.zone.store(), parts_.journal, native_files(), limits_,
                                  [](const JournalNote&) {}));
  }
  /// Breaks the record with this text.
  void damage(const std::string& text) {
    const std::string path = parts_.journal.files().segments.back().path;
    std::string bytes;
    {
      std::ifstream in(path, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    const std::size_t at = bytes.find("\2" + text);  // the first of its strings
    ASSERT_NE(at, std::string::npos);
    bytes[at + 1] ^= 1;
    std::ofstream(path, std::ios::binary | std::ios::in) << bytes;
  }

  void allow_updates() {
    must(parts_.edit([](zone::Draft& draft) {
      zone::ZoneSettings settings;
      settings.allow_update.emplace_back();
      return draft.put_zone_settings(name("@"), settings, 0);
    }));
  }
  /// A journal snapshot of all records so far, which has the zone at `serial`.
  void fold(std::uint32_t serial, bool is_damaged, bool is_index_damaged = false) {
    Bytes bytes = testing::snapshot_of(
        parts_.journal.last_position(),
        {testing::whole_zone(name("@"), serial), zone::DumpZoneEnd{}});
    if (is_damaged) bytes[zone::kDumpHeaderBytes + zone::kDumpFrameBytes] ^= 1;
    if (is_index_damaged) bytes[bytes.size() - zone::kDumpTrailerBytes - 1] ^= 1;
    parts_.journal.seal();
    const std::string path = parts_.journal.directory() + "/a.snapshot.partial";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    must(parts_.journal.replace_by_snapshot(path, parts_.journal.last_position(),
                                            parts_.journal.sealed_files()));
  }

  static constexpr std::uint32_t kNames = 900;
  Parts parts_;
  zone::DataLimits limits_{};
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

/// Refused groups took positions before and behind the snapshot and the image, and no others came.
TEST_F(ReplayOntoImage, VoidPositionsUpToTheJournalsSnapshotAreNotAnotherJournals) {
  journalled({text(10), text(11)});
  replay(parts_.zone.store());
  fold(12, false);
  parts_.journal.begin_behind(5);  // the next segment says that 1 to 5 are void
  journalled({text(12)});
  const JournalFiles files = parts_.journal.files();
  ASSERT_EQ(files.snapshot_position, 2U);
  ASSERT_EQ(files.segments.front().header.first, 6U);
  ASSERT_EQ(files.segments.front().header.void_from, 1U);
  EXPECT_THAT(replay(parts_.zone.store()), IsEmpty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{13});
}

/// A start gives the store, and the next image, the position at which the journal ends. It may be
/// that of a refused group.
TEST_F(ReplayOntoImage, VoidPositionsBehindTheJournalsSnapshotAreNotAnotherJournals) {
  journalled({text(10), text(11)});
  replay(parts_.zone.store());
  fold(12, false);
  refuse({text(12), text(13)});
  replay(parts_.zone.store());
  ASSERT_EQ(parts_.zone.store().current().journal_position, 4U);
  refuse({text(12)});
  start_again();
  const JournalFiles files = parts_.journal.files();
  ASSERT_EQ(files.snapshot_position, 2U);
  ASSERT_EQ(files.segments.front().header.first, 6U);
  ASSERT_EQ(files.segments.front().header.void_from, 3U);
  journalled({text(12)});
  EXPECT_THAT(replay(parts_.zone.store()), IsEmpty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{13});
}

TEST_F(ReplayOntoImage, ARecordThatFitsBehindAGapProvesThatNoneIsMissing) {
  parts_.journal.skip_to(2);
  journalled({text(10)});
  ASSERT_EQ(parts_.journal.files().segments.front().header.first, 3U);
  EXPECT_THAT(replay_with_gap(), IsEmpty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{11});
}

TEST_F(ReplayOntoImage, DamageThatTheImageCoversCostsNothing) {
  for (std::uint32_t from = 10; from < 14; ++from) journalled({text(from)});
  EXPECT_THAT(replay(parts_.zone.store()), IsEmpty());
  const std::vector<std::string> before = parts_.zone.lines();
  journalled({text(14)});
  damage("11");
  EXPECT_THAT(replay_with_gap(), IsEmpty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{15});
  EXPECT_EQ(parts_.zone.lines().size(), before.size() + 1);
}

TEST_F(ReplayOntoImage, DamageBehindTheImageTakesNoOtherRecordAndNoSerialIsUsedAgain) {
  const std::size_t before = parts_.zone.lines().size();
  for (std::uint32_t from = 10; from < 14; ++from) journalled({text(from)});
  damage("11");
  EXPECT_THAT(replay_with_gap(), IsEmpty());
  ASSERT_TRUE(parts_.zone.zone().loaded());
  EXPECT_TRUE(parts_.zone.zone().serial().ahead_of({14}));
  EXPECT_EQ(parts_.zone.lines().size(), before + 3) << "three of four";
  EXPECT_THAT(parts_.zone.at("t13"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("t11"), IsEmpty());
}

/// The lost record may be the zone's last one.
TEST_F(ReplayOntoImage, AZoneWhoseLastRecordMayBeLostGetsAnotherSerial) {
  for (std::uint32_t from = 10; from < 12; ++from) journalled({text(from)});
  journalled({{name("other."), {1}, {2}, zone::encode(zone::Changeset{name("other."), {}, {}})}});
  damage("11");
  EXPECT_THAT(replay_with_gap(), IsEmpty());
  EXPECT_TRUE(parts_.zone.zone().serial().ahead_of({12}));
  EXPECT_THAT(parts_.zone.at("t10"), SizeIs(1));
}

/// It could not be read when the journal was opened. The image is not refused for it.
TEST_F(ReplayOntoImage, ASegmentThatTurnsOutToBeDamagedMakesZonesWait) {
  allow_updates();
  journalled({text(10)});
  replay(parts_.zone.store());
  const std::string path = parts_.journal.files().segments.front().path;
  std::ofstream(path, std::ios::binary | std::ios::in) << "not a journal";
  EXPECT_THAT(replay_with_gap(), SizeIs(1));
}

/// The segment's records behind the image are lost, although the image has its first ones.
TEST_F(ReplayOntoImage, ALastSegmentWithADamagedHeaderTakesRecordsBehindTheImage) {
  allow_updates();
  journalled({text(10), text(11)});
  replay(parts_.zone.store());
  journalled({text(12)});
  const JournalFiles files = parts_.journal.files();
  ASSERT_THAT(files.segments, SizeIs(1));
  std::ofstream(files.segments.front().path, std::ios::binary | std::ios::in) << "not a journal";
  for (int start = 0; start < 2; ++start) {
    testing::open_journal_again(parts_);
    // The first start writes the raised serial behind the gap.
    ASSERT_EQ(ends_in_damage(parts_.journal.files()), start == 0);
    pass_over_damaged_end(parts_.journal);
    EXPECT_THAT(replay_with_gap(), IsEmpty());
    EXPECT_TRUE(parts_.zone.zone().serial().ahead_of({13}));
    EXPECT_THAT(parts_.zone.at("t11"), SizeIs(1));
    // The store has the positions now, and an image of it would.
    EXPECT_GT(parts_.zone.store().current().journal_position, 3U);
  }
  // What comes next is behind the lost records for every later start, too.
  const std::uint32_t serial = parts_.zone.zone().serial().value;
  EXPECT_LT(serial, 13 + (3U << 20)) << "raised once";
  journalled({text(serial)});
  EXPECT_FALSE(ends_in_damage(parts_.journal.files()));
  EXPECT_GT(parts_.journal.files().segments.back().header.first, std::uint64_t{1} << 32);
}

/// Another server's line of positions: what the image has up to 2 is not what those were there.
TEST_F(ReplayOntoImage, AZoneOfANewerJournalSnapshotComesFromThere) {
  journalled({text(10), text(11)});
  replay(parts_.zone.store());
  journalled({text(12), text(13)});
  fold(14, false);
  EXPECT_THAT(replay(parts_.zone.store()), SizeIs(1));
}

/// The image is the only intact copy of older updates.
TEST_F(ReplayOntoImage, AZoneThatIsDamagedInANewerJournalSnapshotKeepsTheImagesData) {
  journalled({text(10), text(11)});
  replay(parts_.zone.store());
  journalled({text(12), text(13)});
  fold(14, true);
  journalled({text(14)});
  EXPECT_THAT(replay_with_gap(), IsEmpty());
  EXPECT_FALSE(parts_.zone.at("t11").empty());
  EXPECT_FALSE(parts_.zone.at("t14").empty());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{18}) << "two records may be lost behind 15";
}

/// An earlier fault may have raised the serial, and the snapshot alone told that.
TEST_F(ReplayOntoImage, AZoneWhoseSerialTheJournalSnapshotHasLostIsRaisedAboveEarlierSteps) {
  allow_updates();
  journalled({text(10), text(11)});
  replay(parts_.zone.store());
  journalled({text(12), text(13)});
  fold(14 + (5U << 20), true, true);
  EXPECT_THAT(replay_with_gap(), IsEmpty());
  EXPECT_FALSE(parts_.zone.at("t11").empty());
  EXPECT_TRUE(parts_.zone.zone().serial().ahead_of({14 + (32U << 20)}));
}

TEST_F(ReplayOntoImage, AnImageFromBeforeADumpThatWasTakenOverIsOfNoUse) {
  shm::Store& store = parts_.zone.store();
  (void)must(store.publish(store.begin(), store.current().root, 2));
  parts_.journal.begin_behind(5);
  journalled({text(10)});  // which would fit
  ASSERT_EQ(parts_.journal.files().segments.front().header.first, 6U);
  ASSERT_EQ(parts_.journal.files().segments.front().header.void_from, 1U);
  EXPECT_THAT(replay(store), SizeIs(1));
  EXPECT_FALSE(parts_.zone.zone().loaded());
  EXPECT_EQ(store.current().journal_position, 6U);
}

/// A store's chunks and what is done with the new one before it gets its name.
class Memory final : public shm::ImageSource {
 public:
  Memory(const shm::Window& window, std::function<void(shm::Store&)> complete)
      : window_(window), complete_(std::move(complete)) {}
  Status read(std::uint32_t chunk, std::span<std::uint8_t> into, std::uint32_t) override {
    const ByteView from =
        shm::chunk_bytes(window_, chunk, 0, static_cast<std::uint32_t>(into.size()));
    std::copy(from.begin(), from.end(), into.begin());
    return {};
  }
  Status complete(shm::Store& store) override {
    complete_(store);
    return {};
  }
  void used_again() override { is_whole = false; }

  bool is_whole = true;

 private:
  shm::Window window_;
  std::function<void(shm::Store&)> complete_;
};

class ReplayAgain : public ReplayOntoImage {
 protected:
  /// A start from the image of the present version, after a loss of the host's memory.
  dns::Serial start() {
    const shm::Store& old = parts_.zone.store();
    const shm::ImageCapture capture = parts_.zone.store().capture();
    const shm::test::Folder folder;
    Memory source(old.window(), [this](shm::Store& store) {
      must(replay_onto_image(store, parts_.journal, native_files(), limits_,
                             [](const JournalNote&) {}));
    });
    shm::StoreOptions options = shm::test::options(folder, 64 * shm::test::kMiB);
    options.layout = zone::layout_fingerprint();
    const shm::Store made = must(shm::Store::restore(options, capture.state, source));
    const shm::VersionInfo version = made.current();
    EXPECT_EQ(version.journal_position, parts_.journal.last_position());
    return zone::StoreView(made.window(), version.root, version.number).zone_at(name("@")).serial();
  }
};

/// The journal was not healed before. One record less is one serial less that is seen, and one
/// lost record more.
TEST_F(ReplayAgain, ASerialThatWasRaisedIsNotUsedAgainWhenAnotherRecordIsLost) {
  for (std::uint32_t from = 10; from < 14; ++from) journalled({text(from)});
  journalled({{name("other."), {1}, {2}, zone::encode(zone::Changeset{name("other."), {}, {}})}});
  damage("11");
  const dns::Serial first = start();
  EXPECT_TRUE(first.ahead_of({14}));
  damage("13");
  const dns::Serial second = start();
  EXPECT_TRUE(second.ahead_of(first))
      << first.value << " was a zone with t13, and now " << second.value << " is one without";
  EXPECT_TRUE(start().ahead_of(second)) << "nobody knows what another start would find";
}

class ReplayInLittleRoom : public ReplayOntoImage {
 protected:
  void append(std::uint32_t records) {
    std::vector<JournalEntry> group;
    for (std::uint32_t i = 0; i < records; ++i) group.push_back(text(serial_++));
    journalled(group);
  }
  /// A store of so many bytes at most, made from the present one and `records` behind it.
  shm::Store restore(std::uint64_t size_limit, std::uint32_t records) {
    shm::Store& old = parts_.zone.store();
    const shm::ImageCapture capture = old.capture();
    for (std::uint32_t done = 0; done < records; done += kGroup) append(kGroup);
    Memory source(old.window(), [this](shm::Store& store) {
      EXPECT_THAT(replay(store), IsEmpty());
      must(store.check());
    });
    shm::StoreOptions options = shm::test::options(folder_, size_limit);
    options.layout = zone::layout_fingerprint();
    shm::Store made = must(shm::Store::restore(options, capture.state, source));
    is_whole_ = source.is_whole;
    must(made.check());
    const shm::VersionInfo version = made.current();
    const zone::StoreView view(made.window(), version.root, version.number);
    EXPECT_EQ(view.zone_at(name("@")).serial(), dns::Serial{serial_});
    return made;
  }

  static constexpr std::uint32_t kGroup = 250;
  std::uint32_t serial_ = 10;
  bool is_whole_ = true;  // the image's version, in the last store that was made
  shm::test::Folder folder_;
};

constexpr std::uint64_t kMiB = shm::test::kMiB;

TEST_F(ReplayInLittleRoom, UsesAgainWhatItHasFreed) {
  for (const std::uint64_t history : {std::uint64_t{0}, 16 * kMiB}) {
    limits_.history = history;
    const std::uint64_t before = parts_.zone.store().current().number;
    const shm::Store made = restore(3 * kMiB, 5000);
    EXPECT_LT(made.current().number - before, 1500U) << "steps that move nothing are no versions";
    EXPECT_LE(made.stats().peak_chunks * shm::kChunkBytes, 3 * kMiB);
    std::filesystem::remove(folder_.store());
  }
}

TEST_F(ReplayInLittleRoom, SparesTheImageAsLongAsItCan) {
  append(kNames);
  ASSERT_THAT(replay(parts_.zone.store()), IsEmpty());
  restore(64 * kMiB, 1000);
  EXPECT_TRUE(is_whole_);
  std::filesystem::remove(folder_.store());
  restore(3 * kMiB, 1000);
  EXPECT_FALSE(is_whole_);
}

TEST_F(ReplayInLittleRoom, GoesOnAboveALimitThatWasLowered) {
  append(kNames);
  ASSERT_THAT(replay(parts_.zone.store()), IsEmpty());
  limits_.history = 0;
  constexpr std::uint64_t kLowered = 16;  // chunks
  const shm::Store made = restore(kLowered * shm::kChunkBytes, 250);
  EXPECT_GT(made.stats().chunks_in_use, kLowered);
}

/// Whoever attaches from then on may hold any version: nothing is used again before that is known.
TEST_F(ReplayInLittleRoom, FreesNothingOnceTheStoreHasItsName) {
  append(kNames);
  ASSERT_THAT(replay(parts_.zone.store()), IsEmpty());
  limits_.history = 0;
  shm::Store made = restore(64 * kMiB, 1000);
  EXPECT_GT(made.stats().waiting_chunks, 0U);
  EXPECT_EQ(made.reclaim(), 0U);
  made.set_slots(nullptr);  // nobody reads
  EXPECT_GT(made.reclaim(), 0U);
  must(made.check());
}

}  // namespace image_replay_test
}  // namespace pando::manager

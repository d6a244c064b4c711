#include "manager/checkpoint/store_opening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/journal/journal_history.h"
#include "shm/layout.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"

namespace pando::manager {
namespace store_opening_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using ::testing::SizeIs;
using testing::soa_line;

/// The last manager died after a group was journalled and before it was published.
class Replay : public ::testing::Test {
 protected:
  void journalled(const std::vector<JournalEntry>& group) {
    ASSERT_TRUE(parts_.journal.append(group).has_value());
  }
  void restart() {
    const auto replayed =
        replay_journal(parts_.zone.store(), parts_.journal, native_files(),
                       [this](const JournalNote& note) { notes_.push_back(note.text); });
    ASSERT_TRUE(replayed.has_value());
  }
  JournalEntry delta(std::uint32_t from) {
    const auto changes = parts_.changes(
        {soa_line(from)}, {soa_line(from + 1), fmt::format("r{} 60 A 192.0.2.1", from)});
    return {name("@"), {from}, {from + 1}, zone::encode(changes)};
  }
  std::shared_ptr<const JournalHistory> history() {
    return JournalHistory::read(native_files(), parts_.journal.files(), [](const JournalNote&) {});
  }
  std::uint64_t position() { return parts_.zone.store().current().journal_position; }

  Parts parts_;
  std::vector<std::string> notes_;
};

TEST_F(Replay, DifferencesAreApplied) {
  journalled({delta(10), delta(11)});
  restart();
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{12});
  EXPECT_THAT(parts_.zone.at("r11"), SizeIs(1));
  EXPECT_EQ(position(), 2U);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(Replay, WhatChangesNothingCountsAsSeen) {
  journalled({source_entry(name("@"), {10}, {1, 2})});
  restart();
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{10});
  EXPECT_EQ(position(), 1U);
}

/// Else a reload would take the file that an export has written for an edit.
TEST_F(Replay, TheStoreLearnsWhichFileTheJournalNames) {
  journalled({delta(10),
              {name("@"), {10}, {11}, {}, RecordKind::kBase},
              source_entry(name("@"), {11}, {1, 2})});
  restart();
  EXPECT_TRUE(same_source(parts_.zone.zone().source(), {1, 2}));
  EXPECT_EQ(position(), 3U);
}

TEST_F(Replay, TheFileOfAZoneThatWasNeverPutIsNotThatOfTheOneThatIsServed) {
  const zone::ZoneFileInfo before = parts_.zone.zone().source();
  journalled({{name("@"), {77}, {77}, {}, RecordKind::kBase},
              source_entry(name("@"), {77}, {1, 2}),
              source_entry(name("@"), {10}, {3, 4})});
  restart();
  EXPECT_TRUE(same_source(parts_.zone.zone().source(), before));
}

TEST_F(Replay, AZoneThatLeftIsRemoved) {
  journalled({delta(10), {name("@"), {11}, {11}, {}, RecordKind::kGone}});
  restart();
  EXPECT_FALSE(parts_.zone.zone());
  EXPECT_EQ(position(), 2U);
  EXPECT_THAT(notes_, IsEmpty());
}

/// Else the journal would say of what is served that it is as the file was.
TEST_F(Replay, TheNoteOfAZoneThatWasNeverPutIsVoid) {
  for (const RecordKind kind : {RecordKind::kBase, RecordKind::kDynamicChanges}) {
    const std::uint32_t serial = parts_.zone.zone().serial().value;
    const DynamicChanges none;
    const Bytes payload = kind == RecordKind::kBase ? Bytes() : encode(name("@"), none);
    journalled({{name("@"), {77}, {77}, payload, kind}, source_entry(name("@"), {77}, {1, 2})});
    restart();
    ASSERT_TRUE(parts_.journal.append(std::vector{delta(serial)}).has_value());
    restart();
    const auto state = history()->merge_base(name("@"), UINT64_MAX);
    ASSERT_TRUE(state.has_value());
    EXPECT_EQ(state->serial, dns::Serial{serial + 1});
    EXPECT_TRUE(state->dynamic_changes.known());
    EXPECT_FALSE(history()->damaged());
    EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{serial + 1});
  }
}

/// A signed file whose serial was not raised takes the zone's place: the journal has that, the
/// store has not. Workers answer from the old zone; nothing may take it from them.
TEST_F(Replay, AZoneThatWasToBePutUnderItsOwnSerialStays) {
  const std::vector<std::string> before = parts_.zone.lines();
  const zone::ZoneFileInfo source = parts_.zone.zone().source();
  for (const bool again : {false, true}) {
    journalled({{name("@"), {10}, {10}, {}, RecordKind::kGone},
                {name("@"), {10}, {10}, {}, RecordKind::kBase},
                source_entry(name("@"), {10}, {1, 2})});
    restart();
    if (again) restart();  // killed before anything voids the group
    ASSERT_TRUE(parts_.zone.zone());
    EXPECT_EQ(parts_.zone.lines(), before);
    EXPECT_TRUE(same_source(parts_.zone.zone().source(), source)) << "not yet merged";
  }
  // The group is void once there is something behind it.
  journalled({delta(10)});
  restart();
  const auto state = history()->merge_base(name("@"), UINT64_MAX);
  ASSERT_TRUE(state.has_value());
  EXPECT_TRUE(state->dynamic_changes.known());
  EXPECT_FALSE(state->dynamic_changes.empty());
  EXPECT_FALSE(state->source.has_value());
  EXPECT_THAT(notes_, IsEmpty());
}

/// Each for itself: one that leaves, and one of another name that is told of behind it.
TEST_F(Replay, AZoneThatLeftBesideOneThatWasPutIsRemoved) {
  journalled({{name("@"), {10}, {10}, {}, RecordKind::kGone},
              {name("other."), {10}, {10}, {}, RecordKind::kBase}});
  restart();
  EXPECT_FALSE(parts_.zone.zone());
  journalled({{name("@"), {10}, {10}, {}, RecordKind::kGone}});
  journalled({{name("@"), {10}, {10}, {}, RecordKind::kBase}});
  restart();
  EXPECT_FALSE(parts_.zone.zone());
}

TEST_F(Replay, ANoteOfTheZoneAsItIsStays) {
  journalled({delta(10), {name("@"), {5}, {11}, {}, RecordKind::kBase}});
  restart();
  const auto state = history()->merge_base(name("@"), position());
  ASSERT_TRUE(state.has_value());
  EXPECT_TRUE(state->dynamic_changes.empty());
  EXPECT_EQ(state->file_serial, dns::Serial{5});
}

/// Else the operator's dump would be left behind an empty store, and the first record of its
/// journal would make it useless.
TEST(OpenStore, ADumpThatIsNotToBeLeftOutEndsIt) {
  const shm::test::Folder folder;
  const shm::StoreOptions options = shm::test::options(folder);
  StoreSeeds seeds;
  seeds.dump = [](shm::Store&) -> Status { return fail(Errc::kCorrupt, "the dump"); };
  Status agrees = fail(Errc::kDenied, "something is in the way");
  seeds.without_dump = [&] { return agrees; };
  const auto refused = open_store(options, seeds);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "something is in the way");
  EXPECT_EQ(shm::Store::attach(options).error().code, Errc::kNotFound);
  agrees = {};
  EXPECT_EQ(shm::test::must(open_store(options, seeds)).from, OpenedStore::From::kEmpty);
}

/// An image that is large enough to be served before it is copied, of a store that is lost.
class LargeImage : public ::testing::Test {
 protected:
  LargeImage() {
    shm::Store store = must(shm::Store::create(options_));
    shm::Transaction transaction = store.begin();
    for (int i = 0; i < kBlocks; ++i)
      blocks_.push_back(shm::test::put(transaction, shm::test::kMiB, i));
    must(store.publish(std::move(transaction), blocks_.front(), 1));
    version_ = store.current().number;
    Image written(native_files(), image_options());
    must(written.write(store.capture(), store.window(), [](std::uint64_t) { return true; }));
  }
  void SetUp() override {
    std::filesystem::remove(options_.path);
    must(image_.open());
  }
  template <class T>
  static T must(Result<T> result) {
    return shm::test::must(std::move(result));
  }
  static void must(Status status) { shm::test::must(std::move(status)); }
  [[nodiscard]] Image::Options image_options() const {
    return {folder_.path() + "/zones.image", options_.layout, options_.owner};
  }
  /// The replay behind the image fails with `errors`, one after the other, then succeeds.
  Result<OpenedStore> open(std::vector<Errc> errors) {
    StoreSeeds seeds;
    seeds.image = &image_;
    seeds.bring_up = [this, errors](shm::Store& store) -> Status {
      const auto* header = reinterpret_cast<const shm::Header*>(store.window().base());
      borrowed_.push_back(header->borrowed != 0);
      if (borrowed_.size() > errors.size()) return {};
      return fail(errors[borrowed_.size() - 1], "as told");
    };
    seeds.image_not_used = [this](const Error& why) { refused_.push_back(why.code); };
    return open_store(options_, seeds);
  }

  static constexpr int kBlocks = 66;
  shm::test::Folder folder_;
  shm::StoreOptions options_ = [this] {
    shm::StoreOptions options = shm::test::options(folder_, 256 << 20);
    options.owner = {1, 2};
    return options;
  }();
  std::vector<shm::Ref<>> blocks_;
  std::uint64_t version_ = 0;
  Image image_{native_files(), image_options()};
  std::vector<bool> borrowed_;  // of the tries
  std::vector<Errc> refused_;
};

TEST_F(LargeImage, IsServedBeforeItIsCopied) {
  const auto opened = must(open({}));
  EXPECT_TRUE(opened.lent.has_value());
  EXPECT_THAT(borrowed_, ElementsAre(true));
}

/// Where chunks are the image's own, what is freed in them is no room for the journal's records.
TEST_F(LargeImage, BesideWhichThereIsNoRoomIsTriedAgainWithAllOfItCopiedFirst) {
  auto opened = must(open({Errc::kFull}));
  EXPECT_THAT(borrowed_, ElementsAre(true, false));
  EXPECT_EQ(opened.from, OpenedStore::From::kImage);
  EXPECT_FALSE(opened.lent.has_value());
  EXPECT_TRUE(opened.has_image_version);
  EXPECT_THAT(refused_, IsEmpty());
  EXPECT_EQ(opened.store.current().number, version_);
  for (int i = 0; i < kBlocks; ++i)
    ASSERT_TRUE(shm::test::filled(opened.store.window(), blocks_[static_cast<std::size_t>(i)],
                                  shm::test::kMiB, i));
  must(opened.store.check());
}

TEST_F(LargeImage, IsRefusedWhenThereIsNoRoomEitherWay) {
  const auto opened = must(open({Errc::kFull, Errc::kFull}));
  EXPECT_THAT(borrowed_, ElementsAre(true, false));
  EXPECT_EQ(opened.from, OpenedStore::From::kEmpty);
  EXPECT_THAT(refused_, ElementsAre(Errc::kFull));
  EXPECT_EQ(image_.index(), nullptr);
}

TEST_F(LargeImage, ThatFailsForAnotherReasonIsNotTriedAgain) {
  const auto opened = must(open({Errc::kIo}));
  EXPECT_THAT(borrowed_, ElementsAre(true));
  EXPECT_EQ(opened.from, OpenedStore::From::kEmpty);
  EXPECT_THAT(refused_, ElementsAre(Errc::kIo));
}

}  // namespace store_opening_test
}  // namespace pando::manager

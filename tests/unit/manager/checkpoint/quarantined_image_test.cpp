// The fate of images that a start does not use. An image that may be good is never destroyed, and
// an image of another store is never taken for one of this store.

#include "manager/checkpoint/quarantined_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace quarantined_image_test {

using shm::test::must;
using ::testing::AllOf;
using testing::FakeDisk;
using ::testing::HasSubstr;

constexpr const char* kPath = "/disk/zones.image";
constexpr const char* kQuarantined = "/disk/zones.image.quarantined";
constexpr shm::StoreOwner kOwner{1, 2};
const Error kNoRoom{Errc::kFull, "no room"};
const Error kDamaged{Errc::kCorrupt, "a wrong checksum"};

class UnusedImage : public ::testing::Test {
 protected:
  /// An image of nothing.
  void put(std::uint64_t file, const shm::StoreOwner& owner = kOwner, std::uint64_t position = 7) {
    shm::ImageIndex index;
    index.layout = shm::test::kLayout;
    index.owner = owner;
    index.file = file;
    index.state.version = 5;
    index.state.lineage = file;
    index.state.journal_position = position;
    write(kPath, shm::encode_image_index(index));
    write(shm::image_chunks_path(kPath, file), shm::encode_image_chunks_head(file));
  }
  void write(const std::string& path, const Bytes& bytes) {
    auto file = must(disk_.open(path, OpenMode::kCreate));
    must(file->write_at(0, bytes));
  }
  /// Of the start that is tried now.
  Image& image(bool take_copies = false) {
    return image_.emplace(disk_, Image::Options{kPath, shm::test::kLayout, kOwner, take_copies});
  }

  FakeDisk disk_;
  std::optional<Image> image_;
  QuarantinedImage unused_;
};

TEST_F(UnusedImage, OneThatMayBeGoodIsQuarantinedBeforeThereIsAnotherStore) {
  put(1);
  unused_.mark_unused(kNoRoom);
  unused_.lose(image());
  EXPECT_TRUE(unused_.may_write());
  EXPECT_TRUE(disk_.has(kQuarantined) && !disk_.has(kPath));
  EXPECT_THAT(unused_.unused(), HasSubstr("zones.image.quarantined: no room"));
  EXPECT_EQ(unused_.quarantined(), unused_.unused());
}

TEST_F(UnusedImage, ADamagedOneIsGoneBeforeThereIsAnotherStore) {
  put(1);
  unused_.mark_unused(kDamaged);
  unused_.lose(image());
  EXPECT_TRUE(unused_.may_write());
  EXPECT_FALSE(disk_.has(kQuarantined) || disk_.has(kPath));
  EXPECT_EQ(unused_.unused(), "");
}

TEST_F(UnusedImage, ASecondOneStaysAndNothingIsWritten) {
  put(1);
  unused_.mark_unused(kNoRoom);
  unused_.lose(image());
  put(2);
  const Bytes second = disk_.contents(kPath);
  QuarantinedImage next;
  next.mark_unused(kNoRoom);
  next.lose(image());
  EXPECT_FALSE(next.may_write());
  EXPECT_EQ(disk_.contents(kPath), second);
  EXPECT_EQ(next.unused(), "/disk/zones.image: no room");
  EXPECT_THAT(next.quarantined(), HasSubstr("quarantined: by an earlier start"));
  // Nor by a later process, beside the store that was made instead.
  const Status looked = image().look(77);
  ASSERT_FALSE(looked);
  QuarantinedImage later;
  later.mark_unused(looked.error());
  later.quarantine_if_good(*image_);
  EXPECT_FALSE(later.may_write());
  EXPECT_EQ(disk_.contents(kPath), second);
}

/// The manager before was dying, say, and another look finds the image or the store sound.
TEST_F(UnusedImage, OneThatALaterTryCouldUseIsNoneAnyMore) {
  put(1);
  unused_.mark_unused({Errc::kIo, "too many open files"});
  unused_.mark_used();
  unused_.quarantine_if_good(image());
  EXPECT_TRUE(disk_.has(kPath) && !disk_.has(kQuarantined));
  EXPECT_EQ(unused_.unused() + unused_.quarantined(), "");
}

TEST_F(UnusedImage, OneWithoutUpdatesIsRemovedForADump) {
  put(1, kOwner, 0);
  must(image().open());
  must(unused_.clear_for_dump(*image_, {}));
  EXPECT_FALSE(disk_.has(kPath) || disk_.has(kQuarantined));
  EXPECT_EQ(image_->index(), nullptr);
  must(unused_.clear_for_dump(image(), {}));  // there is none
}

TEST_F(UnusedImage, OneWithUpdatesAndACopyAreQuarantinedForADump) {
  for (const bool copy : {false, true}) {
    put(1, copy ? shm::StoreOwner{} : kOwner, 7);
    must(image(true).open());
    QuarantinedImage unused;
    must(unused.clear_for_dump(*image_, {}));
    EXPECT_TRUE(disk_.has(kQuarantined) && !disk_.has(kPath));
    EXPECT_THAT(unused.unused(), HasSubstr("dump"));
    must(disk_.remove(kQuarantined));
  }
}

TEST_F(UnusedImage, OneOfAnotherLayoutIsRemovedForADump) {
  put(1);
  unused_.mark_unused({Errc::kLayout, "another layout"});
  must(unused_.clear_for_dump(image(), {}));
  EXPECT_FALSE(disk_.has(kPath) || disk_.has(kQuarantined));
}

/// So an image of the dump's own server does, when that begins with another journal.
TEST_F(UnusedImage, OneThatHasNothingBeyondTheDumpIsRemoved) {
  constexpr shm::StoreOwner kThem{3, 4};
  // As put() makes it: version 5 of lineage 1, at position 7.
  const zone::DumpHeader of_it{.owner = kThem, .version = 5, .position = 7, .lineage = 1};
  const auto is_quarantined = [&](const shm::StoreOwner& owner, const zone::DumpHeader& dump) {
    put(1, owner);
    QuarantinedImage unused;
    unused.mark_unused(image().open().error());
    must(unused.clear_for_dump(*image_, dump));
    EXPECT_FALSE(disk_.has(kPath));
    const bool kept = disk_.has(kQuarantined);
    if (kept) must(disk_.remove(kQuarantined));
    return kept;
  };
  EXPECT_FALSE(is_quarantined(kThem, of_it));
  const auto but = [&](auto change) {
    zone::DumpHeader dump = of_it;
    change(dump);
    return dump;
  };
  EXPECT_FALSE(is_quarantined(kThem, but([](auto& dump) { dump.version = dump.position = 99; })));
  EXPECT_TRUE(is_quarantined(kThem, but([](auto& dump) { dump.version = 4; }))) << "of before";
  EXPECT_TRUE(is_quarantined(kThem, but([](auto& dump) { dump.position = 6; })));
  EXPECT_TRUE(is_quarantined(kThem, but([](auto& dump) { dump.lineage = 2; })))
      << "of another store";
  EXPECT_TRUE(is_quarantined({3, 5}, of_it)) << "of a server that began with a copy";
}

TEST_F(UnusedImage, OneThatCannotBeClearedIsReported) {
  put(1);
  unused_.mark_unused(kNoRoom);
  unused_.lose(image());
  put(2);
  must(image().open());
  QuarantinedImage next;
  const Status stays = next.clear_for_dump(*image_, {});
  EXPECT_EQ(stays.error().code, Errc::kDenied) << "kExists says that another manager runs";
  EXPECT_THAT(stays.error().text, AllOf(HasSubstr("zones.image: cannot be removed or quarantined"),
                                        HasSubstr("quarantined already")));
  EXPECT_TRUE(disk_.has(kPath));
  EXPECT_FALSE(next.may_write());
}

}  // namespace quarantined_image_test
}  // namespace pando::manager

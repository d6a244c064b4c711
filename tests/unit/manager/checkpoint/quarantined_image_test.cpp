// What becomes of images that a start has no use for: those that may be good are never destroyed,
// and those that are not of the store are never taken for it.

#include "manager/checkpoint/quarantined_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace {

using shm::test::must;
using ::testing::AllOf;
using testing::FakeDisk;
using ::testing::HasSubstr;

constexpr const char* kPath = "/disk/zones.image";
constexpr const char* kRefused = "/disk/zones.image.refused";
constexpr shm::StoreOwner kOwner{1, 2};
const Error kNoRoom{Errc::kFull, "no room"};
const Error kDamaged{Errc::kCorrupt, "a wrong checksum"};

class Refused : public ::testing::Test {
 protected:
  /// An image of nothing.
  void put(std::uint64_t file, const shm::StoreOwner& owner = kOwner, std::uint64_t position = 7) {
    shm::ImageIndex index;
    index.layout = shm::test::kLayout;
    index.owner = owner;
    index.file = file;
    index.state.version = 5;
    index.state.line = file;
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
  QuarantinedImage refused_;
};

TEST_F(Refused, OneThatMayBeGoodIsSetAsideBeforeThereIsAnotherStore) {
  put(1);
  refused_.refuse(kNoRoom);
  refused_.lose(image());
  EXPECT_TRUE(refused_.may_write());
  EXPECT_TRUE(disk_.has(kRefused) && !disk_.has(kPath));
  EXPECT_THAT(refused_.text(), HasSubstr("zones.image.refused: no room"));
  EXPECT_EQ(refused_.kept(), refused_.text());
}

TEST_F(Refused, ADamagedOneIsGoneBeforeThereIsAnotherStore) {
  put(1);
  refused_.refuse(kDamaged);
  refused_.lose(image());
  EXPECT_TRUE(refused_.may_write());
  EXPECT_FALSE(disk_.has(kRefused) || disk_.has(kPath));
  EXPECT_EQ(refused_.text(), "");
}

TEST_F(Refused, ASecondOneStaysAndNothingIsWritten) {
  put(1);
  refused_.refuse(kNoRoom);
  refused_.lose(image());
  put(2);
  const Bytes second = disk_.contents(kPath);
  QuarantinedImage next;
  next.refuse(kNoRoom);
  next.lose(image());
  EXPECT_FALSE(next.may_write());
  EXPECT_EQ(disk_.contents(kPath), second);
  EXPECT_EQ(next.text(), "/disk/zones.image: no room");
  EXPECT_THAT(next.kept(), HasSubstr("refused: by an earlier start"));
  // Nor by a later process, beside the store that was made instead.
  const Status looked = image().look(77);
  ASSERT_FALSE(looked);
  QuarantinedImage later;
  later.refuse(looked.error());
  later.keep(*image_);
  EXPECT_FALSE(later.may_write());
  EXPECT_EQ(disk_.contents(kPath), second);
}

/// The manager before was dying, say, and another look finds the image or the store sound.
TEST_F(Refused, OneThatALaterTryCouldUseIsNoneAnyMore) {
  put(1);
  refused_.refuse({Errc::kIo, "too many open files"});
  refused_.forgive();
  refused_.keep(image());
  EXPECT_TRUE(disk_.has(kPath) && !disk_.has(kRefused));
  EXPECT_EQ(refused_.text() + refused_.kept(), "");
}

TEST_F(Refused, OneWithoutUpdatesGivesWayToADumpAndIsGone) {
  put(1, kOwner, 0);
  must(image().open());
  must(refused_.give_way(*image_, {}));
  EXPECT_FALSE(disk_.has(kPath) || disk_.has(kRefused));
  EXPECT_EQ(image_->index(), nullptr);
  must(refused_.give_way(image(), {}));  // there is none
}

TEST_F(Refused, OneWithUpdatesAndACopyGiveWayToADumpAndAreKept) {
  for (const bool copy : {false, true}) {
    put(1, copy ? shm::StoreOwner{} : kOwner, 7);
    must(image(true).open());
    QuarantinedImage refused;
    must(refused.give_way(*image_, {}));
    EXPECT_TRUE(disk_.has(kRefused) && !disk_.has(kPath));
    EXPECT_THAT(refused.text(), HasSubstr("dump"));
    must(disk_.remove(kRefused));
  }
}

TEST_F(Refused, OneOfAnotherLayoutGivesWayToADumpAndIsGone) {
  put(1);
  refused_.refuse({Errc::kLayout, "another layout"});
  must(refused_.give_way(image(), {}));
  EXPECT_FALSE(disk_.has(kPath) || disk_.has(kRefused));
}

/// So an image of the dump's own server does, when that begins with another journal.
TEST_F(Refused, OneThatHasNothingBeyondTheDumpGivesWayAndIsGone) {
  constexpr shm::StoreOwner kThem{3, 4};
  // As put() makes it: version 5 of line 1, at position 7.
  const zone::DumpHeader of_it{.owner = kThem, .version = 5, .position = 7, .line = 1};
  const auto is_kept = [&](const shm::StoreOwner& owner, const zone::DumpHeader& dump) {
    put(1, owner);
    QuarantinedImage refused;
    refused.refuse(image().open().error());
    must(refused.give_way(*image_, dump));
    EXPECT_FALSE(disk_.has(kPath));
    const bool kept = disk_.has(kRefused);
    if (kept) must(disk_.remove(kRefused));
    return kept;
  };
  EXPECT_FALSE(is_kept(kThem, of_it));
  const auto but = [&](auto change) {
    zone::DumpHeader dump = of_it;
    change(dump);
    return dump;
  };
  EXPECT_FALSE(is_kept(kThem, but([](auto& dump) { dump.version = dump.position = 99; })));
  EXPECT_TRUE(is_kept(kThem, but([](auto& dump) { dump.version = 4; }))) << "of before";
  EXPECT_TRUE(is_kept(kThem, but([](auto& dump) { dump.position = 6; })));
  EXPECT_TRUE(is_kept(kThem, but([](auto& dump) { dump.line = 2; }))) << "of another store";
  EXPECT_TRUE(is_kept(kThem, but([](auto& dump) { dump.line = 0; }))) << "of a build before lines";
  EXPECT_TRUE(is_kept({3, 5}, of_it)) << "of a server that began with a copy";
}

TEST_F(Refused, OneThatCannotGiveWayIsSaidSo) {
  put(1);
  refused_.refuse(kNoRoom);
  refused_.lose(image());
  put(2);
  must(image().open());
  QuarantinedImage next;
  const Status stays = next.give_way(*image_, {});
  EXPECT_EQ(stays.error().code, Errc::kDenied) << "kExists says that another manager runs";
  EXPECT_THAT(stays.error().text,
              AllOf(HasSubstr("zones.image: cannot give way"), HasSubstr("refused already")));
  EXPECT_TRUE(disk_.has(kPath));
  EXPECT_FALSE(next.may_write());
}

}  // namespace
}  // namespace pando::manager

// An image on disk, looked at without a manager: what is sound is walked like a store, and whatever
// is wrong with its bytes is one line.

#include "shm/inspect/image_inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/checkpoint/image.h"
#include "shm/inspect/inspection.h"
#include "tests/unit/manager/commit/parts.h"
#include "zone/audit/audit.h"

namespace pando::manager {
namespace image_inspection_test {

using shm::ImageInspection;
using shm::test::must;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Parts;
using ::testing::StartsWith;

class Inspected : public ::testing::Test {
 protected:
  Inspected() {
    for (int i = 0; i < 40; ++i)
      EXPECT_TRUE(parts_.apply({}, {fmt::format("n{} 60 TXT \"{}\"", i, std::string(200, 'x'))}));
    Image image(native_files(), {path_, zone::layout_fingerprint(), {1, 2}});
    must(image.write(parts_.zone.store().capture(), parts_.zone.store().window(),
                     [](std::uint64_t) { return true; }));
    chunks_ = image.chunks();
  }
  static void must(Status status) { shm::test::must(std::move(status)); }
  template <class T>
  static T must(Result<T> result) {
    return shm::test::must(std::move(result));
  }
  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  Result<ImageInspection> open(std::uint64_t layout = zone::layout_fingerprint()) {
    return ImageInspection::open(path_, layout);
  }

  Parts parts_;
  std::string path_ = parts_.folder.path() + "/zones.image";
  std::string chunks_;
};

TEST_F(Inspected, ASoundOneIsWalkedLikeTheStore) {
  std::uint64_t read = 0;
  std::uint64_t all = 0;
  const ImageInspection image = must(ImageInspection::open(
      path_, zone::layout_fingerprint(), [&](std::uint64_t done, std::uint64_t total) {
        read = done;
        all = total;
      }));
  EXPECT_EQ(read, all);
  EXPECT_GT(all, 0U);
  EXPECT_TRUE(image.is_current());
  const shm::VersionInfo live = parts_.zone.store().current();
  EXPECT_EQ(image.version().number, live.number);
  zone::Audit found = zone::audit(image.window(), image.version().root);
  zone::compare_chunks(found, shm::occupancy(image.window()));
  EXPECT_EQ(found.fault_count, 0U) << found.faults.front();
  zone::Audit wanted = zone::audit(parts_.zone.store().window(), live.root);
  EXPECT_EQ(found.records, wanted.records);
  EXPECT_EQ(found.usage.by_name(), wanted.usage.by_name());
}

TEST_F(Inspected, AnyOctetOfTheIndexThatIsAnotherIsFound) {
  const std::string sound = contents(path_);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write(path_, damaged);
    const auto image = open();
    ASSERT_FALSE(image) << at;
    ASSERT_EQ(image.error().code, Errc::kCorrupt) << at;
    ASSERT_THAT(image.error().text, StartsWith(path_ + ": ")) << at;
  }
}

TEST_F(Inspected, DamagedChunksAreCountedAndNamed) {
  const shm::ImageIndex index = must(shm::decode_image_index([this] {
    const std::string bytes = contents(path_);
    return Bytes(bytes.begin(), bytes.end());
  }()));
  std::string bytes = contents(chunks_);
  std::uint32_t first = shm::kMaxImageChunks;
  unsigned damaged = 0;
  for (std::uint32_t number = 0; number < index.state.chunks.size(); ++number) {
    if (index.state.chunks[number].count == 0) continue;
    bytes[shm::image_chunk_offset(number) + index.state.chunks[number].used - 1] ^= 1;
    first = std::min(first, number);
    ++damaged;
  }
  write(chunks_, bytes);
  const auto image = open();
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, Errc::kCorrupt);
  EXPECT_EQ(image.error().text,
            fmt::format("{}: {} of its chunks are damaged, the first one at byte {}", chunks_,
                        damaged, shm::image_chunk_offset(first)));
}

TEST_F(Inspected, WhatIsCutOffOrMissingIsNamed) {
  const std::string index = contents(path_);
  const std::string chunks = contents(chunks_);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{7}, std::size_t{60}, std::size_t{90}, index.size() - 1}) {
    write(path_, index.substr(0, bytes));
    EXPECT_THAT(open().error().text, StartsWith(path_ + ": ")) << bytes;
  }
  write(path_, index);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{10}, std::size_t{65'536}, chunks.size() - 1}) {
    write(chunks_, chunks.substr(0, bytes));
    const auto image = open();
    ASSERT_FALSE(image) << bytes;
    EXPECT_EQ(image.error().code, Errc::kCorrupt);
    EXPECT_THAT(image.error().text, StartsWith(chunks_ + ": ")) << bytes;
  }
  std::filesystem::remove(chunks_);
  EXPECT_EQ(open().error().text, chunks_ + ": no such file");
  EXPECT_EQ(ImageInspection::open(path_ + ".none", 0).error().code, Errc::kNotFound);
}

TEST_F(Inspected, AQuarantinedOneHasItsChunksUnderTheirOldName) {
  std::filesystem::rename(path_, path_ + ".quarantined");
  must(ImageInspection::open(path_ + ".quarantined", zone::layout_fingerprint()));
  std::filesystem::rename(path_ + ".quarantined", path_ + ".other");
  EXPECT_EQ(ImageInspection::open(path_ + ".other", zone::layout_fingerprint()).error().code,
            Errc::kNotFound);
}

TEST_F(Inspected, OneOfAnotherLayoutIsSoundButNotWalked) {
  const auto image = open(zone::layout_fingerprint() + 1);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, Errc::kLayout);
  EXPECT_THAT(image.error().text, AllOf(StartsWith(path_ + ": "),
                                        HasSubstr("another layout (all checksums are right)")));
}

TEST_F(Inspected, WhatIsReplacedMeanwhileIsNotCalledDamaged) {
  const ImageInspection image = must(open());
  ASSERT_TRUE(image.is_current());
  ASSERT_TRUE(parts_.apply({}, {"later 60 A 192.0.2.1"}));
  Image next(native_files(), {path_, zone::layout_fingerprint(), {1, 2}});
  must(next.write(parts_.zone.store().capture(), parts_.zone.store().window(),
                  [](std::uint64_t) { return true; }));
  EXPECT_FALSE(image.is_current());
}

}  // namespace image_inspection_test
}  // namespace pando::manager

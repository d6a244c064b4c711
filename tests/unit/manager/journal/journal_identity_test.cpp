#include "manager/journal/journal_identity.h"

#include <gtest/gtest.h>

#include "manager/journal/record/journal_format.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace journal_identity_test {

using testing::FakeDisk;

constexpr const char* kFolder = "/journal";

void write_identity(FakeDisk& disk, std::string_view text) {
  const Bytes bytes(text.begin(), text.end());
  ASSERT_TRUE(write_file_atomically(disk, std::string(kFolder) + "/identity", bytes));
}

Errc refusal(FakeDisk& disk) {
  const auto identity = journal_identity(disk, kFolder);
  EXPECT_FALSE(identity.has_value());
  return identity ? Errc::kInvalid : identity.error().code;
}

TEST(JournalIdentity, IsMadeOnceAndStays) {
  FakeDisk disk;
  const auto made = journal_identity(disk, kFolder);
  ASSERT_TRUE(made);
  EXPECT_NE(*made, shm::StoreOwner{});
  EXPECT_EQ(journal_identity(disk, kFolder).value(), *made);
}

TEST(JournalIdentity, AJournalThatHasLostItGetsNoOther) {
  FakeDisk disk;
  const Bytes header = encode_segment_header({1, 1, 7, {8, 9}});
  ASSERT_TRUE(write_file_atomically(disk, "/journal/0000000000000001.journal", header));
  EXPECT_EQ(refusal(disk), Errc::kNotFound);
  EXPECT_EQ(identity_in_files(disk, kFolder).value(), (shm::StoreOwner{8, 9}));
  const Bytes other = encode_segment_header({2, 2, 7, {8, 8}});
  ASSERT_TRUE(write_file_atomically(disk, "/journal/0000000000000002.journal", other));
  EXPECT_EQ(identity_in_files(disk, kFolder).error().code, Errc::kCorrupt);
}

TEST(JournalIdentity, TwoFoldersHaveTwo) {
  FakeDisk disk;
  EXPECT_NE(journal_identity(disk, "/one").value(), journal_identity(disk, "/two").value());
}

TEST(JournalIdentity, SurvivesALossOfPowerAsSoonAsItIsGiven) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FakeDisk disk;
    const auto made = journal_identity(disk, kFolder);
    ASSERT_TRUE(made);
    std::mt19937_64 random(seed);
    disk.power_cut(random);
    EXPECT_EQ(journal_identity(disk, kFolder).value(), *made);
  }
}

TEST(JournalIdentity, IsReadInTheFormThatIsDocumented) {
  FakeDisk disk;
  write_identity(disk, "000000000000000100000000000000ff 60278f28aa530762\n");
  EXPECT_EQ(journal_identity(disk, kFolder).value(), (shm::StoreOwner{1, 255}));
}

TEST(JournalIdentity, AnotherFormIsNoIdentity) {
  const std::string digits = "000000000000000100000000000000ff";
  const std::string checksum = "60278f28aa530762";
  for (const std::string& text :
       {std::string(), std::string("\n"), digits + "\n", digits + " " + checksum,
        digits + " " + checksum + "\n\n", digits.substr(1) + " " + checksum + "\n",
        digits + " 60278f28aa530763\n",
        std::string("000000000000000g00000000000000ff c9982c58698ba9a8\n"),
        std::string("00000000000000000000000000000000 a923e6c553d76fe3\n")}) {
    FakeDisk disk;
    write_identity(disk, text);
    EXPECT_EQ(refusal(disk), Errc::kCorrupt) << text;
  }
}

/// Most flipped bits of a hexadecimal digit make another digit.
TEST(JournalIdentity, AFlippedBitMakesNoOtherIdentity) {
  FakeDisk disk;
  ASSERT_TRUE(journal_identity(disk, kFolder));
  Bytes& bytes = disk.contents(std::string(kFolder) + "/identity");
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_EQ(refusal(disk), Errc::kCorrupt) << bit;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
  }
}

TEST(JournalIdentity, IsNotGivenWhenItCannotBeKept) {
  FakeDisk disk;
  disk.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    if (call == FakeDisk::Call::kSync) return fail(Errc::kIo, "broken disk");
    return {};
  };
  EXPECT_EQ(refusal(disk), Errc::kIo);
}

}  // namespace journal_identity_test
}  // namespace pando::manager

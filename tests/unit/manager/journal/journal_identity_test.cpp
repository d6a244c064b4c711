#include "manager/journal/journal_identity.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace {

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
  write_identity(disk, "000000000000000100000000000000ff\n");
  EXPECT_EQ(journal_identity(disk, kFolder).value(), (shm::StoreOwner{1, 255}));
}

TEST(JournalIdentity, AnotherFormIsNoIdentity) {
  for (const char* text :
       {"", "\n", "0000000000000001000000000000000f", "00000000000000010000000000000ff\n",
        "000000000000000g00000000000000ff\n", "000000000000000100000000000000ff\n\n",
        "00000000000000000000000000000000\n", "-00000000000000100000000000000ff\n"}) {
    FakeDisk disk;
    write_identity(disk, text);
    EXPECT_EQ(refusal(disk), Errc::kCorrupt) << text;
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

}  // namespace
}  // namespace pando::manager

#include "manager/io/throttled_file.h"

#include <gtest/gtest.h>

#include "fake_disk.h"

namespace pando::manager {
namespace throttled_file_test {

using testing::FakeDisk;
using Call = FakeDisk::Call;

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

class Trickled : public ::testing::Test {
 protected:
  FakeDisk disk;
  std::unique_ptr<StoreFile> file = *disk.open("/d/file", OpenMode::kCreate);
  ThrottledFile trickled{*file};
};

TEST_F(Trickled, SyncsWhenSoMuchWouldBeHeldBack) {
  const Bytes part(kMegabyte, 7);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(trickled.write_at(i * kMegabyte, part));
  EXPECT_EQ(disk.calls[Call::kSync], 0);
  ASSERT_TRUE(trickled.write_at(3 * kMegabyte, part));
  EXPECT_EQ(disk.calls[Call::kSync], 1);
  ASSERT_TRUE(trickled.sync());
  for (std::uint64_t i = 4; i < 7; ++i) ASSERT_TRUE(trickled.write_at(i * kMegabyte, part));
  EXPECT_EQ(disk.calls[Call::kSync], 2) << "counted from the last sync, whoever asked for it";
}

TEST_F(Trickled, CutsWhatComesInOneGo) {
  Bytes whole(9 * kMegabyte + 1);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::uint8_t>(i * 31 >> 8);
  ASSERT_TRUE(trickled.write_at(0, whole));
  EXPECT_EQ(disk.calls[Call::kSync], 2);
  EXPECT_EQ(disk.contents("/d/file"), whole);
}

TEST_F(Trickled, SaysThatASyncFailed) {
  disk.fail = [](Call call, const std::string&) {
    return call == Call::kSync ? Status(fail(Errc::kIo, "no")) : Status();
  };
  const auto written = trickled.write_at(0, Bytes(9 * kMegabyte));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kIo);
  EXPECT_EQ(disk.calls[Call::kSync], 1) << "what failed is not tried again";
  EXPECT_EQ(disk.calls[Call::kWrite], 1);
}

}  // namespace throttled_file_test
}  // namespace pando::manager

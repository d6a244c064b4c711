#include "ctl/commands/program_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pando::ctl {
namespace program_rights_test {

using ::testing::HasSubstr;

/// A program of this process's user, in a folder of its own.
class Rights : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "pando-rights-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    program_ = folder_ + "/judge";
    set(0755, 0755, "ELF");
  }
  void TearDown() override {
    ::chmod(folder_.c_str(), 0755);
    std::filesystem::remove_all(folder_);
  }
  void set(mode_t folder, mode_t program, const std::string& text) {
    ::chmod(folder_.c_str(), 0755);
    std::ofstream(program_) << text;
    ::chmod(program_.c_str(), program);
    ::chmod(folder_.c_str(), folder);
  }
  std::string problem(const FileUser& user) const { return rights_problem(program_, user); }

  static constexpr std::uint32_t kOther = 4711;  // neither root nor this process's user
  const FileUser stranger_{kOther, {kOther}};
  const FileUser member_{kOther, {kOther, ::getegid()}};
  std::string folder_;
  std::string program_;
};

TEST_F(Rights, EverybodyMayRunAnOpenProgram) {
  EXPECT_EQ(problem(stranger_), "");
  EXPECT_EQ(problem(member_), "");
}

TEST_F(Rights, AFolderOnTheWayDecides) {
  set(0750, 0755, "ELF");
  EXPECT_EQ(problem(stranger_), program_ + " cannot be run: its user may not enter " + folder_);
  EXPECT_EQ(problem(member_), "");
  set(0740, 0755, "ELF");
  EXPECT_THAT(problem(member_), HasSubstr("may not enter"));
}

TEST_F(Rights, TheFileDecidesForItsOwnerItsGroupAndOthers) {
  set(0755, 0744, "ELF");
  EXPECT_EQ(problem(stranger_), program_ + " cannot be run: its user may not execute it");
  set(0755, 0745, "ELF");
  EXPECT_EQ(problem(stranger_), "");
  EXPECT_THAT(problem(member_), HasSubstr("may not execute it")) << "the group's bits come first";
}

TEST_F(Rights, AScriptHasToBeReadable) {
  set(0755, 0751, "#!/bin/sh\n");
  EXPECT_EQ(problem(stranger_), program_ + " cannot be run: its user may not read the script");
  EXPECT_EQ(problem(member_), "");
  set(0755, 0751, "ELF");
  EXPECT_EQ(problem(stranger_), "");
}

TEST_F(Rights, ALinkLeadsThroughBothFolders) {
  const std::string other = folder_ + "/other";
  std::filesystem::create_directory(other);
  std::filesystem::create_symlink(program_, other + "/link");
  ::chmod(other.c_str(), 0700);
  EXPECT_THAT(rights_problem(other + "/link", stranger_), HasSubstr("may not enter " + other));
  ::chmod(other.c_str(), 0755);
  EXPECT_EQ(rights_problem(other + "/link", stranger_), "");
}

TEST_F(Rights, RootMayAllThatIsExecutable) {
  set(0700, 0700, "ELF");
  EXPECT_EQ(problem({0, {0}}), "");
}

}  // namespace program_rights_test
}  // namespace pando::ctl

#include "base/program_build.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace pando {
namespace program_build_test {

/// A file that is removed with the object.
class File {
 public:
  explicit File(const std::string& content)
      : path_(testing::TempDir() + "program-build-" + std::to_string(::getpid()) + "-" +
              std::to_string(++count_)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::remove(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_;
};

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A program of nothing but one segment of notes; the header says that it has `size` octets.
std::string program_with(const std::string& notes, std::size_t size) {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_phoff = sizeof header;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = size;
  return bytes_of(header) + bytes_of(segment) + notes;
}

std::string note(std::uint32_t type, const std::string& name, const std::string& data) {
  Elf64_Nhdr head{};
  head.n_namesz = static_cast<Elf64_Word>(name.size());
  head.n_descsz = static_cast<Elf64_Word>(data.size());
  head.n_type = type;
  std::string text = bytes_of(head) + name;
  text.resize((text.size() + 3) & ~std::size_t{3});
  text += data;
  text.resize((text.size() + 3) & ~std::size_t{3});
  return text;
}

const std::string kGnu("GNU", 4);

TEST(ProgramBuild, TheRunningProgramHasOne) {
  const std::string build = own_build();
  EXPECT_EQ(build.size(), 40U) << build;
  EXPECT_TRUE(is_build_id(build));
  EXPECT_EQ(build, program_build(own_program()).value_or("none"));
}

TEST(ProgramBuild, TheIdStandsBehindOtherNotes) {
  const std::string notes = note(1, kGnu, "abc") + note(NT_GNU_BUILD_ID, "Go", "x") +
                            note(NT_GNU_BUILD_ID, kGnu, std::string("\x00\xff\x1a", 3));
  const File file(program_with(notes, notes.size()));
  EXPECT_EQ(program_build(file.path()).value_or("none"), "00ff1a");
}

TEST(ProgramBuild, AProgramWithoutAnIdHasAnEmptyOne) {
  const std::string notes = note(1, kGnu, "abc");
  const File file(program_with(notes, notes.size()));
  EXPECT_EQ(program_build(file.path()).value_or("none"), "");
}

TEST(ProgramBuild, LengthsBeyondTheFileAreNotFollowed) {
  std::string notes = note(NT_GNU_BUILD_ID, kGnu, "abcd");
  const File cut(program_with(notes, notes.size() + 1));
  EXPECT_EQ(program_build(cut.path()).value_or("none"), "");
  const File large(program_with(notes, std::size_t{1} << 60));
  EXPECT_EQ(program_build(large.path()).value_or("none"), "");
  Elf64_Nhdr head{};
  head.n_namesz = UINT32_MAX;
  head.n_descsz = UINT32_MAX;
  notes = bytes_of(head) + "GNU";
  const File wide(program_with(notes, notes.size()));
  EXPECT_EQ(program_build(wide.path()).value_or("none"), "");
}

TEST(ProgramBuild, OtherFilesAreRefused) {
  const File script("#!/bin/sh\nexit 0\n");
  ASSERT_FALSE(program_build(script.path()));
  EXPECT_EQ(program_build(script.path()).error().code, Errc::kCorrupt);
  const File empty("");
  EXPECT_FALSE(program_build(empty.path()));
  ASSERT_FALSE(program_build("/no/such/file"));
  EXPECT_EQ(program_build("/no/such/file").error().code, Errc::kIo);
}

TEST(ProgramBuild, IdsOfOthersAreJudged) {
  EXPECT_TRUE(is_build_id(""));
  EXPECT_TRUE(is_build_id("00ff1a"));
  EXPECT_FALSE(is_build_id("00FF"));
  EXPECT_FALSE(is_build_id(std::string(65, 'a')));
  EXPECT_FALSE(is_build_id("\xff\xfe"));
}

}  // namespace program_build_test
}  // namespace pando

#include "manager/zonefile/zone_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace zone_file_test {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFile;
using testing::name;
using ::testing::StartsWith;

/// Files of "example.", which is served as testing::kBasicZone.
class ZoneFileBuild : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  Result<ZoneFromFile, ZoneProblems> build() {
    transaction_.emplace(store_.store().begin_private());
    return build_zone(*transaction_, name("@"), path_, nullptr);
  }
  std::vector<std::string> problems() {
    auto built = build();
    return built ? std::vector<std::string>{"built"} : built.error().lines;
  }
  Result<std::optional<ComparedFile>, ZoneProblems> compare() {
    return compare_file(store_.zone(), name("@"), path_, nullptr);
  }
  /// The records of the compared file's changeset: "-OWNER" and "+OWNER".
  static std::vector<std::string> changes(ComparedFile& file) {
    const auto made = shm::test::must(file.comparison->changeset([](auto) { return UINT64_MAX; }));
    std::vector<std::string> lines;
    for (const zone::Record& one : made->removed) lines.push_back("-" + to_text(one.owner));
    for (const zone::Record& one : made->added) lines.push_back("+" + to_text(one.owner));
    return lines;
  }
  /// A file with exactly the served records.
  void write_served(const std::string& more = {}) {
    std::string text;
    for (const std::string& line : testing::kBasicZone) text += line + "\n";
    write(text + more);
  }

  shm::test::Folder folder_;
  std::string path_ = folder_.path() + "/example.zone";
  testing::ZoneStore store_;
  std::optional<shm::Transaction> transaction_;
};

TEST_F(ZoneFileBuild, AFileBecomesAZoneWithItsIdentity) {
  write(kFile);
  auto built = build();
  ASSERT_TRUE(built);
  EXPECT_EQ(built->records, 4U);
  EXPECT_EQ(built->built->serial, 10U);
  EXPECT_EQ(built->source.file_bytes, std::string(kFile).size());
  EXPECT_NE(built->source.hash, 0U) << "a later edit of the same size and time is found by it";
  EXPECT_THAT(built->journal, IsEmpty());
  EXPECT_EQ(built->updated, 0U);
}

TEST_F(ZoneFileBuild, AnOpenFileIsReadWithoutItsPath) {
  write(kFile);
  dns::FileSource file;
  shm::test::must(file.open(path_));
  std::filesystem::rename(path_, path_ + ".moved");
  transaction_.emplace(store_.store().begin_private());
  auto built = build_zone(*transaction_, name("@"), path_, file);
  ASSERT_TRUE(built);
  EXPECT_EQ(built->built->record_count, 4U);
  EXPECT_NE(built->source.hash, 0U);
}

TEST_F(ZoneFileBuild, EachBadLineIsNamed) {
  write(std::string(kFile) + "one A 300.1.2.3\ntwo MX nothing\n");
  const auto lines = problems();
  EXPECT_THAT(lines, ElementsAre(StartsWith(path_ + ":6:"), StartsWith(path_ + ":7:")));
}

TEST_F(ZoneFileBuild, AMissingFileIsAProblemOfThePath) {
  const auto lines = problems();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr(path_));
}

/// The builder knows names only; the lines of the broken rule are looked up in a second reading.
TEST_F(ZoneFileBuild, ABrokenRuleIsNamedWithItsLines) {
  write(std::string(kFile) + "www CNAME elsewhere\n");
  EXPECT_THAT(problems(), Each(HasSubstr("example.zone:")));
  EXPECT_THAT(problems(), Contains(HasSubstr("www.example.: CNAME and other data")));
}

TEST_F(ZoneFileBuild, AFileWithoutASoaIsNoZone) {
  write("@ 300 NS ns1\n");
  EXPECT_THAT(problems(), Contains(HasSubstr("SOA")));
}

TEST_F(ZoneFileBuild, AFileLikeTheServedZoneHasNoChangeset) {
  write_served();
  auto compared = compare();
  ASSERT_TRUE(compared && *compared);
  EXPECT_THAT(changes(**compared), IsEmpty());
  EXPECT_FALSE((*compared)->soa.is_signed);
  EXPECT_NE((*compared)->source.hash, 0U);
}

TEST_F(ZoneFileBuild, AnEditIsTheChangesetBetweenFileAndZone) {
  write_served("added 60 A 192.0.2.77\n");
  auto compared = compare();
  ASSERT_TRUE(compared && *compared);
  EXPECT_THAT(changes(**compared), ElementsAre("+added.example."));
}

TEST_F(ZoneFileBuild, ABadFileIsNotCompared) {
  write_served("added 60 A 300.2.3.4\n");
  auto compared = compare();
  ASSERT_FALSE(compared);
  EXPECT_THAT(compared.error().lines, ElementsAre(HasSubstr("example.zone:11:")));
}

TEST_F(ZoneFileBuild, ABrokenRuleIsFoundWhenNamesAreCompared) {
  write_served("www 60 CNAME elsewhere\n");
  auto compared = compare();
  ASSERT_TRUE(compared && *compared);
  const auto made = (*compared)->comparison->changeset([](auto) { return UINT64_MAX; });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kInvalid);
}

}  // namespace zone_file_test
}  // namespace pando::manager

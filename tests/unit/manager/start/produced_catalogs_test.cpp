#include "manager/start/produced_catalogs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "config/files.h"

namespace pando::manager {
namespace produced_catalogs_test {

using ::testing::HasSubstr;
using ::testing::Not;

dns::Name name(const std::string& text) { return *dns::Name::from_text(text); }

class ProducedCatalogs : public ::testing::Test {
 protected:
  ProducedCatalogs() {
    char pattern[] = "/tmp/pando-catalogs-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    settings_.store.journal = folder_;
    config::Catalog catalog;
    catalog.zone = name("cat.test.");
    catalog.role = config::Catalog::Role::kProducer;
    settings_.catalogs = {catalog};
  }
  ~ProducedCatalogs() override { std::filesystem::remove_all(folder_); }

  void add(const std::string& zone, const std::string& catalog, const std::string& group = "") {
    config::ZoneOptions options;
    if (!catalog.empty()) options.catalog = name(catalog);
    options.catalog_group = group;
    ASSERT_TRUE(settings_.zones.add(name(zone), "f", settings_.zones.share_options(options)));
  }
  [[nodiscard]] std::string made() const {
    return catalog_text(settings_.catalogs[0], settings_.zones);
  }
  [[nodiscard]] std::string file() const {
    return config::read_regular_file(folder_ + "/catalogs/cat.test.zone").value();
  }

  std::string folder_;
  config::Settings settings_;
};

TEST_F(ProducedCatalogs, HaveTheRecordsOfRfc9432) {
  add("one.test.", "cat.test.");
  add("two.test.", "cat.test.", "a \"quoted\\ group");
  add("alone.test.", "");
  add("other.test.", "other-cat.test.");
  const std::string text = made();
  EXPECT_THAT(text, HasSubstr("$ORIGIN cat.test.\n@ 0 SOA invalid. invalid. "));
  EXPECT_THAT(text, HasSubstr("\n@ 0 NS invalid.\nversion 0 TXT \"2\"\n"));
  EXPECT_TRUE(std::regex_search(text, std::regex("\n[0-9a-f]{32}\\.zones 0 PTR one\\.test\\.\n")));
  std::smatch two;
  ASSERT_TRUE(std::regex_search(text, two, std::regex("\n([0-9a-f]{32})\\.zones 0 PTR two\\.test\\.\n")));
  EXPECT_THAT(text, HasSubstr("\ngroup." + two[1].str() +
                              ".zones 0 TXT \"a \\\"quoted\\\\ group\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("alone")));
  EXPECT_THAT(text, Not(HasSubstr("other")));
}

TEST_F(ProducedCatalogs, GiveEachZoneALabelThatDependsOnItsNameAlone) {
  std::set<std::string> labels;
  for (int i = 0; i < 2000; ++i) {
    config::ZoneTable table;
    config::ZoneOptions options;
    options.catalog = name("cat.test.");
    const std::uint32_t number = table.add_options(options);
    ASSERT_TRUE(table.add(name(fmt::format("Z{}.test.", i)), "f", number));
    const std::string text = catalog_text(settings_.catalogs[0], table);
    const std::size_t at = text.find(".zones 0 PTR");
    labels.insert(text.substr(at - 32, 32));
    config::ZoneTable lower;
    ASSERT_TRUE(lower.add(name(fmt::format("z{}.test.", i)), "g", lower.add_options(options)));
    EXPECT_THAT(catalog_text(settings_.catalogs[0], lower), HasSubstr(text.substr(at - 32, 32)));
  }
  EXPECT_EQ(labels.size(), 2000U);
}

TEST_F(ProducedCatalogs, AreWrittenOnceForEachChange) {
  add("one.test.", "cat.test.");
  make_missing_catalogs(settings_);
  EXPECT_EQ(file(), made());
  add("two.test.", "cat.test.");
  make_missing_catalogs(settings_);
  EXPECT_THAT(file(), Not(HasSubstr("two"))) << "a file that is there stays";
  auto written = write_catalogs(settings_);
  ASSERT_TRUE(written.status) << written.status.error().text;
  EXPECT_EQ(written.changed, std::vector<dns::Name>{name("cat.test.")});
  EXPECT_EQ(file(), made());
  written = write_catalogs(settings_);
  ASSERT_TRUE(written.status);
  EXPECT_TRUE(written.changed.empty());
}

TEST_F(ProducedCatalogs, AreWrittenThoughOneCannotBe) {
  for (const char* zone : {"a.test.", "z.test."}) {
    settings_.catalogs.push_back(settings_.catalogs[0]);
    settings_.catalogs.back().zone = name(zone);
  }
  std::filesystem::create_directories(folder_ + "/catalogs/a.test.zone/in-the-way");
  const auto written = write_catalogs(settings_);
  ASSERT_FALSE(written.status);
  EXPECT_THAT(written.status.error().text, HasSubstr("a.test.zone"));
  EXPECT_EQ(written.changed, (std::vector<dns::Name>{name("cat.test."), name("z.test.")}));
}

TEST_F(ProducedCatalogs, TellWhatCannotBeWritten) {
  std::ofstream(folder_ + "/catalogs") << "no folder";
  const auto written = write_catalogs(settings_);
  ASSERT_FALSE(written.status);
  EXPECT_THAT(written.status.error().text, HasSubstr("catalogs/cat.test.zone"));
  EXPECT_TRUE(written.changed.empty());
}

}  // namespace produced_catalogs_test
}  // namespace pando::manager

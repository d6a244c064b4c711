#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"

namespace pando::config {
namespace produced_catalogs_config_test {

const dns::Name kCatalog = *dns::Name::from_text("cat.test.");

const char* const kText =
    "server: {listen: [127.0.0.1]}\n"
    "store: {journal: /var/j}\n"
    "templates:\n"
    "  - {name: default, catalog: cat.test, catalog-group: most}\n"
    "  - {name: own, allow-transfer: [{address: 192.0.2.7}], allow-update: [{address: 192.0.2.8}]}\n"
    "catalogs: [{zone: Cat.test, role: producer, template: own}]\n"
    "zones:\n"
    "  - {name: a.test, file: a}\n"
    "  - {name: b.test, file: b, catalog-group: few}\n";

TEST(ProducedCatalog, IsAZoneWithAFileOfTheManagersAndTheSettingsOfItsTemplate) {
  const LoadResult loaded = load_text(kText, "/etc/pando/p.yaml");
  ASSERT_EQ(loaded.error_text(), "");
  const Settings& settings = loaded.settings;
  EXPECT_TRUE(settings.produces(kCatalog));
  EXPECT_FALSE(settings.produces(*dns::Name::from_text("a.test.")));
  const auto index = settings.zones.find(kCatalog);
  ASSERT_TRUE(index);
  EXPECT_EQ(settings.zones.path(*index), "/var/j/catalogs/cat.test.zone");
  const ZoneOptions& options = *settings.zones[*index].options;
  EXPECT_FALSE(options.is_secondary());
  EXPECT_EQ(options.allow_transfer.size(), 1U);
  EXPECT_EQ(options.allow_query, options.allow_transfer);
  EXPECT_TRUE(options.allow_update.empty()) << "members' settings decide what it has";
}

TEST(ProducedCatalog, IsNoMemberOfItselfByADefault) {
  std::string text = kText;
  text.replace(text.find(", template: own"), 15, "");
  const LoadResult loaded = load_text(text, "/etc/pando/p.yaml");
  ASSERT_EQ(loaded.error_text(), "");
  const ZoneTable& zones = loaded.settings.zones;
  EXPECT_FALSE(zones[*zones.find(kCatalog)].options->catalog);
  EXPECT_EQ(zones[*zones.find(kCatalog)].options->catalog_group, "");
}

TEST(ProducedCatalog, HasMembersByTemplateAndByZone) {
  const LoadResult loaded = load_text(kText, "/etc/pando/p.yaml");
  const ZoneTable& zones = loaded.settings.zones;
  const ZoneOptions& a = *zones[*zones.find(*dns::Name::from_text("a.test."))].options;
  const ZoneOptions& b = *zones[*zones.find(*dns::Name::from_text("b.test."))].options;
  EXPECT_EQ(a.catalog, kCatalog);
  EXPECT_EQ(a.catalog_group, "most");
  EXPECT_EQ(b.catalog, kCatalog);
  EXPECT_EQ(b.catalog_group, "few");
}

}  // namespace produced_catalogs_config_test
}  // namespace pando::config

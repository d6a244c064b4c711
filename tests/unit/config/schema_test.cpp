#include "config/schema.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "config/support.h"
#include "load_fixture.h"
#include "tests/support/trees.h"

namespace pando::config {
namespace schema_test {

struct DocumentedKey {
  std::string applies;
  bool unsupported = false;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    const auto last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

/// Rows of the form | `key` … | type | default | applies | meaning |.
std::map<std::string, DocumentedKey> documented_keys() {
  std::map<std::string, DocumentedKey> keys;
  std::ifstream file(pando::tests::source_path("/docs/reference/configuration.md"));
  for (std::string line; std::getline(file, line);) {
    const auto cells = cells_of(line);
    if (cells.size() != 6 || !cells[1].starts_with('`')) continue;
    const auto end = cells[1].find('`', 1);
    const std::string key = cells[1].substr(1, end - 1);
    EXPECT_FALSE(keys.contains(key)) << key << " is documented twice";
    keys[key] = {cells[4], cells[1].find("✗") != std::string::npos};
  }
  return keys;
}

TEST(Documentation, DescribesEveryKeyOfTheSchemaAndNoOther) {
  auto documented = documented_keys();
  for (const KeyInfo& key : schema()) {
    ASSERT_TRUE(documented.contains(key.path)) << key.path << " is not documented";
    EXPECT_EQ(documented[key.path].applies, key.apply == Apply::kLive ? "live" : "restart")
        << key.path;
    documented.erase(key.path);
  }
  for (const auto& [key, ignored] : documented) ADD_FAILURE() << key << " is not in the schema";
}

TEST(Documentation, MarksTheKeysThatAreNotSupportedYet) {
  for (const auto& [key, row] : documented_keys())
    EXPECT_EQ(row.unsupported, support_of(key) != Support::kFull) << key;
}

TEST(Schema, ListsEachKeyOnce) {
  std::set<std::string> seen;
  for (const KeyInfo& key : schema()) EXPECT_TRUE(seen.insert(key.path).second) << key.path;
  EXPECT_GT(seen.size(), 90U);
}

TEST(Schema, HasEveryKeyThatSupportSpeaksOf) {
  std::set<std::string, std::less<>> known;
  for (const KeyInfo& key : schema()) known.insert(key.path);
  for (const NotYet& row : kNotYet) EXPECT_TRUE(known.contains(row.path)) << row.path;
}

}  // namespace schema_test
}  // namespace pando::config

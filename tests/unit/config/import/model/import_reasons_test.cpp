#include "config/import/model/import_reasons.h"

#include <fstream>

#include "tests/support/trees.h"
#include "tests/unit/config/import/import_fixture.h"

namespace pando::config {
namespace import_reasons_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// Configurations with one setting in each place where it may stand.
std::vector<std::string> places_of(ImportKind kind, const std::string& word) {
  switch (kind) {
    case ImportKind::kBind:
      return {fmt::format("options {{ {} x; }};", word), fmt::format("{} x {{ }};", word),
              fmt::format("zone a {{ type primary; file \"/a\"; {} x; }};", word)};
    case ImportKind::kNsd:
      return {fmt::format("server:\n  {}: yes\n", word), fmt::format("{}:\n  name: x\n", word),
              fmt::format("zone:\n  name: a\n  zonefile: /a\n  {}: x\n", word)};
    case ImportKind::kKnot:
      return {fmt::format("server:\n    {}: x\n", word), fmt::format("{}:\n    id: x\n", word),
              fmt::format("zone:\n  - domain: a\n    {}: x\n", word),
              fmt::format("zone:\n  - domain: a\n    module: {}\n", word)};
    default:
      return {fmt::format("{}=x\n", word)};
  }
}

/// Whether some place of the setting has a reason of its own, or is translated.
bool is_known(ImportKind kind, const std::string& word) {
  for (const std::string& text : places_of(kind, word)) {
    const auto outcome = import_text(text, "/x.conf", {.kind = kind, .with_includes = false});
    if (!outcome) continue;
    const auto is_unknown = [](const Omission& omission) {
      return omission.reason == "has no counterpart here";
    };
    if (std::ranges::none_of(outcome->omissions, is_unknown)) return true;
  }
  return false;
}

TEST(ImportReasons, EachSettingOfThePeersHasOneOfItsOwn) {
  std::ifstream file(pando::tests::source_path("/tests/data/peer_settings.txt"));
  std::size_t settings = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto space = line.find(' ');
    const auto kind = guess_import_kind(line.substr(0, space), "");
    ASSERT_TRUE(kind) << line;
    EXPECT_TRUE(is_known(*kind, line.substr(space + 1))) << line;
    ++settings;
  }
  EXPECT_GT(settings, 700U);
}

TEST(ImportReasons, ASettingThatNobodyKnowsChangesAnswers) {
  for (const auto& reason : {named_reason("novelty"), nsd_reason("novelty"), knot_reason("novelty"),
                             pdns_reason("novelty")}) {
    EXPECT_EQ(reason.text, "has no counterpart here");
    EXPECT_EQ(reason.effect, ImportEffect::kAnswers);
  }
}

TEST(ImportReasons, ASwitchThatIsOffIsNotMissed) {
  const auto result = imported(ImportKind::kPdns,
                               "launch=bind\nbind-config=\ndnsupdate=no\n"
                               "enable-lua-records=off\nviews=yes\n");
  EXPECT_THAT(result.changes(), Not(HasSubstr("dnsupdate")));
  EXPECT_THAT(result.changes(), Not(HasSubstr("enable-lua-records")));
  EXPECT_THAT(result.changes(), HasSubstr("views: views are not there"));
}

}  // namespace import_reasons_test
}  // namespace pando::config

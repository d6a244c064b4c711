#include "tests/unit/config/import/import_fixture.h"
#include "tests/unit/config/load_fixture.h"

namespace pando::config {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PdnsImport, TakesTheZonesOfTheBindBackend) {
  const TemporaryFolder folder;
  folder.write("named.conf",
               "options { directory \"/zones\"; };\n"
               "zone a { type master; file \"a.zone\"; allow-transfer { any; }; };\n"
               "zone b { type slave; masters { 192.0.2.9; }; file \"b\"; };\n");
  folder.write("conf.d/more.conf", "allow-axfr-ips+=198.51.100.0/24\n");
  const std::string path = folder.write(
      "pdns.conf", fmt::format("launch=bind\nbind-config={0}/named.conf\ninclude-dir={0}/conf.d\n"
                               "local-address=192.0.2.1, [::1]:5300 # two\nlocal-port=54\n"
                               "allow-axfr-ips=192.0.2.0/24\nprimary=yes\n"
                               "also-notify=192.0.2.7:55\n"
                               "api-key=x\n",
                               folder.path()));
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  EXPECT_EQ(outcome->kind, ImportKind::kPdns);
  const Imported result = load_imported(std::move(*outcome));
  EXPECT_EQ(result.file("a"), "/zones/a.zone");
  EXPECT_THAT(result.settings.server.listen,
              ElementsAre(*Endpoint::from_text("192.0.2.1@54"), *Endpoint::from_text("::1@5300")));
  EXPECT_THAT(rule_words(result.options("a").allow_transfer),
              ElementsAre("allow 192.0.2.0/24", "allow 198.51.100.0/24"));
  EXPECT_THAT(result.options("a").notify, ElementsAre("192.0.2.7@55"));
  EXPECT_THAT(result.options("b").primaries, ElementsAre("192.0.2.9"));
  EXPECT_THAT(result.report(), HasSubstr("api-key: pando-http has an API of its own"));
}

TEST(PdnsImport, LinesGoOnBehindABackslashAndCommentsBeginBehindABlank) {
  const auto result = imported(ImportKind::kPdns,
                               "local-address=192.0.2.1,\\\n   192.0.2.2, \\ \n192.0.2.3\n"
                               "server-id=a#b # c\n  # version-string=no\nversion-string=v#\n"
                               "bad-one=1\n");
  EXPECT_THAT(result.settings.server.listen,
              ElementsAre(*Endpoint::from_text("192.0.2.1"), *Endpoint::from_text("192.0.2.2"),
                          *Endpoint::from_text("192.0.2.3")));
  EXPECT_EQ(result.settings.server.identity, "a#b");
  EXPECT_EQ(result.settings.server.version, "v#");
  EXPECT_THAT(result.report(), HasSubstr("x.conf:7: bad-one"));
}

TEST(PdnsImport, NativeZonesAndThoseWithoutATypeArePrimary) {
  const TemporaryFolder folder;
  folder.write("named.conf",
               "zone a { type native; file \"/a\"; };\nzone b { file \"/b\"; };\n"
               "zone c { type forward; file \"/c\"; };\n");
  const std::string path =
      folder.write("pdns.conf", fmt::format("bind-config={}/named.conf\n", folder.path()));
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  const Imported result = load_imported(std::move(*outcome));
  EXPECT_EQ(result.file("a"), "/a");
  EXPECT_EQ(result.file("b"), "/b");
  EXPECT_THAT(result.report(), HasSubstr("zone c: zones of type forward are not served"));
  EXPECT_THAT(result.report(), Not(HasSubstr("allow-transfer")));
}

TEST(PdnsImport, AFolderThatIsIncludedMeansItsFilesOfConfiguration) {
  const TemporaryFolder folder;
  folder.write("conf.d/a.conf", "server-id=a\n");
  folder.write("conf.d/B.conf", "server-id=b\n");
  folder.write("conf.d/README", "not a setting: at all\n");
  folder.write("conf.d/c.conf.bak", "is no setting\n");
  folder.write("conf.d/.d.conf", "is no setting\n");
  const std::string path =
      folder.write("pdns.conf", fmt::format("include-dir={}/conf.d\n", folder.path()));
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  EXPECT_EQ(load_imported(std::move(*outcome)).settings.server.identity, "b");
}

TEST(PdnsImport, TellsHowZonesLeaveADatabase) {
  const auto result = imported(ImportKind::kPdns, "launch=gmysql\ngmysql-host=db\n");
  EXPECT_THAT(result.report(), HasSubstr("/etc/x/x.conf:1: launch=gmysql: its zones are in a "
                                         "database: 'pdnsutil list-all-zones'"));
}

TEST(PdnsImport, TellsThatProgramsHaveNoZones) {
  const auto result = imported(ImportKind::kPdns, "launch=pipe:a,gmysql:b,geoip\n");
  EXPECT_THAT(result.report(), HasSubstr("launch=pipe:a: its answers come from a program"));
  EXPECT_THAT(result.report(), HasSubstr("launch=gmysql:b: its zones are in a database"));
  EXPECT_THAT(result.report(), HasSubstr("launch=geoip: answers by the client's place"));
}

TEST(PdnsImport, FaultsOfTheSyntaxHaveFileAndLine) {
  EXPECT_EQ(import_error(ImportKind::kPdns, "# c\nlaunch bind=\n"),
            "/x.conf:2: is not 'key=value'");
}

TEST(Import, GuessesTheKind) {
  EXPECT_EQ(guess_import_kind("/etc/bind/named.conf.local", ""), ImportKind::kBind);
  EXPECT_EQ(guess_import_kind("x", "zone a { type primary; };"), ImportKind::kBind);
  EXPECT_EQ(guess_import_kind("x", "server:\n ip-address: ::1\n"), ImportKind::kNsd);
  EXPECT_EQ(guess_import_kind("x", "zone:\n - domain: a\n"), ImportKind::kKnot);
  EXPECT_EQ(guess_import_kind("x", "launch=bind\n"), ImportKind::kPdns);
  EXPECT_EQ(guess_import_kind("x", "hello"), std::nullopt);
}

TEST(Import, FollowsIncludesAndReportsMissingOnes) {
  const TemporaryFolder folder;
  folder.write("zones/a.conf", "zone a { type primary; file \"/a\"; };");
  folder.write("zones/b.conf", "zone b { type primary; file \"/b\"; };");
  const std::string path =
      folder.write("named.conf", "include \"zones/*.conf\";\ninclude \"missing\";\n");
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  EXPECT_EQ(outcome->zones, 2U);
  ASSERT_EQ(outcome->omissions.size(), 3U);  // and what is unlike BIND without being written
  EXPECT_EQ(outcome->omissions[0].statement, "include missing");
  EXPECT_EQ(outcome->omissions[0].line, 2);
}

TEST(Import, PatternsOfIncludesAreBounded) {
  const TemporaryFolder folder;
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "*/";
  std::string flat;
  for (int i = 0; i < 12; ++i) flat += "/*/..";
  std::string below = "*";
  while (below.size() < 4000) below += "/a";
  const std::string path =
      folder.write("named.conf", fmt::format("include \"{}\";\ninclude \"{}/x\";\ninclude \"{}\";\n"
                                             "include \"*/*/*/[a].conf\";\ninclude \"{}\";\n",
                                             deep, flat, below, std::string(5000, 'x')));
  folder.write("b/c/d/a.conf", "zone a { type primary; file \"/a\"; };");
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  const Imported result = load_imported(std::move(*outcome));
  EXPECT_EQ(result.file("a"), "/a");
  for (const int line : {1, 2, 3, 5})
    EXPECT_THAT(result.report(), HasSubstr(fmt::format("named.conf:{}: include ", line)));
  EXPECT_THAT(result.report(), HasSubstr("more than 4 wildcards"));
}

TEST(Import, ListsABoundedNumberOfFiles) {
  const TemporaryFolder folder;
  for (int i = 0; i < 9; ++i)
    folder.write(fmt::format("{}.conf", i), fmt::format("zone z{0} {{ type primary; }};", i));
  ImportFiles files(true, 20);
  ImportReport report;
  const auto at = SourceLine{std::make_shared<const std::string>(folder.path() + "/x"), 1};
  int visited = 0;
  const auto visit = [&](const ImportText&) {
    ++visited;
    return Status();
  };
  ASSERT_TRUE(files.include(at, "*.conf", report, visit));
  EXPECT_EQ(visited, 9);
  ASSERT_TRUE(files.include(at, "*.conf", report, visit));
  ASSERT_TRUE(files.include(at, "", report, visit));
  EXPECT_EQ(visited, 9);
  ASSERT_GE(report.omissions().size(), 1U);
  EXPECT_EQ(report.omissions().front().statement, "include *.conf");
  EXPECT_THAT(report.omissions().front().reason, HasSubstr("more than 20 files"));
}

TEST(Import, NamesACompressedFile) {
  for (const std::string_view magic : {"\x1F\x8B\x08", "BZh9", "\3757zXZ", "\x28\xB5\x2F\xFD"})
    for (const ImportKind kind : {ImportKind::kPdnsDump, ImportKind::kBind})
      EXPECT_EQ(import_error(kind, magic), "/x.conf: is compressed: unpack it first");
}

TEST(Import, IncludedFilesOfBindMayStandBelowItsDirectory) {
  const TemporaryFolder folder;
  folder.write("var/a.conf", "zone a { type primary; file \"a\"; };");
  const std::string path = folder.write(
      "named.conf",
      fmt::format("options {{ directory \"{}/var\"; }};\ninclude \"a.conf\";\n", folder.path()));
  auto outcome = import_configuration(path, {});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  EXPECT_EQ(load_imported(std::move(*outcome)).file("a"), folder.path() + "/var/a");
}

TEST(Import, RefusesAFileThatIncludesItself) {
  const TemporaryFolder folder;
  const std::string path = folder.write("named.conf", "include \"named.conf\";\n");
  const auto outcome = import_configuration(path, {});
  ASSERT_FALSE(outcome.has_value());
  EXPECT_THAT(outcome.error().text, HasSubstr("named.conf:1: include named.conf: more than 16"));
}

TEST(Import, KeyFilesHaveSafeNames) {
  const auto result = imported(ImportKind::kBind,
                               "key \"../../etc/x\" { algorithm hmac-sha256; secret \"MTIz\"; };\n"
                               "key \"A.b\" { algorithm hmac-sha256; secret \"MTIz\"; };\n"
                               "key \"bad\" { algorithm nonsense; secret \"MTIz\"; };\n",
                               false);
  for (const SecretFile& file : result.outcome.secrets) {
    EXPECT_EQ(file.name.find('/'), std::string::npos);
    EXPECT_NE(file.name.front(), '.');
  }
  EXPECT_THAT(result.report(), HasSubstr(":3: key bad: "));
}

}  // namespace pando::config

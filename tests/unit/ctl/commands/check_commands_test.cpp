#include "ctl/commands/check_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace pando::ctl {
namespace check_commands_test {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Checks : public ::testing::Test {
 protected:
  Checks() {
    char pattern[] = "/tmp/pando-ctl-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    ::chmod(pattern, 0755);  // for the manager's user, where this host knows it
    ::setenv("TMPDIR", pattern, 1);
  }
  ~Checks() override {
    ::unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }

  std::string write(const std::string& name, std::string_view text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  int check_zone_text(std::string_view text, bool as_json = false) {
    const std::string path = write("zone", text);
    return check_zone("example.com", path, {out_, err_, as_json});
  }

  std::string folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

constexpr std::string_view kZone =
    "$TTL 3600\n"
    "@ SOA ns hostmaster 7 3600 900 604800 300\n"
    "@ NS ns\n"
    "ns A 192.0.2.53\n";

TEST_F(Checks, AGoodConfigurationPasses) {
  write("f", kZone);
  const auto path = write("p.yaml", "zones: [{name: a, file: f}]\n");
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
  EXPECT_EQ(out_.str(), path + ": ok, 1 zone\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(Checks, ProblemsOfTheConfigurationAreListed) {
  const auto path = write("p.yaml", "a: 1\nb: 2\n");
  EXPECT_EQ(check_config(path, {out_, err_}), kFailed);
  EXPECT_EQ(err_.str(), path + ":1: a: unknown key\n" + path + ":2: b: unknown key\n");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(Checks, FilesAndAddressesThatAreNotThereAreWarnings) {
  const auto path = write("p.yaml",
                          "server: {listen: [127.0.0.1, 192.0.2.199]}\n"
                          "remotes: [{name: up, address: [192.0.2.1]}]\n"
                          "zones:\n- {name: a, file: absent}\n"
                          "- {name: b, file: copy, primaries: [up]}\n");
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("192.0.2.199 is no address of this host"));
  EXPECT_THAT(err_.str(), HasSubstr("zone a.: cannot read " + folder_ + "/absent: No such file"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("127.0.0.1")));
  EXPECT_THAT(err_.str(), Not(HasSubstr("copy")));
}

TEST_F(Checks, ProgramsThatCannotJudgeZonesAreErrors) {
  write("f", kZone);
  const auto program = write("check", "#!/bin/sh\n");
  const auto path =
      write("p.yaml", fmt::format("server: {{user: '{}'}}\n"
                                  "templates: [{{name: judged, verify-command: [{}, -v]}}]\n"
                                  "zones:\n- {{name: a, file: f, template: judged}}\n"
                                  "- {{name: b, file: f, template: judged}}\n",
                                  ::geteuid(), program));
  EXPECT_EQ(check_config(path, {out_, err_}), kFailed);
  EXPECT_EQ(err_.str(), fmt::format("verify-command: {} is not executable\n", program));
  ::chmod(program.c_str(), 0757);
  EXPECT_EQ(check_config(path, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("others can write"));
  ::chmod(program.c_str(), 0755);
  ::chmod(folder_.c_str(), 0777);
  EXPECT_EQ(check_config(path, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("others can replace " + program + ": chmod o-w " + folder_));
  ::chmod(folder_.c_str(), 0755);
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
}

TEST_F(Checks, AProgramOfAStrangerIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  write("f", kZone);
  const auto program = write("check", "#!/bin/sh\n");
  const auto path =
      write("p.yaml", fmt::format("server: {{user: root}}\nzones:\n- {{name: a, file: f, "
                                  "verify-command: [{}, -v]}}\n",
                                  program));
  ::chmod(program.c_str(), 0755);
  ASSERT_EQ(::chown(program.c_str(), 4711, 4711), 0);
  EXPECT_EQ(check_config(path, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("belongs to neither root nor the manager's user"));
}

TEST_F(Checks, ProgramsThatTheWorkersUserMayNotRunAreWarnings) {
  write("f", kZone);
  const auto program = write("check", "#!/bin/sh\n");
  ::chmod(program.c_str(), 0700);
  const auto path = write("p.yaml", fmt::format("server: {{user: '{}', worker-user: '4711'}}\n"
                                                "zones:\n- {{name: a, file: f, "
                                                "verify-command: [{}, -v]}}\n",
                                                ::geteuid(), program));
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
  EXPECT_THAT(err_.str(),
              HasSubstr(fmt::format("warning: verify-command: {} cannot be run: its user may not ",
                                    program)));
  EXPECT_THAT(err_.str(), HasSubstr("(user 4711)\n"));
}

/// A configuration whose manager is a user that may read less than this process.
class ChecksOfRoot : public Checks {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
    write("f", kZone);
    ::chmod(write("k", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAwMDE=\n").c_str(), 0600);
    give("k", kUser);
    path_ = write("p.yaml", fmt::format("server: {{user: '{}'}}\n"
                                        "keys: [{{name: a, secret-file: k}}]\n"
                                        "zones: [{{name: a, file: f}}]\n",
                                        kUser));
  }
  void give(const std::string& name, uid_t user) const {
    ASSERT_EQ(::chown((folder_ + "/" + name).c_str(), user, 0), 0);
  }
  static constexpr uid_t kUser = 4711;
  std::string path_;
};

TEST_F(ChecksOfRoot, FilesThatTheManagersUserCanReadAreFine) {
  EXPECT_EQ(check_config(path_, {out_, err_}), kDone) << err_.str();
  EXPECT_EQ(::geteuid(), 0U);
}

TEST_F(ChecksOfRoot, ZonesAreReadWhereRootsFolderForTemporaryFilesIsClosed) {
  ::chmod(folder_.c_str(), 0755);  // TMPDIR: the manager's user cannot write there
  EXPECT_EQ(check_config(path_, {out_, err_}, true), kDone) << err_.str();
}

TEST_F(ChecksOfRoot, ASecretThatTheManagersUserCannotReadIsAnError) {
  give("k", 0);
  EXPECT_EQ(check_config(path_, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr(folder_ + "/k"));
  EXPECT_THAT(err_.str(), HasSubstr("(user 4711)"));
  EXPECT_EQ(::geteuid(), 0U) << "the process is root again";
}

TEST_F(ChecksOfRoot, AZoneFileThatTheManagersUserCannotReadIsAnError) {
  ::chmod((folder_ + "/f").c_str(), 0600);
  for (const bool zones : {false, true}) {
    EXPECT_EQ(check_config(path_, {out_, err_}, zones), kFailed);
    EXPECT_THAT(err_.str(), HasSubstr("zone a.: user 4711 cannot read " + folder_ + "/f: "));
    err_.str("");
  }
  ::unlink((folder_ + "/f").c_str());
  EXPECT_EQ(check_config(path_, {out_, err_}), kDone) << "a file may come later";
}

TEST_F(ChecksOfRoot, AConfigurationThatTheManagersUserCannotReadIsAnError) {
  ::chmod(path_.c_str(), 0600);
  EXPECT_EQ(check_config(path_, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr(path_));
  EXPECT_THAT(err_.str(), HasSubstr("(user 4711)"));
}

TEST_F(ChecksOfRoot, AJournalThatTheManagersUserCannotWriteIsAnError) {
  std::filesystem::create_directory(folder_ + "/journal");
  const auto path =
      write("q.yaml", "server: {user: '4711'}\nstore: {journal: journal}\n");
  EXPECT_EQ(check_config(path, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("store.journal: user 4711 cannot write to"));
  give("journal", kUser);
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
}

TEST_F(Checks, AllZoneFilesAreReadIfAskedFor) {
  write("good", kZone);
  write("bad", "$TTL 3600\n@ SOA ns hostmaster 7 3600 900 604800 300\n@ A nonsense\n");
  const auto path = write("p.yaml",
                          "zones:\n- {name: good.test, file: good}\n"
                          "- {name: bad.test, file: bad}\n");
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
  EXPECT_EQ(check_config(path, {out_, err_}, true), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("zone bad.test.: " + folder_ + "/bad:3"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("good.test")));
}

TEST_F(Checks, WarningsOfTheConfigurationDoNotFail) {
  const auto path = write("p.yaml", "keys: [{name: a, secret: Zm9v}]\n");
  EXPECT_EQ(check_config(path, {out_, err_}), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("warning: "));
}

TEST_F(Checks, TheConfigurationsVerdictIsAlsoJson) {
  EXPECT_EQ(check_config(write("p.yaml", "a: 1\n"), {out_, err_, true}), kFailed);
  const json verdict = json::parse(out_.str());
  EXPECT_EQ(verdict["ok"], false);
  EXPECT_EQ(verdict["errors"].size(), 1U);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(Checks, AGoodZonePasses) {
  EXPECT_EQ(check_zone_text(kZone), kDone) << err_.str();
  EXPECT_EQ(out_.str(), "example.com.: ok, serial 7, 3 records at 2 names\n");
}

/// Looks, when the verdict is written, for what the check has put beside its file.
class Look : public std::stringbuf {
 public:
  explicit Look(std::string folder) : folder_(std::move(folder)) {}
  std::size_t files = 0;

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const auto entries = std::filesystem::directory_iterator(folder_);
    files = static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
    return std::stringbuf::xsputn(bytes, count);
  }

 private:
  std::string folder_;
};

TEST_F(Checks, AProcessThatIsKilledLeavesNoFileBehind) {
  const std::string path = write("zone", kZone);
  Look look(folder_);
  std::ostream out(&look);
  EXPECT_EQ(check_zone("example.com", path, {out, err_}), kDone) << err_.str();
  EXPECT_EQ(look.files, 1U) << "the zone file";
}

TEST_F(Checks, SyntaxErrorsOfAZoneHaveALine) {
  EXPECT_EQ(check_zone_text(std::string(kZone) + "x A 192.0.2.999\n"), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr(folder_ + "/zone:5: "));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(Checks, ARecordThatNoMessageCanHoldHasALine) {
  const std::string rdata = " TYPE65280 \\# 65000 " + std::string(130000, '0') + "\n";
  EXPECT_EQ(check_zone_text(std::string(kZone) + "x" + rdata), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr(folder_ + "/zone:5: "));
  EXPECT_THAT(err_.str(), HasSubstr("x.example.com. TYPE65280: record of 65025 octets"));
}

TEST_F(Checks, RecordsOutsideTheZoneAreErrors) {
  EXPECT_EQ(check_zone_text(std::string(kZone) + "other.example. A 192.0.2.1\n"), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr(":5: "));
}

TEST_F(Checks, RulesOfTheWholeZoneAreChecked) {
  EXPECT_EQ(check_zone_text("$TTL 1\n@ NS ns\n"), kFailed) << "no SOA";
  EXPECT_EQ(check_zone_text(std::string(kZone) + "x CNAME ns\nx A 192.0.2.1\n"), kFailed)
      << "CNAME and other data";
}

TEST_F(Checks, RulesAboutRecordsOfOneNameAreBrokenInTheLastLineOfThem) {
  EXPECT_EQ(check_zone_text(std::string(kZone) +
                            "x CNAME ns\ny TXT a\nX A 192.0.2.1\n"  // line 7
                            "x CNAME NS\nx RRSIG CNAME 8 3 1 2 1 1 @ AQ==\n"
                            "z DNAME a\nz DNAME a\nz DNAME b\n"
                            "@ SOA ns host 9 1 1 1 1\ny.z SOA ns host 9 1 1 1 1\ny CNAME ns\n"),
            kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("zone:7: x.example.com.: CNAME and other data\n"));
  EXPECT_THAT(err_.str(), HasSubstr("zone:12: z.example.com.: more than one DNAME record\n"));
  EXPECT_THAT(err_.str(), HasSubstr("zone:13: example.com.: 2 SOA records, one is needed\n"));
  EXPECT_THAT(err_.str(), HasSubstr("zone:14: y.z.example.com.: SOA below the apex\n"));
  EXPECT_THAT(err_.str(), HasSubstr("zone:15: y.example.com.: CNAME and other data\n"));
}

TEST_F(Checks, TheZonesVerdictIsAlsoJson) {
  EXPECT_EQ(check_zone_text(kZone, true), kDone);
  const json verdict = json::parse(out_.str());
  EXPECT_EQ(verdict["ok"], true);
  EXPECT_EQ(verdict["serial"], 7);
  EXPECT_EQ(verdict["records"], 3);
}

TEST_F(Checks, WhatIsProbablyNotMeantIsAWarning) {
  const std::pair<const char*, const char*> cases[] = {
      {"@ MX 10 mail", "example.com. MX mail.example.com. has no address"},
      {"@ MX 10 www\nwww CNAME ns", "example.com. MX www.example.com. is an alias"},
      {"_x._tcp SRV 0 0 1 srv", "_x._tcp.example.com. SRV srv.example.com. has no address"},
      {"www CNAME nowhere", "www.example.com. CNAME nowhere.example.com. has no records"},
      {"sub NS ns.sub", "sub.example.com. NS ns.sub.example.com. needs glue"},
      {"sub NS ns\nx.sub TXT hidden",
       "x.sub.example.com. TXT is hidden by the delegation at sub.example.com."},
      {"sub DNAME example.net.\nx.sub A 192.0.2.1",
       "x.sub.example.com. A is hidden by the DNAME at sub.example.com."},
      {"@ NSEC3PARAM 1 0 1 -", "example.com. NSEC3PARAM has 1 iterations, RFC 9276 wants 0: each"},
      {"@ NSEC3PARAM 1 0 101 -",
       "example.com. NSEC3PARAM has 101 iterations, RFC 9276 wants 0: resolvers"},
      {"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 2 0 0 - 2t7b4g4vsa5smi47 A",
       "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example.com. NSEC3 has a next hash of 10 octets"},
  };
  for (const auto& [text, warning] : cases) {
    err_.str("");
    EXPECT_EQ(check_zone_text(std::string(kZone) + text + "\n"), kDone) << text;
    const std::string said = err_.str();
    EXPECT_THAT(said, ::testing::StartsWith(std::string("warning: ") + warning)) << text;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

TEST_F(Checks, WhatIsRightIsNoWarning) {
  for (const char* text :
       {"@ MX 10 mail\nmail A 192.0.2.1", "@ MX 10 mail\nmail AAAA ::1", "@ MX 0 .",
        "@ MX 10 mail.other.example.", "*.w A 192.0.2.1\n@ MX 10 a.w", "www CNAME ns",
        "sub NS ns.sub\nns.sub A 192.0.2.1", "sub NS ns.other\nother NS ns", "sub NS ns",
        "@ MX 10 mail.sub\nsub NS ns", "www CNAME a.w\n*.w TXT x", "@ NSEC3PARAM 1 0 0 -"}) {
    EXPECT_EQ(check_zone_text(std::string(kZone) + text + "\n"), kDone) << text;
    EXPECT_EQ(err_.str(), "") << text;
  }
}

TEST_F(Checks, TheNumberOfWarningsIsBounded) {
  std::string zone(kZone);
  for (int i = 0; i < 300; ++i) zone += "a" + std::to_string(i) + " CNAME nowhere\n";
  EXPECT_EQ(check_zone_text(zone, true), kDone);
  EXPECT_EQ(json::parse(out_.str())["warnings"].size(), 100U);
}

TEST_F(Checks, AMissingFileIsAnError) {
  EXPECT_EQ(check_zone("example.com", folder_ + "/none", {out_, err_}), kFailed);
  EXPECT_NE(err_.str(), "");
}

TEST_F(Checks, ABadZoneNameIsAUsageError) {
  EXPECT_EQ(check_zone("a..b", folder_ + "/none", {out_, err_}), kUsage);
}

TEST_F(Checks, NothingIsLeftBehind) {
  check_zone_text(kZone);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1U) << "the zone file itself";
}

}  // namespace check_commands_test
}  // namespace pando::ctl

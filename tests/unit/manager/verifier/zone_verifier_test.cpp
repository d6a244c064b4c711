#include "manager/verifier/zone_verifier.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "base/progress.h"
#include "manager/verifier/verifier_process.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace zone_verifier_test {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::ZoneStore;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// `/proc/self/exe --verifier` is this test program, too: it is that process then, and no test.
const bool kIsVerifier = [] {
  const std::string line = text_of("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1)
    words.emplace_back(line.c_str() + at);
  if (words.size() > 1 && words[1] == "--verifier")
    std::_Exit(run_verifier({words.begin() + 2, words.end()}));
  return false;
}();

class Verifier : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    std::string folder = ::testing::TempDir() + "pando-verifier-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// A shell script; its path.
  std::string script(const std::string& body) {
    const std::string path = folder_ + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }
  std::optional<std::string> refusal(const std::string& body, milliseconds time = kLong) {
    return refusal_of({script(body)}, time);
  }
  std::optional<std::string> refusal_of(std::vector<std::string> words, milliseconds time = kLong) {
    config::ZoneOptions options;
    options.verify_command = std::move(words);
    options.verify_time = time;
    return verifiers_.of(options)->refusal(store_.zone());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// No test waits for it.
  static constexpr milliseconds kLong{600'000};
  /// Of programs that never give a verdict.
  static constexpr milliseconds kShort{300};

  std::string folder_;
  ZoneStore store_;
  ZoneVerifiers verifiers_{{}};
};

TEST_F(Verifier, AcceptsAZoneWithStatusZero) {
  EXPECT_EQ(refusal("exit 0"), std::nullopt) << "without reading";
  EXPECT_EQ(refusal("cat >/dev/null"), std::nullopt);
}

TEST_F(Verifier, IsGivenTheZoneItsNameAndItsSerial) {
  EXPECT_THAT(
      *refusal("env | sort | tr '\\n' ' ' >&2; exit 1"),
      ::testing::EndsWith("program: exit status 1: LC_ALL=C PATH=/usr/local/sbin:"
                          "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PWD=/ "
                          "VERIFY_SERIAL=10 VERIFY_ZONE=example. VERIFY_ZONE_ON_STDIN=yes "));
  EXPECT_EQ(refusal("read line; case \"$line\" in 'example.'*SOA*) ;; *) exit 1;; esac\n"
                    "[ $(cat | wc -l) = 9 ]"),
            std::nullopt);
  EXPECT_EQ(refusal("[ $(grep -c . /dev/stdin) = 10 ]"), std::nullopt) << "opened by its path";
}

TEST_F(Verifier, GetsItsArgumentsAsTheyAre) {
  const std::string program = script("[ \"$#-$1-$2\" = '2-a b-$HOME;' ]");
  EXPECT_EQ(refusal_of({program, "a b", "$HOME;"}), std::nullopt);
}

TEST_F(Verifier, RefusesWithTheFirstLineOfItsErrors) {
  EXPECT_EQ(refusal("cat >/dev/null; echo out; echo 'no www' >&2; echo more >&2; exit 3"),
            "refused by " + folder_ + "/program: exit status 3: no www");
  EXPECT_THAT(*refusal("echo 'zone has no NS'; exit 1"), HasSubstr("status 1: zone has no NS"));
  EXPECT_THAT(*refusal("exit 9"), ::testing::EndsWith("exit status 9"));
  EXPECT_THAT(*refusal("kill -TERM $$"), ::testing::EndsWith("ended by signal 15"));
  EXPECT_THAT(*refusal("printf 'a\\033[1mb\\tc\\n' >&2; exit 1"), ::testing::EndsWith(": a[1mbc"));
}

TEST_F(Verifier, ThatDoesNotReadNeitherHoldsNorEndsTheManager) {
  std::vector<std::string> lines = testing::kBasicZone;
  for (int i = 0; i < 5000; ++i) lines.push_back(fmt::format("n{} 300 A 192.0.2.1", i));
  store_.put(lines);  // more than a pipe holds
  EXPECT_EQ(refusal("exit 0"), std::nullopt);
  EXPECT_EQ(refusal("exec <&-; exit 0"), std::nullopt);
  EXPECT_THAT(*refusal("sleep 600", kShort), HasSubstr("no verdict within"));
  EXPECT_EQ(refusal("[ $(cat | wc -l) = 5010 ]"), std::nullopt);
}

TEST_F(Verifier, HasItsTime) {
  EXPECT_THAT(*refusal("cat >/dev/null; sleep 600", kShort), HasSubstr("no verdict within 0 s"));
}

TEST_F(Verifier, ThatPrintsEndlesslyIsEndedByItsTime) {
  EXPECT_THAT(*refusal("exec yes", kShort), HasSubstr("no verdict within"));
  EXPECT_THAT(*refusal("exec yes >&2", kShort), HasSubstr("no verdict within"));
  EXPECT_EQ(refusal("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2"), std::nullopt);
}

TEST_F(Verifier, LeavesNoProcessBehind) {
  // The parents of these have ended, one has a session of its own, and they keep the pipes open.
  const auto refused = refusal(
      "sleep 600 & one=$!\n"
      "setsid sh -c 'sleep 600 & echo $! >&2' 2>&1 | { read two\n"
      "echo $one $two >&2; }\nexit 1");
  const std::string told = refused.value_or("");
  ASSERT_THAT(told, HasSubstr("exit status 1: "));
  std::istringstream pids(told.substr(told.rfind(": ") + 2));
  pid_t one = 0;
  pid_t two = 0;
  ASSERT_TRUE(pids >> one >> two) << told;
  EXPECT_NE(::kill(one, 0), 0) << "gone before the verdict";
  EXPECT_NE(::kill(two, 0), 0);
}

TEST_F(Verifier, ThatCannotBeRunRefuses) {
  EXPECT_EQ(refusal_of({"/nonexistent/program"}),
            "refused by /nonexistent/program: cannot find /nonexistent/program: No such file or "
            "directory");
  const std::string program = script("exit 0");
  ::chmod(program.c_str(), 0644);
  EXPECT_THAT(*refusal_of({program}), HasSubstr("is not executable"));
  ::chmod(program.c_str(), 0757);
  EXPECT_THAT(*refusal_of({program}), HasSubstr("others can write"));
  ::chmod(program.c_str(), 0755);
  std::ofstream(program) << "#!/nonexistent/shell\n";
  EXPECT_THAT(*refusal_of({program}), HasSubstr("not started: No such file or directory"));
}

TEST_F(Verifier, EndsWithTheManager) {
  std::atomic<bool> begun = false;
  std::optional<std::string> told;
  std::thread waiting([&] {
    begun = true;
    told = refusal("cat >/dev/null; sleep 600");
  });
  while (!begun) std::this_thread::yield();
  verifiers_.stop();
  waiting.join();
  EXPECT_THAT(told.value_or(""), HasSubstr(kGivenUp));
}

TEST_F(Verifier, EndsWithTheWorkItIsPartOf) {
  Progress progress;
  const Progress::Scope scope(&progress);
  progress.give_up();
  EXPECT_THAT(*refusal("cat >/dev/null; sleep 600"), HasSubstr(kGivenUp));
}

TEST_F(Verifier, HasNoRightsOfTheManagers) {
  const std::string kept = path("store");
  std::ofstream(kept) << "kept";
  const auto told = refusal(
      "grep -E '^(CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status | tr -d '\\n\\t' >&2\n"
      "ls -l /proc/self/fd | grep -c -- '->' >&2; exit 1");
  // The three descriptors, and the folder that the program reads.
  EXPECT_THAT(*told, MatchesRegex(".*CapInh:0+CapPrm:0+CapEff:0+CapAmb:0+NoNewPrivs:1[34]"));
  EXPECT_EQ(refusal(fmt::format("(echo x > {0}) 2>/dev/null && exit 1\n"
                                "(: >> {0}) 2>/dev/null && exit 2\n"
                                "(echo x > {0}.new) 2>/dev/null && exit 3\n"
                                "rm -f {0} 2>/dev/null && exit 4\n"
                                "truncate -s 0 {0} 2>/dev/null && exit 5\n"
                                "cat {0} >/dev/null || exit 6",
                                kept)),
            std::nullopt);
  EXPECT_EQ(text_of(kept), "kept");
}

TEST_F(Verifier, OpensNoLocalSockets) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no python3";
  EXPECT_THAT(refusal("exec /usr/bin/python3 -c 'import socket\n"
                      "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                      "try: socket.socket(socket.AF_UNIX)\n"
                      "except PermissionError: raise SystemExit(0)\n"
                      "raise SystemExit(1)'"),
              std::nullopt);
}

TEST_F(Verifier, IsSharedByZonesWithTheSameProgram) {
  config::ZoneOptions options;
  EXPECT_EQ(verifiers_.of(options), nullptr);
  options.verify_command = {"/bin/true"};
  const ZoneVerifierPtr first = verifiers_.of(options);
  EXPECT_EQ(verifiers_.of(options), first);
  options.verify_time = milliseconds(1);
  EXPECT_NE(verifiers_.of(options), first);
}

}  // namespace zone_verifier_test
}  // namespace pando::manager

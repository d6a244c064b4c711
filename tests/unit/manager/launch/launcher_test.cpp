#include "manager/launch/launcher.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "manager/verifier/program_run.h"

namespace pando::manager {
namespace launcher_test {

/// `/proc/self/exe --launcher FD` is this test program, too: it is that process then, and no test.
const bool kIsLauncher = [] {
  std::ostringstream line;
  line << std::ifstream("/proc/self/cmdline").rdbuf();
  std::istringstream words(line.str());
  std::string word;
  std::getline(words, word, '\0');
  if (std::getline(words, word, '\0') && word == "--launcher" && std::getline(words, word, '\0'))
    std::_Exit(run_launcher(std::atoi(word.c_str())));
  return false;
}();

constexpr const char* kUser = "nobody";
constexpr std::chrono::minutes kLongest{5};

/// A launcher that is root, as it is for a manager that root starts.
class RootLauncher : public ::testing::Test {
 protected:
  void SetUp() override {
    const passwd* entry = ::getpwnam(kUser);
    if (::geteuid() != 0 || entry == nullptr) GTEST_SKIP() << "needs root, and the user nobody";
    std::signal(SIGPIPE, SIG_IGN);
    user_ = entry->pw_uid;
    std::string folder = "/tmp/pando-launcher-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    ::chmod(folder_.c_str(), 01777);
    auto started = Launcher::start({"/no/such/worker", folder_, kUser});
    ASSERT_TRUE(started) << started.error().text;
    launcher_.emplace(std::move(*started));
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// The exit status of a program with this environment.
  std::uint32_t run(const std::string& script, const std::vector<std::string>& environment) {
    auto run = ProgramRun::start({kUser, {"/bin/sh", "-c", script}, environment}, &*launcher_,
                                 kLongest, nullptr);
    if (!run) ADD_FAILURE() << run.error().text;
    const auto end = run ? (*run)->finish() : Result<VerifierEnd>(pass(run));
    EXPECT_TRUE(end) << end.error().text;
    EXPECT_EQ(end ? end->kind : VerifierEnd::Kind::kNotStarted, VerifierEnd::Kind::kExited);
    return end ? end->value : 255;
  }

  uid_t user_ = 0;
  std::string folder_;
  std::optional<Launcher> launcher_;
};

TEST_F(RootLauncher, NoVariableOfTheManagerReachesTheLoaderOfAProcessThatIsStillRoot) {
  // The loader writes a file for each process that has these variables, as the process's user.
  EXPECT_EQ(run("exit 7", {"LD_DEBUG=files", "LD_DEBUG_OUTPUT=" + folder_ + "/loaded"}), 7U);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    struct stat status{};
    ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, user_) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0U) << "the program itself has its variables";
}

TEST_F(RootLauncher, TheProgramHasItsVariablesAndNoOthers) {
  ::setenv("PANDO_OF_THE_MANAGER", "1", 1);
  EXPECT_EQ(run("[ \"$ONE-$TWO\" = \"1 =-\" ] && [ -z \"$PANDO_OF_THE_MANAGER\" ] && [ $(id -u) = " +
                    std::to_string(user_) + " ]",
                {"ONE=1 =", "TWO=", "PATH=/usr/bin:/bin"}),
            0U);
  ::unsetenv("PANDO_OF_THE_MANAGER");
}

TEST_F(RootLauncher, WordsThatAreNoVariablesAreNotTakenForTheProgram) {
  // As many variables as there are words leave no program.
  const VerifierCommand nothing{kUser, {}, {"A=1"}};
  EXPECT_FALSE(ProgramRun::start(nothing, &*launcher_, kLongest, nullptr));
}

}  // namespace launcher_test
}  // namespace pando::manager

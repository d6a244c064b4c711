#include "manager/launch/adopted_worker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

extern char** environ;

namespace pando::manager {
namespace adopted_worker_test {

/// A shell that stands still, under a name and with words of our choice.
class Process {
 public:
  Process(const std::string& path, std::vector<std::string> options) {
    std::vector<std::string> words{path, "-c", "kill -STOP $$"};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, path.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
    EXPECT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  ~Process() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  void kill() const { ::kill(pid_, SIGKILL); }
  /// Until it has ended; it stays a zombie.
  void await_end() const {
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class FindWorker : public ::testing::Test {
 protected:
  FindWorker() {
    char pattern[] = "/tmp/pando-adopted-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    worker_ = directory_ + "/pando-worker";
    std::filesystem::create_symlink("/bin/sh", worker_);
    search_ = {directory_, ::geteuid()};
  }
  ~FindWorker() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string worker_;
  WorkerSearch search_;
};

TEST_F(FindWorker, KnowsItByNameSlotAndRunDirectory) {
  const Process process(worker_, {"--slot", "3", "--run-directory", directory_});
  const auto found = find_worker(process.pid(), 3, search_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pid, process.pid());
  EXPECT_TRUE(found->pidfd);
}

TEST_F(FindWorker, KnowsOptionsWithEqualSignsAndOtherSpellingsOfTheDirectory) {
  const Process process(
      worker_, {"--slot=12", "--run-directory=" + directory_ + "/../" + directory_.substr(5)});
  EXPECT_TRUE(find_worker(process.pid(), 12, search_));
}

TEST_F(FindWorker, IsNotMisledByWorkersOfOtherSlotsAndOtherInstances) {
  const Process process(worker_, {"--slot", "3", "--run-directory", directory_});
  EXPECT_FALSE(find_worker(process.pid(), 4, search_));
  EXPECT_FALSE(find_worker(process.pid(), 3, {"/tmp", ::geteuid()}));
}

TEST_F(FindWorker, IsNotMisledByOtherPrograms) {
  const Process process("/bin/sh", {"--slot", "3", "--run-directory", directory_});
  EXPECT_FALSE(find_worker(process.pid(), 3, search_));
  EXPECT_FALSE(find_worker(::getpid(), 3, search_));
}

TEST_F(FindWorker, DoesNotFindTheDead) {
  const Process process(worker_, {"--slot", "3", "--run-directory", directory_});
  process.kill();
  process.await_end();
  EXPECT_FALSE(find_worker(process.pid(), 3, search_));
  EXPECT_FALSE(find_worker(0, 3, search_));
  EXPECT_FALSE(find_worker(-1, 3, search_));
}

}  // namespace adopted_worker_test
}  // namespace pando::manager

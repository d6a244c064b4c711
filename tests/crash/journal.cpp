// The journal in a process of its own that kills itself at each crash point, on a real file system:
// what it told its parent was durable is there afterwards, in order.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "manager/journal/journal.h"
#include "tests/unit/manager/journal/snapshot_maker.h"

extern char** environ;

namespace pando::manager {
namespace {

constexpr int kGroups = 40;
constexpr std::uint64_t kSegment = 2048;

dns::Name zone_name() { return dns::Name::from_text("example.").value(); }

std::string text_of(int life, int number) {
  return std::to_string(life) + "-" + std::to_string(number) + std::string(100, '.');
}

/// The child: appends groups of two and writes a line for each group that is durable.
int append_groups(const std::string& folder, int life) {
  auto journal = Journal::open({folder, kSegment}, native_files(), [](const JournalNote&) {});
  if (!journal) return 1;
  for (int i = 0; i < kGroups; i += 2) {
    const JournalEntry group[] = {{zone_name(), {}, {}, {}}, {zone_name(), {}, {}, {}}};
    std::vector<JournalEntry> entries(group, group + 2);
    for (int j = 0; j < 2; ++j) {
      const std::string text = text_of(life, i + j);
      entries[static_cast<std::size_t>(j)].payload.assign(text.begin(), text.end());
    }
    if (!journal->append(entries)) return 2;
    const std::string line = text_of(life, i) + "\n" + text_of(life, i + 1) + "\n";
    if (::write(1, line.data(), line.size()) < 0) return 3;
    if (i == kGroups / 2) {  // the store's zones, as far as this test needs them
      journal->seal();
      const JournalFiles sealed = journal->sealed_files();
      const std::uint64_t position = journal->last_position();
      const std::string partial = folder + "/s.partial";
      if (!write_file_atomically(native_files(), partial, testing::snapshot_of(position)))
        return 4;
      if (!journal->replace_by_snapshot(partial, position, sealed)) return 5;
    }
  }
  return 0;
}

struct Life {
  bool killed = false;
  std::vector<std::string> durable;
};

Life run_child(const std::string& folder, int life, const std::string& crash_at) {
  int fds[2];
  EXPECT_EQ(::pipe(fds), 0);
  const std::string variable = "PANDO_CRASH_AT=" + crash_at;
  std::vector<char*> environment = {const_cast<char*>(variable.c_str())};
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::string_view(*entry).substr(0, 15) != "PANDO_CRASH_AT=") environment.push_back(*entry);
  environment.push_back(nullptr);
  const std::string number = std::to_string(life);
  char self[] = "/proc/self/exe", mode[] = "--append";
  char* arguments[] = {self, mode, const_cast<char*>(folder.c_str()),
                       const_cast<char*>(number.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  posix_spawn_file_actions_addclose(&actions, fds[0]);
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, self, &actions, nullptr, arguments, environment.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(fds[1]);
  Life result;
  std::string output;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fds[0], buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<std::size_t>(n));
  ::close(fds[0]);
  for (std::size_t at = 0, end; (end = output.find('\n', at)) != std::string::npos; at = end + 1)
    result.durable.push_back(output.substr(at, end - at));
  int status = 0;
  ::waitpid(child, &status, 0);
  result.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(result.killed || status == 0) << "child failed at " << crash_at;
  return result;
}

std::vector<std::string> read_back(const std::string& folder, std::uint64_t& snapshot) {
  std::vector<std::string> found;
  auto journal = Journal::open({folder, kSegment}, native_files(), [](const JournalNote& note) {
    EXPECT_FALSE(note.severe) << note.text;
  });
  EXPECT_TRUE(journal.has_value());
  snapshot = journal->files().snapshot_position;
  EXPECT_TRUE(for_each_record(
                  native_files(), journal->files(), snapshot,
                  [&](JournalRecord&& record) -> Status {
                    found.emplace_back(record.payload.begin(), record.payload.end());
                    return {};
                  },
                  [](const JournalNote&) {})
                  .has_value());
  return found;
}

/// The durable records from `from` on are the beginning of what is read, in order.
void expect_kept(const std::vector<std::string>& durable, const std::vector<std::string>& found) {
  if (found.empty()) return;
  const auto start = std::find(durable.begin(), durable.end(), found.front());
  const auto kept = static_cast<std::size_t>(durable.end() - start);
  ASSERT_GE(found.size(), kept);
  EXPECT_TRUE(std::equal(start, durable.end(), found.begin()));
}

class JournalCrash : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(JournalCrash, WhatWasDurableIsThere) {
  const auto [point, turn] = GetParam();
  const std::string folder =
      (std::filesystem::temp_directory_path() /
       ("pando-journal-" + std::to_string(::getpid()) + "-" + point + std::to_string(turn)))
          .string();
  std::filesystem::remove_all(folder);
  std::vector<std::string> durable;
  bool reached = false;
  for (int life = 0; life < 2; ++life) {
    const Life one = run_child(folder, life, std::string(point) + ":" + std::to_string(turn));
    reached = reached || one.killed;
    durable.insert(durable.end(), one.durable.begin(), one.durable.end());
    std::uint64_t snapshot = 0;
    std::vector<std::string> found = read_back(folder, snapshot);
    if (snapshot == 0) {
      // At most the group whose acknowledgement the kill cut off is there besides.
      ASSERT_GE(found.size(), durable.size());
      EXPECT_LE(found.size(), durable.size() + 2);
      EXPECT_TRUE(std::equal(durable.begin(), durable.end(), found.begin()));
      durable = found;
    } else {
      expect_kept(durable, found);
    }
  }
  EXPECT_TRUE(reached) << point << " was never reached";
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    AllPoints, JournalCrash,
    ::testing::Combine(::testing::Values("journal-before-write", "journal-written",
                                         "journal-synced", "journal-segment-made",
                                         "journal-segment-renamed", "journal-segment-named",
                                         "journal-snapshot-renamed", "journal-snapshot-named",
                                         "journal-segment-dropped", "journal-recovering",
                                         "journal-recovered"),
                       ::testing::Values(1)),
    [](const auto& tuple) {
      std::string name = std::get<0>(tuple.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_" + std::to_string(std::get<1>(tuple.param));
    });

INSTANTIATE_TEST_SUITE_P(LaterTurns, JournalCrash,
                         ::testing::Combine(::testing::Values("journal-before-write",
                                                              "journal-written", "journal-synced",
                                                              "journal-segment-renamed"),
                                            ::testing::Values(2, 5)),
                         [](const auto& tuple) {
                           std::string name = std::get<0>(tuple.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::to_string(std::get<1>(tuple.param));
                         });

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The process dies when a damaged segment has its new name, before the folder is synced.
TEST(JournalKilled, WhileASegmentIsPutAsideKeepsIt) {
  const std::string folder = (std::filesystem::temp_directory_path() /
                              ("pando-journal-" + std::to_string(::getpid()) + "-aside"))
                                 .string();
  std::filesystem::remove_all(folder);
  std::vector<std::string> damaged;
  std::string last;
  for (int turn = 0; turn < 2; ++turn) {
    // One that is killed before its second record leaves a segment of the same name as the last.
    EXPECT_TRUE(run_child(folder, 0, "journal-before-write").killed);
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".journal") last = entry.path().string();
    std::fstream(last, std::ios::in | std::ios::out | std::ios::binary).seekp(20).put('!');
    damaged.push_back(contents(last));
    EXPECT_TRUE(run_child(folder, 0, "journal-put-aside").killed);
    EXPECT_FALSE(std::filesystem::exists(last));
    EXPECT_EQ(contents(last + ".damaged"), damaged[0]);
  }
  EXPECT_EQ(contents(last + ".damaged.1"), damaged[1]);
  EXPECT_FALSE(run_child(folder, 0, "never").killed);
  EXPECT_EQ(contents(last + ".damaged"), damaged[0]);
  EXPECT_EQ(contents(last + ".damaged.1"), damaged[1]);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pando::manager

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--append")
    return pando::manager::append_groups(argv[2], std::atoi(argv[3]));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

#include "manager/zonefile/load_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace pando::manager {
namespace load_queue_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

dns::Name zone(int number) {
  return dns::Name::from_text("z" + std::to_string(number) + ".test.").value();
}

class Queue : public ::testing::Test {
 protected:
  /// Zones first to last - 1; `taken_` counts the calls for a job.
  LoadRequest request(LoadKind kind, int first, int last) {
    return {kind,
            [this, first, last]() mutable -> std::optional<LoadJob> {
              ++taken_;
              if (first == last) return std::nullopt;
              return LoadJob{zone(first++), "file"};
            },
            nullptr};
  }
  void add(LoadKind kind, int first, int last) { queue_.add(request(kind, first, last)); }
  static std::vector<std::string> names(const LoadTasks& tasks) {
    std::vector<std::string> found;
    for (const auto& task : tasks) found.push_back(to_text(task->job.apex));
    return found;
  }
  void finish(const LoadTasks& tasks) {
    for (const auto& task : tasks) --task->request->unfinished;
    queue_.release(tasks.front()->kind);
  }
  LoadTasks next_file() { return queue_.next(LoadKind::kFiles); }

  int taken_ = 0;
  std::set<std::string> loading_;
  LoadQueue queue_{2, [this](dns::NameView name) { return loading_.contains(dns::to_text(name)); }};
};

/// Zones for more batches than there are threads.
constexpr int kMany = 4 * static_cast<int>(LoadQueue::kBatchTasks);

TEST_F(Queue, TakesNoMoreJobsThanItHasThreadsFor) {
  add(LoadKind::kFiles, 0, kMany);
  EXPECT_EQ(taken_, 0);
  const LoadTasks one = next_file();
  EXPECT_THAT(one, SizeIs(LoadQueue::kBatchTasks));
  EXPECT_THAT(next_file(), SizeIs(LoadQueue::kBatchTasks));
  EXPECT_THAT(next_file(), IsEmpty());
  EXPECT_EQ(taken_, 2 * static_cast<int>(LoadQueue::kBatchTasks));
  finish(one);
  EXPECT_THAT(next_file(), SizeIs(LoadQueue::kBatchTasks));
}

TEST_F(Queue, HasAThreadForEachKindWhateverTheOtherDoes) {
  add(LoadKind::kFiles, 0, kMany);
  add(LoadKind::kCopies, kMany, 2 * kMany);
  ASSERT_THAT(next_file(), SizeIs(LoadQueue::kBatchTasks));
  ASSERT_THAT(next_file(), SizeIs(LoadQueue::kBatchTasks));
  EXPECT_EQ(queue_.kinds().front(), LoadKind::kCopies) << "none of its threads is busy";
  EXPECT_THAT(queue_.next(LoadKind::kCopies), SizeIs(LoadQueue::kBatchTasks));
  EXPECT_THAT(queue_.next(LoadKind::kCopies), IsEmpty());
}

TEST_F(Queue, FilesThatProgramsJudgeTakeNoThreadsOfOthers) {
  add(LoadKind::kFiles, 0, kMany);
  const LoadTasks first = next_file();
  for (const auto& task : first) queue_.judge(task);
  queue_.release(LoadKind::kFiles);
  for (std::size_t i = 0; i < ProgramPlaces::kAtOnce; ++i)
    EXPECT_THAT(queue_.next(LoadKind::kJudged), SizeIs(1));
  EXPECT_THAT(queue_.next(LoadKind::kJudged), IsEmpty());
  EXPECT_THAT(next_file(), SizeIs(LoadQueue::kBatchTasks));
  EXPECT_THAT(next_file(), SizeIs(LoadQueue::kBatchTasks));
  EXPECT_THAT(next_file(), IsEmpty());
  queue_.release_judged(*first.front());
  EXPECT_THAT(queue_.next(LoadKind::kJudged), SizeIs(1));
}

TEST_F(Queue, NoRequestWaitsForProgramsThatJudge) {
  add(LoadKind::kFiles, 0, 1);
  const LoadTasks first = next_file();
  first.front()->is_first = true;
  queue_.judge(first.front());
  queue_.release(LoadKind::kFiles);
  EXPECT_THAT(next_file(), IsEmpty());
  EXPECT_NE(queue_.take_ended(LoadKind::kFiles), nullptr);
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_EQ(queue_.first_judged(), 1U);
  EXPECT_EQ(queue_.judged(zone(0)), first.front());
  EXPECT_EQ(queue_.judged(zone(1)), nullptr);
  EXPECT_EQ(queue_.take_judged(zone(0)), first.front());
  EXPECT_EQ(queue_.take_judged(zone(0)), nullptr);
  EXPECT_EQ(queue_.first_judged(), 0U);
  EXPECT_THAT(queue_.next(LoadKind::kJudged), IsEmpty()) << "it needs no verdict any more";
}

TEST_F(Queue, AnotherVersionIsJudgedOnceTheOneBeforeHasLeft) {
  add(LoadKind::kFiles, 0, 1);
  const auto first = next_file().front();
  queue_.judge(first);
  queue_.release(LoadKind::kFiles);
  ASSERT_THAT(queue_.next(LoadKind::kJudged), SizeIs(1));
  add(LoadKind::kFiles, 0, 1);
  const auto second = next_file().front();
  loading_.insert("z0.test.");
  EXPECT_EQ(queue_.take_judged(zone(0)), first);
  queue_.judge(second);
  EXPECT_FALSE(queue_.judge_again(first)) << "another one is judged in its place";
  EXPECT_TRUE(queue_.judge_again(second));
  EXPECT_THAT(queue_.next(LoadKind::kJudged), IsEmpty());
  loading_.clear();
  queue_.release_judged(*first);
  EXPECT_THAT(queue_.next(LoadKind::kJudged), ElementsAre(second));
}

TEST_F(Queue, EndsRequestsInOrderWhenTheirLastJobIsFinished) {
  add(LoadKind::kFiles, 0, 1);
  add(LoadKind::kFiles, 1, 2);
  const LoadTasks first = next_file();
  const LoadTasks second = next_file();
  ASSERT_THAT(names(first), ElementsAre("z0.test."));
  ASSERT_THAT(names(second), ElementsAre("z1.test."));
  EXPECT_THAT(next_file(), IsEmpty());
  finish(second);
  EXPECT_EQ(queue_.take_ended(LoadKind::kFiles), nullptr) << "the first one is under way";
  finish(first);
  EXPECT_THAT(next_file(), IsEmpty());
  EXPECT_EQ(queue_.take_ended(LoadKind::kFiles), first.front()->request);
  EXPECT_FALSE(queue_.is_empty());
  EXPECT_EQ(queue_.take_ended(LoadKind::kFiles), second.front()->request);
  EXPECT_EQ(queue_.take_ended(LoadKind::kFiles), nullptr);
  EXPECT_TRUE(queue_.is_empty());
}

TEST_F(Queue, ARequestWithoutJobsEnds) {
  add(LoadKind::kFiles, 0, 0);
  EXPECT_THAT(next_file(), IsEmpty());
  EXPECT_NE(queue_.take_ended(LoadKind::kFiles), nullptr);
}

TEST_F(Queue, TasksToCheckAgainComeFirstAndAloneWhereTheyMust) {
  add(LoadKind::kFiles, 0, kMany);
  const LoadTasks tasks = next_file();
  tasks[2]->is_alone = true;
  for (const int index : {0, 1, 2, 3}) queue_.check_again(tasks[static_cast<std::size_t>(index)]);
  queue_.release(LoadKind::kFiles);
  EXPECT_THAT(names(next_file()), ElementsAre("z0.test.", "z1.test."));
  EXPECT_THAT(names(next_file()), ElementsAre("z2.test."));
  queue_.release(LoadKind::kFiles);
  const LoadTasks filled = next_file();
  ASSERT_THAT(filled, SizeIs(LoadQueue::kBatchTasks)) << "with new jobs";
  EXPECT_EQ(to_text(filled[0]->job.apex), "z3.test.");
  EXPECT_EQ(to_text(filled[1]->job.apex), "z" + std::to_string(LoadQueue::kBatchTasks) + ".test.");
}

TEST_F(Queue, AZoneWaitsForTheLoadOfAnEarlierRequest) {
  add(LoadKind::kFiles, 0, 1);
  const LoadTasks first = next_file();
  ASSERT_THAT(first, SizeIs(1));
  loading_.insert("z0.test.");
  add(LoadKind::kFiles, 0, 2);
  const LoadTasks second = next_file();
  EXPECT_THAT(names(second), ElementsAre("z1.test."));
  finish(second);
  EXPECT_THAT(next_file(), IsEmpty());
  loading_.clear();
  finish(first);
  EXPECT_THAT(names(next_file()), ElementsAre("z0.test."));
}

TEST_F(Queue, OwnsNoTaskThatOwnsTheQueue) {
  std::weak_ptr<LoadTask> again;
  {
    LoadQueue queue(1, [](dns::NameView) { return false; });
    queue.add(request(LoadKind::kFiles, 0, 1));
    LoadTasks tasks = queue.next(LoadKind::kFiles);
    again = tasks.front();
    queue.check_again(std::move(tasks.front()));
    EXPECT_FALSE(again.expired());
  }
  EXPECT_TRUE(again.expired());
}

TEST_F(Queue, RequestsAreDueForALogLineEachTenSeconds) {
  add(LoadKind::kFiles, 0, 1);
  const auto now = LoadProgress::Clock::now();
  EXPECT_THAT(queue_.due(now), IsEmpty());
  EXPECT_THAT(queue_.due(now + seconds(10)), SizeIs(1));
  EXPECT_THAT(queue_.due(now + seconds(19)), IsEmpty());
  EXPECT_THAT(queue_.due(now + seconds(20)), SizeIs(1));
}

}  // namespace load_queue_test
}  // namespace pando::manager

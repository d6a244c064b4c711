#include "manager/commit/committer.h"

#include <algorithm>
#include <asio/post.hpp>
#include <iterator>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/commit/next_version.h"

namespace pando::manager {

namespace {

/// kFull when less of the reserve is left than `use` demands. Otherwise small blocks would still
/// fit, their root blocks would not, and the reserve would be used up. Deletes leave a part of the
/// reserve for compaction.
Status leaves_reserve(shm::Store& store, shm::Reserve use) {
  if (use == shm::Reserve::kAll || store.leaves_reserve(use)) return {};
  if (store.reclaim() > 0 && store.leaves_reserve(use)) return {};
  return fail(Errc::kFull, "the store has reached its size limit");
}

/// Turns any error of the journal's disk into kIo, since kFull means a full store.
Error not_journalled(const Error& error) {
  return {Errc::kIo, fmt::format("the journal cannot be written: {}", error.text)};
}

}  // namespace

/// A version under construction.
struct Committer::Group {
  explicit Group(shm::Store& store) : next(store, NextVersion::Step::kCommit) {}
  NextVersion next;
  std::vector<CommitRequest> staged;
  std::vector<JournalEntry> entries;
  std::vector<PublishedZone> changed;
  std::uint64_t first_position = 0;
};

Committer::Committer(asio::io_context& io, shm::Store& store, Journal& journal,
                     JournalThread& journal_thread, Options options)
    : io_(io),
      mailbox_(LoopMailbox::of(io)),
      store_(store),
      journal_(journal),
      journal_thread_(journal_thread),
      options_(options),
      position_(store.current().journal_position),
      records_(io, options.retry_pending,
               [this](CommitRequest request) { submit(std::move(request)); }) {}

Committer::~Committer() = default;

bool Committer::busy() const noexcept { return in_flight_ || !queue_.empty(); }

zone::StoreView Committer::current() const {
  const shm::VersionInfo version = store_.current();
  return zone::StoreView(store_.window(), version.root, version.number);
}

void Committer::submit(CommitRequest request) {
  queue_.push_back(std::move(request));
  schedule();
}

/// A group starts from the event loop, not from submit(), so that requests of one loop iteration
/// share it.
void Committer::schedule() {
  if (scheduled_ || in_flight_ || queue_.empty()) return;
  scheduled_ = true;
  asio::post(io_, [this] {
    scheduled_ = false;
    run_next();
  });
}

std::vector<CommitRequest> Committer::take_group() {
  std::vector<CommitRequest> group;
  const std::size_t limit = singly_ > 0 ? 1 : options_.max_group;
  while (!queue_.empty() && group.size() < limit) {
    const bool alone = queue_.front().kind == CommitRequest::Kind::kAlone;
    if (alone && !group.empty()) break;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (alone) return group;
  }
  if (singly_ > 0) {
    --singly_;
    return group;
  }
  if (upkeep_hook_)
    if (auto upkeep = upkeep_hook_()) group.push_back(std::move(*upkeep));
  return group;
}

void Committer::run_next() {
  if (in_flight_ || queue_.empty()) return;
  auto group = std::make_shared<Group>(store_);
  group->staged = take_group();
  in_flight_ = true;
  stage_group(*group);
  records_.insert_pending(group->entries);
  if (group->staged.empty()) {
    in_flight_ = false;
  } else if (!group->next.is_changed() && group->entries.empty() && group->changed.empty()) {
    answer(*group, group->next.base().number);  // nothing changed
  } else if (group->entries.empty()) {
    publish(group, position_);
  } else {
    write_journal(std::move(group));
    return;
  }
  schedule();
}

/// Stages each request. A failed request is answered immediately, outside the group. When the store
/// is full or damaged the whole transaction is dropped.
void Committer::stage_group(Group& group) {
  std::vector<CommitRequest> requests = std::exchange(group.staged, {});
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t entries = group.entries.size();
    auto staged = stage_one(group, requests[i], requests.size() == 1);
    if (staged) {
      group.staged.push_back(std::move(requests[i]));
      if (std::chrono::steady_clock::now() - start < options_.max_staging) continue;
      while (requests.size() > i + 1) {
        queue_.push_front(std::move(requests.back()));
        requests.pop_back();
      }
      return;
    }
    group.entries.resize(entries);
    const bool invalid =
        staged.error().code == Errc::kFull || staged.error().code == Errc::kCorrupt;
    if (invalid && requests.size() > 1) {
      for (std::size_t j = i; j < requests.size(); ++j)
        group.staged.push_back(std::move(requests[j]));
      return retry_singly(group);
    }
    ++counters_.failed;
    requests[i].done(pass(staged));
  }
}

/// A step that allocated nothing is not refused for a reserve in use.
Status Committer::stage_one(Group& group, CommitRequest& request, bool alone) {
  const shm::Transaction& transaction = group.next.transaction();
  Stage stage{group.next.transaction(), group.next.draft(), group.entries, alone};
  const std::uint64_t before = transaction.allocated_bytes();
  auto staged = request.stage(stage);
  ++counters_.requests;
  crash_point("commit-staged");
  if (staged && transaction.allocated_bytes() != before)
    staged = leaves_reserve(store_, stage.reserve);
  if (staged) std::ranges::move(stage.changed, std::back_inserter(group.changed));
  return staged;
}

/// Returns all requests to the queue's front as groups of one, so that each is checked alone.
void Committer::retry_singly(Group& group) {
  std::vector<CommitRequest> requests = std::exchange(group.staged, {});
  group.entries.clear();
  group.changed.clear();
  for (auto request = requests.rbegin(); request != requests.rend(); ++request)
    queue_.push_front(std::move(*request));
  singly_ += requests.size();
}

void Committer::write_journal(std::shared_ptr<Group> group) {
  journal_thread_.post([this, group = std::move(group)] {
    group->first_position = journal_.last_position() + 1;
    auto position = journal_.append(group->entries);
    crash_point("commit-journalled");
    mailbox_.post([this, group, position = std::move(position)]() mutable {
      journalled(group, std::move(position));
    });
  });
}

void Committer::journalled(const GroupPtr& group, Result<std::uint64_t> position) {
  if (position)
    publish(group, *position);
  else
    fail_group(*group, not_journalled(position.error()));
  schedule();
}

/// The group is synced, and the next process must not find it once it was refused.
void Committer::abandon(const GroupPtr& group, const Error& error) {
  journal_thread_.post([this, group, error] {
    journal_.abandon(group->first_position);
    mailbox_.post([this, group, error] {
      fail_group(*group, error);
      schedule();
    });
  });
}

void Committer::publish(const GroupPtr& published, std::uint64_t position) {
  Group& group = *published;
  crash_point("commit-before-publish");
  const std::uint64_t fresh = group.next.transaction().allocated_bytes();
  auto version = group.next.publish(position);
  crash_point("commit-published");
  if (!version && group.entries.empty()) return fail_group(group, version.error());
  if (!version) return abandon(published, version.error());
  position_ = position;
  records_.published(group.entries);
  ++counters_.versions;
  counters_.store_bytes += fresh;
  if (store_.may_reclaim()) store_.reclaim();
  if (follow_up_) follow_up_({*version, group.entries, group.changed});
  answer(group, *version);
}

void Committer::answer(Group& group, std::uint64_t version) {
  in_flight_ = false;
  for (CommitRequest& request : group.staged) {
    request.done(version);
    crash_point("commit-acknowledged");
  }
}

void Committer::fail_group(Group& group, const Error& error) {
  in_flight_ = false;
  counters_.failed += group.staged.size();
  for (CommitRequest& request : group.staged) request.done(pass(error));
}

void Committer::secure_journal() {
  if (journal_.health().has_durable_end() || securing_) return;
  securing_ = true;
  journal_thread_.post([this] {
    const bool secured = journal_.append({}).has_value();
    mailbox_.post([this, secured] {
      securing_ = false;
      if (!secured) return;
      log::info("journal_durable_again");
      reach_end();
    });
  });
}

/// The journal may have records after the store's position that could not be read at the start.
/// They belong to zones that are loaded from now on, or never took place.
void Committer::reach_end() {
  const std::uint64_t last = journal_.last_position();
  if (in_flight_ || last <= position_) return;
  if (auto reached = recover_position(store_, last); reached) position_ = last;
}

void Committer::edit(std::function<Status(zone::Draft&)> step, Finished done, shm::Reserve use) {
  CommitRequest request;
  request.stage = [step = std::move(step), use](Stage& stage) {
    stage.use_reserve(use);
    return step(stage.draft);
  };
  request.done = [done = std::move(done)](const Result<std::uint64_t>& version) {
    done(status_of(version));
  };
  submit(std::move(request));
}

}  // namespace pando::manager

#include "manager/commit/committer.h"

#include <asio/post.hpp>

#include "base/crash_point.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/commit/next_version.h"
#include "manager/journal/journal.h"
#include "manager/journal/journal_payload.h"
#include "manager/support/withheld_data.h"

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
      pending_(io, options.retry_pending,
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
  pending_.insert_into(group->entries);
  if (group->staged.empty()) {
    in_flight_ = false;
  } else if (!group->next.is_changed() && group->entries.empty()) {
    answer(*group, group->next.base().number);  // nothing changed
  } else if (group->entries.empty()) {
    publish(group, position_);
  } else {
    write_journal(std::move(group));
    return;
  }
  schedule();
}

/// Stages each request. A failed request is answered at once and leaves the group. When the store
/// is full or damaged the whole transaction is dropped.
void Committer::stage_group(Group& group) {
  std::vector<CommitRequest> requests = std::exchange(group.staged, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t entries = group.entries.size();
    auto staged = stage_one(group, requests[i], requests.size() == 1);
    if (staged) {
      group.staged.push_back(std::move(requests[i]));
      continue;
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
  if (!staged || transaction.allocated_bytes() == before) return staged;
  return leaves_reserve(store_, stage.reserve);
}

/// Puts all requests back at the queue's front as groups of one, so that each is judged alone.
void Committer::retry_singly(Group& group) {
  std::vector<CommitRequest> requests = std::exchange(group.staged, {});
  group.entries.clear();
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
  update_merge_bases(group);
  ++counters_.versions;
  counters_.store_bytes += fresh;
  if (store_.may_reclaim()) store_.reclaim();
  if (journalled_hook_)
    for (const JournalEntry& entry : group.entries) journalled_hook_(entry);
  if (published_hook_) published_hook_(*version);
  report_changes(group);
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

/// The journal may have records behind the store's position that could not be read at the start.
/// They belong to zones that are loaded from now on, or never took place.
void Committer::reach_end() {
  const std::uint64_t last = journal_.last_position();
  if (in_flight_ || last <= position_) return;
  if (auto reached = recover_position(store_, last); reached) position_ = last;
}

void Committer::apply(Compute compute, const zone::DataLimits& limits, Applied done) {
  auto applied = std::make_shared<zone::Applied>();
  CommitRequest request;
  request.stage = [this, compute = std::move(compute), limits, applied](Stage& stage) -> Status {
    auto result = stage_changeset(stage, compute, limits);
    if (!result) return pass(result);
    *applied = std::move(*result);
    return {};
  };
  request.done = [applied, done = std::move(done)](const Result<std::uint64_t>& version) {
    version ? done(std::move(*applied)) : done(pass(version));
  };
  submit(std::move(request));
}

Result<zone::Applied> Committer::stage_changeset(Stage& stage, const Compute& compute,
                                                 const zone::DataLimits& limits) const {
  // A no-op update acknowledges existing state, so that state must be durable first: a host crash
  // could still take the state back.
  const auto unchanged = [this](zone::Applied&& applied) -> Result<zone::Applied> {
    if (auto durable = check_end(journal_); !durable) return pass(durable);
    return std::move(applied);
  };
  auto changes = compute(stage.draft.view());
  if (!changes) return pass(changes);
  if (auto whole = check_whole(journal_); !whole) return pass(whole);
  if (changes->empty()) return unchanged({});
  stage.use_reserve_for(changes->removed.size(), changes->added.size());
  auto result = stage.draft.apply(*changes, limits);
  if (!result) return result;
  *changes = {};  // the result has its content
  if (result->effective.empty()) return unchanged(std::move(*result));
  journal_changeset(stage, *result, RecordKind::kChangeset);
  return result;
}

bool Committer::has_merge_base(const dns::Name& zone) const {
  return merge_bases_.contains(dns::folded_key(zone));
}

void Committer::journal_changeset(Stage& stage, const zone::Applied& applied,
                                  RecordKind kind) const {
  const dns::Name& name = applied.effective.zone;
  const zone::ZoneView zone = stage.draft.view().zone_at(name);
  const bool has_base = (stage.has_merge_base ? *stage.has_merge_base : has_merge_base(name)) ||
                        (!stage.journal.empty() && stage.journal.back().zone == name);
  if (zone.source().file_mtime_ns != 0 && !has_base)
    stage.journal.push_back(source_entry(name, applied.from, zone.source()));
  stage.journal.push_back({name, applied.from, applied.to, zone::encode(applied.effective), kind});
}

void Committer::update_merge_bases(const Group& group) {
  pending_.drop_written(group.entries);
  for (const JournalEntry& entry : group.entries) {
    if (entry.kind == RecordKind::kGone) ++counters_.gone;
    if (entry.kind == RecordKind::kSource) merge_bases_.insert(dns::folded_key(entry.zone));
    if (entry.kind == RecordKind::kGone || entry.kind == RecordKind::kBase)
      merge_bases_.erase(dns::folded_key(entry.zone));
  }
}

/// Reports changesets alone. Zones that are put whole need no journal record, so put_zone() reports
/// them.
void Committer::report_changes(const Group& group) const {
  if (!zone_hook_) return;
  for (const JournalEntry& entry : group.entries) {
    const bool by_changeset = entry.kind == RecordKind::kChangeset ||
                              entry.kind == RecordKind::kFileEdit ||
                              entry.kind == RecordKind::kTransfer;
    if (by_changeset && !(entry.from == entry.to)) zone_hook_(entry.zone, false);
  }
}

void Committer::put_zone(const dns::Name& apex, std::shared_ptr<zone::BuiltZone> built,
                         shm::Transaction&& built_in, const zone::ZoneFileInfo& source,
                         Finished done) {
  auto had_data = std::make_shared<bool>(false);
  ZonePut put{apex, std::move(built), std::move(built_in), source, {}, {}};
  put.check = [had_data](const zone::ZoneView& before) -> Status {
    *had_data = before && before.loaded();
    return {};
  };
  put_zone(std::move(put), [this, apex, had_data, done = std::move(done)](const Status& status) {
    if (status) forget_merge_base(apex);
    if (status && *had_data) journal_whole_transfer(apex, current().zone_at(apex).serial());
    done(status);
  });
}

void Committer::forget_merge_base(const dns::Name& apex) {
  merge_bases_.erase(dns::folded_key(apex));
  pending_.drop(apex);
}

void Committer::zone_replaced(const dns::Name& apex) {
  crash_point("zone-replaced");
  forget_merge_base(apex);
  journal_whole_transfer(apex, current().zone_at(apex).serial());
  if (zone_hook_) zone_hook_(apex, true);
}

void Committer::new_zone_put(const dns::Name& apex) {
  forget_merge_base(apex);
  if (zone_hook_) zone_hook_(apex, true);
}

/// Appends the records of a whole transfer in a step of their own. Without them (disk full, process
/// killed) the next changeset would not follow the last one, and the dynamic changes become
/// unknown.
void Committer::journal_whole_transfer(const dns::Name& apex, dns::Serial serial) {
  CommitRequest request;
  request.stage = [apex, serial](Stage& stage) -> Status {
    const zone::ZoneView zone = stage.draft.view().zone_at(apex);
    if (!zone || !zone.loaded() || !(zone.serial() == serial)) return {};
    stage.journal.push_back(base_entry(zone));
    stage.journal.push_back(transfer_entry(zone));
    return {};
  };
  submit(std::move(request));
}

void Committer::put_zone(ZonePut put, Finished done) {
  auto zone = std::make_shared<ZonePut>(std::move(put));
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [zone](Stage& stage) -> Status {
    if (zone->check)
      if (auto ok = zone->check(stage.draft.view().zone_at(zone->apex)); !ok) return ok;
    stage.use_reserve(zone->built_in.reserve_use());
    stage.transaction.absorb(std::move(zone->built_in));
    if (auto placed = stage.draft.put_zone(zone->apex, *zone->built, zone->source); !placed)
      return placed;
    if (auto dropped = drop_withheld_data(stage.draft, zone->apex); !dropped) return dropped;
    if (zone->note) zone->note(stage.journal, stage.draft.view().zone_at(zone->apex));
    return {};
  };
  request.done = [this, zone, done = std::move(done)](const Result<std::uint64_t>& version) {
    if (version && zone_hook_) zone_hook_(zone->apex, true);
    done(status_of(version));
  };
  submit(std::move(request));
}

void Committer::put_new_zones(NewZones zones, Finished done) {
  auto together = std::make_shared<NewZones>(std::move(zones));
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [together](Stage& stage) -> Status {
    for (const NewZones::Zone& zone : together->zones) {
      const zone::ZoneView before = stage.draft.view().zone_at(zone.apex);
      if (!before || before.loaded())
        return fail(Errc::kExists, "{} is not a zone without data", to_text(zone.apex));
    }
    stage.use_reserve(together->built_in.reserve_use());
    stage.transaction.absorb(std::move(together->built_in));
    for (const NewZones::Zone& zone : together->zones) {
      if (auto placed = stage.draft.put_zone(zone.apex, *zone.built, zone.source); !placed)
        return placed;
      if (auto dropped = drop_withheld_data(stage.draft, zone.apex); !dropped) return dropped;
    }
    return {};
  };
  request.done = [this, together, done = std::move(done)](const Result<std::uint64_t>& version) {
    if (version && zone_hook_)
      for (const NewZones::Zone& zone : together->zones) zone_hook_(zone.apex, true);
    done(status_of(version));
  };
  submit(std::move(request));
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

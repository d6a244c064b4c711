#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "manager/change/change_road.h"
#include "manager/commit/committer.h"
#include "shm/slots.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager::testing {

inline std::vector<RecordKind> kinds_of(const std::vector<JournalRecord>& records) {
  std::vector<RecordKind> kinds;
  for (const JournalRecord& record : records) kinds.push_back(record.kind);
  return kinds;
}

/// What ZoneTableSync does when "example." leaves the configuration and comes again.
inline Status leave_and_come_again(Stage& stage) {
  stage.journal.push_back({name("@"), {}, {}, {}, RecordKind::kGone});
  if (auto removed = stage.draft.remove_zone(name("@")); !removed) return removed;
  return stage.draft.put_zone_settings(name("@"), {}, 0);
}

/// Store, slots, journal and committer as the manager has them, on tmpfs, with one zone.
class Parts {
 public:
  explicit Parts(std::uint64_t size_limit = 64 << 20, Files& journal_files = native_files(),
                 Committer::Options options = {})
      : zone(kBasicZone, size_limit),
        slots(shm::test::must(
            shm::SlotTable::open(folder.slots(), zone.path(), zone::layout_fingerprint()))),
        files(journal_files),
        journal(open_journal()),
        committer(io, zone.store(), journal, journal_thread, options),
        road(io, pool, zone.store(), slots, committer, {}) {
    zone.store().set_slots(&slots);
  }
  ~Parts() {
    pool.join();
    journal_thread.join();
  }

  /// Runs the event loop until `done` says so; false after a generous time.
  bool run_until(const std::function<bool()>& done) { return testing::run_until(io, done); }

  using Applied = Result<zone::Applied>;
  /// Submits one difference; the result comes into the returned place.
  std::shared_ptr<std::optional<Applied>> submit(zone::Changeset changes) {
    auto result = std::make_shared<std::optional<Applied>>();
    submit_computed(
        [changes](const zone::StoreView&) -> Result<zone::Changeset> { return changes; },
        [result](const Applied& applied) { *result = applied; });
    return result;
  }
  using Compute = std::function<Result<zone::Changeset>(const zone::StoreView&)>;
  /// Hands an update to the road, which may share its version with others.
  void submit_computed(Compute compute, std::function<void(const Applied&)> done) {
    ZoneChange change = computed_change(std::move(compute));
    change.done = [done = std::move(done)](const Result<ChangeOutcome>& outcome) {
      if (outcome)
        done(outcome->applied);
      else
        done(pass(outcome));
    };
    road.submit(std::move(change));
  }
  static ZoneChange computed_change(Compute compute) {
    ZoneChange change;
    change.zone = name("@");
    change.limits = {};
    change.shares_version = true;
    change.content = [compute = std::move(compute)](const zone::StoreView& version) {
      return ComputedChange::of(compute(version));
    };
    return change;
  }
  /// Puts a zone as an AXFR does.
  void put_whole(const dns::Name& apex, std::shared_ptr<zone::BuiltZone> built,
                 shm::Transaction&& built_in, std::function<void(const Status&)> done) {
    ZoneChange change;
    change.zone = apex;
    change.source = ChangeSource::kTransfer;
    change.is_whole = true;
    change.content = WholeZone{std::move(built), std::move(built_in)};
    change.done = [done = std::move(done)](const Result<ChangeOutcome>& outcome) {
      done(status_of(outcome));
    };
    road.submit(std::move(change));
  }
  Applied apply(const std::vector<std::string>& removed, const std::vector<std::string>& added) {
    auto result = submit(changes(removed, added));
    EXPECT_TRUE(run_until([&] { return result->has_value(); }));
    return std::move(**result);
  }
  /// Has the committer do something else, as a version of its own, and waits for it.
  Status commit(std::function<Status(Stage&)> stage) {
    auto result = std::make_shared<std::optional<Status>>();
    CommitRequest request;
    request.stage = std::move(stage);
    request.done = [result](const Result<std::uint64_t>& version) {
      *result = version ? Status() : Status(tl::unexpected<Error>(version.error()));
    };
    committer.submit(std::move(request));
    EXPECT_TRUE(run_until([&] { return result->has_value(); }));
    return **result;
  }
  Status edit(std::function<Status(zone::Draft&)> step) {
    auto result = std::make_shared<std::optional<Status>>();
    committer.edit(std::move(step), [result](const Status& status) { *result = status; });
    EXPECT_TRUE(run_until([&] { return result->has_value(); }));
    return **result;
  }
  /// The journal's records behind position `after`.
  std::vector<JournalRecord> journalled(std::uint64_t after = 0) {
    std::vector<JournalRecord> records;
    const auto take = [&](JournalRecord&& record) -> Status {
      records.push_back(std::move(record));
      return {};
    };
    const auto walked =
        for_each_record(files, journal.files(), after, take, [](const JournalNote&) {});
    EXPECT_TRUE(walked.has_value());
    return records;
  }
  /// With the SOA pair that moves the serial by one.
  zone::Changeset changes(const std::vector<std::string>& removed,
                          const std::vector<std::string>& added) {
    zone::Changeset list{name("@"), {}, {}};
    for (const std::string& line : removed) list.removed.push_back(record(line));
    for (const std::string& line : added) list.added.push_back(record(line));
    return list;
  }

  shm::test::Folder folder;
  ZoneStore zone;
  asio::io_context io{1};
  JournalThread journal_thread;
  asio::thread_pool pool{2};
  shm::SlotTable slots;
  Files& files;  ///< the journal's
  Journal journal;
  Committer committer;
  ChangeRoad road;

 private:
  Journal open_journal() {
    auto opened =
        Journal::open({folder.path() + "/journal", 64 << 10}, files, [](const JournalNote&) {});
    return shm::test::must(std::move(opened));
  }
};

}  // namespace pando::manager::testing

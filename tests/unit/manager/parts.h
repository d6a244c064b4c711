#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "manager/committer.h"
#include "shm/slots.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager::testing {

/// Store, slots, journal and committer as the manager has them, on tmpfs, with one zone.
class Parts {
 public:
  explicit Parts(std::uint64_t size_limit = 64 << 20, Files& files = native_files(),
                 Committer::Options options = {})
      : zone(kBasicZone, size_limit),
        slots(shm::test::must(
            shm::SlotTable::open(folder.slots(), zone.path(), zone::layout_fingerprint()))),
        journal(open_journal(files)),
        committer(io, zone.store(), journal, journal_thread, options) {
    zone.store().set_slots(&slots);
  }
  ~Parts() {
    pool.join();
    journal_thread.join();
  }

  /// Runs the event loop until `done` says so; false after a generous time.
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  using Applied = Result<zone::Applied>;
  /// Submits one difference; the result comes into the returned place.
  std::shared_ptr<std::optional<Applied>> submit(zone::Changes changes) {
    auto result = std::make_shared<std::optional<Applied>>();
    committer.apply([changes](const zone::Snapshot&) -> Result<zone::Changes> { return changes; },
                    {}, [result](Applied applied) { *result = std::move(applied); });
    return result;
  }
  Applied apply(const std::vector<std::string>& removed, const std::vector<std::string>& added) {
    auto result = submit(changes(removed, added));
    EXPECT_TRUE(run_until([&] { return result->has_value(); }));
    return std::move(**result);
  }
  /// With the SOA pair that moves the serial by one.
  zone::Changes changes(const std::vector<std::string>& removed,
                        const std::vector<std::string>& added) {
    zone::Changes list{name("@"), {}, {}};
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
  Journal journal;
  Committer committer;

 private:
  Journal open_journal(Files& files) {
    auto opened =
        Journal::open({folder.path() + "/journal", 64 << 10}, files, [](const JournalNote&) {});
    return shm::test::must(std::move(opened));
  }
};

}  // namespace pando::manager::testing

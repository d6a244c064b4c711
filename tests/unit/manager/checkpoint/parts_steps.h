#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/checkpoint/store_copy.h"
#include "manager/checkpoint/store_dump.h"
#include "manager/journal/journal_history.h"
#include "tests/unit/manager/commit/parts.h"

/// Steps that several tests take with Parts.
namespace pando::manager::testing {

/// The SOA record of "example." as kBasicZone has it, but for the serial.
inline std::string soa_line(std::uint32_t serial) {
  return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
}

/// An update as UPDATE makes it: with the SOA pair from the serial that is served to the next.
inline Parts::Applied update(Parts& parts, std::vector<std::string> removed,
                             std::vector<std::string> added) {
  const std::uint32_t serial = parts.zone.zone().serial().value;
  removed.push_back(soa_line(serial));
  added.push_back(soa_line(serial + 1));
  return parts.apply(removed, added);
}

/// As a start behind a kill has it, beside a store that is still there.
inline void open_journal_again(Parts& parts) {
  parts.journal = shm::test::must(
      Journal::open({parts.journal.directory(), 64 << 10}, parts.files, [](const JournalNote&) {}));
}

inline std::shared_ptr<HistorySource> history_of(Parts& parts) {
  return std::make_shared<HistorySource>(parts.files, parts.journal, [](const JournalNote&) {});
}

/// A dump of the version that is served, to the end. `ended`: the manager is ending.
inline Result<WrittenDump> write_dump(Parts& parts, Files& files, const std::string& path,
                                      bool ended = false) {
  DumpRequest request;
  request.path = path;
  request.owner = {5, 6};
  request.history = history_of(parts);
  request.ended = std::make_shared<std::atomic<bool>>(ended);
  auto outcome = std::make_shared<std::optional<Result<WrittenDump>>>();
  dump_store(parts.zone.store(), parts.slots, parts.journal, parts.io, parts.pool, files,
             std::move(request),
             [outcome](const Result<WrittenDump>& written) { *outcome = written; });
  EXPECT_TRUE(parts.run_until([&] { return outcome->has_value(); }));
  return std::move(**outcome);
}

/// The same with a copy.
inline Status write_copy(Parts& parts, Files& files, const std::string& path) {
  auto outcome = std::make_shared<std::optional<Status>>();
  copy_store(parts.zone.store(), parts.slots, parts.journal, parts.io, parts.pool, files,
             {path, std::make_shared<std::atomic<bool>>(false)},
             [outcome](const Status& status) { *outcome = status; });
  EXPECT_TRUE(parts.run_until([&] { return outcome->has_value(); }));
  return **outcome;
}

}  // namespace pando::manager::testing

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "manager/upkeep/journal_upkeep.h"
#include "manager/zonefile/zone_loader.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"

namespace pando::manager::testing {

inline constexpr const char* kFile =
    "$TTL 300\n"
    "@ 3600 SOA ns1 admin 10 3600 600 86400 300\n"
    "@ 3600 NS ns1\n"
    "ns1 A 192.0.2.1\n"
    "www A 192.0.2.10\n";

/// A key without a signature.
inline constexpr const char* kUnsignedKey =
    "@ 3600 DNSKEY 257 3 13 "
    "mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==\n";

/// "example." without data, a file of it, and what the manager does with both.
class Loader : public ::testing::Test {
 protected:
  using Kind = LoadOutcome::Kind;

  Loader() { unload(); }

  void unload() {
    const auto step = [](zone::Draft& draft) { return draft.unload_zone(name("@")); };
    ASSERT_TRUE(parts_.edit(step).has_value());
  }
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    // Two writes within the clock's tick would look like one file.
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + ++writes_)));
  }
  LoadOutcome load(bool optional = false) {
    return load_all({{name("@"), path_, optional, serial_policy_}});
  }
  /// With a journal that is read through `journal_files`.
  LoadOutcome load_with(Files& journal_files) {
    return load_all({{name("@"), path_, false, serial_policy_}}, {}, journal_files);
  }
  /// Beside a secondary's copy of a zone that nobody has configured.
  LoadOutcome load_among_others() {
    const std::string other = parts_.folder.path() + "/other.zone";
    std::ofstream(other) << kFile;
    return load_all({{name("@"), path_, false, serial_policy_}, {name("other."), other, true}});
  }
  /// `meanwhile` happens when a thread has begun to look, and before anything comes of that.
  LoadOutcome load_while(bool optional, const std::function<void()>& meanwhile) {
    return load_all({{name("@"), path_, optional, serial_policy_}}, meanwhile);
  }
  void make_secondary(bool secondary = true) {
    zone::ZoneSettings settings;
    settings.is_secondary = secondary;
    parts_.zone.commit(
        [&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), settings, 0); });
  }
  /// What became of "example."; outcomes_ has all.
  LoadOutcome load_all(std::deque<LoadJob> jobs, const std::function<void()>& meanwhile = {},
                       Files& journal_files = native_files()) {
    bool done = false;
    auto history = std::make_shared<HistorySource>(
        journal_files, parts_.journal,
        [this](const JournalNote& note) { notes_.push_back(note.text); });
    loader_.load({
        LoadKind::kFiles,
        [&]() -> std::optional<LoadJob> {
          if (jobs.empty()) return std::nullopt;
          LoadJob job = std::move(jobs.front());
          jobs.pop_front();
          return job;
        },
        history,
        [&](const LoadJob& job, const LoadOutcome& found) { outcomes_[to_text(job.apex)] = found; },
        [&] { done = true; },
    });
    if (meanwhile) {
      EXPECT_TRUE(parts_.run_until([&] { return loader_.progress(name("@")) != nullptr; }));
      meanwhile();
    }
    EXPECT_TRUE(parts_.run_until([&] { return done; }));
    return outcomes_["example."];
  }
  void snapshot() {
    JournalUpkeep upkeep(parts_.io, parts_.pool, parts_.journal_thread, native_files(),
                         parts_.journal, parts_.committer, parts_.slots, 1);
    upkeep.check(false);
    ASSERT_TRUE(parts_.run_until([&] { return !upkeep.running(); }));
    ASSERT_EQ(upkeep.snapshots(), 1U);
  }
  /// As a host restart does; the file and the journal stay.
  void lose_store() { unload(); }
  void leave() { ASSERT_TRUE(parts_.commit(&testing::leave_and_come_again).has_value()); }
  /// Neither another reload nor another loss of the store changes anything.
  void expect_stable() {
    const std::vector<std::string> before = parts_.zone.lines();
    const std::uint64_t position = parts_.journal.last_position();
    EXPECT_EQ(load().kind, Kind::kUnchanged);
    lose_store();
    EXPECT_EQ(load().kind, Kind::kLoaded);
    EXPECT_EQ(parts_.zone.lines(), before);
    EXPECT_EQ(parts_.journal.last_position(), position) << "the journal says all already";
  }
  /// Breaks the record that has these bytes.
  void damage(const std::string& part) {
    const std::string segment = parts_.journal.files().segments.back().path;
    std::string bytes;
    {
      std::ifstream in(segment, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    ASSERT_NE(bytes.find(part), std::string::npos);
    bytes[bytes.find(part)] ^= 1;
    std::ofstream(segment, std::ios::binary | std::ios::in) << bytes;
  }
  static std::string with_serial(int serial) {
    std::string text = kFile;
    text.replace(text.find("admin 10"), 8, fmt::format("admin {}", serial));
    return text;
  }
  std::uint32_t serial() { return parts_.zone.zone().serial().value; }
  void update(const std::vector<std::string>& removed, const std::vector<std::string>& added) {
    ASSERT_TRUE(testing::update(parts_, removed, added).has_value());
  }

  Parts parts_;
  std::string path_ = parts_.folder.path() + "/example.zone";
  int writes_ = 0;
  config::SerialPolicy serial_policy_ = config::SerialPolicy::kIncrement;
  ChangeRoad changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                           parts_.slots, parts_.committer, {}};
  ZoneLoader loader_{parts_.io,    parts_.pool,      2,        parts_.zone.store(),
                     parts_.slots, parts_.committer, changes_, {}};
  std::vector<std::string> notes_;
  std::map<std::string, LoadOutcome> outcomes_;
};

}  // namespace pando::manager::testing

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "manager/journal/journal.h"
#include "manager/journal/segment_reader.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager::testing {

/// A journal on a model of a disk, whose records are told by their payloads.
class JournalFixture : public ::testing::Test {
 protected:
  static constexpr const char* kFolder = "/journal";

  static dns::Name name(std::string_view text) { return dns::Name::from_text(text).value(); }
  static JournalEntry entry(std::string_view payload, std::string_view zone = "example.com.") {
    return {name(zone), dns::Serial{1}, dns::Serial{2}, Bytes(payload.begin(), payload.end())};
  }
  Journal open(std::uint64_t segment_bytes = 4096) {
    auto journal = Journal::open({kFolder, segment_bytes}, disk, sink());
    EXPECT_TRUE(journal.has_value()) << journal.error().text;
    return std::move(*journal);
  }
  NoteSink sink() {
    return [this](const JournalNote& note) {
      notes.push_back(note.text);
      if (note.severe) severe.push_back(note.text);
    };
  }
  std::vector<std::string> payloads(const Journal& journal, std::uint64_t after = 0) {
    std::vector<std::string> found;
    const auto visited = for_each_record(
        disk, journal.files(), after,
        [&](JournalRecord&& record) -> Status {
          found.emplace_back(record.payload.begin(), record.payload.end());
          return {};
        },
        sink());
    EXPECT_TRUE(visited.has_value());
    return found;
  }
  std::uint64_t append(Journal& journal, std::string_view payload) {
    const JournalEntry one[] = {entry(payload)};
    return journal.append(one).value();
  }
  Result<std::uint64_t> try_append(Journal& journal, std::string_view payload) {
    const JournalEntry one[] = {entry(payload)};
    return journal.append(one);
  }
  /// Leaves what a loss of power may leave of the group at `offset`: its first bytes.
  void tear(const Journal& journal, std::uint64_t offset) {
    Bytes& bytes = disk.contents(last_segment(journal));
    const std::uint64_t piece = (offset / kWrittenPiece + 1) * kWrittenPiece;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(piece), bytes.end(), 0);
  }
  std::string last_segment(const Journal& journal) { return journal.files().segments.back().path; }

  FakeDisk disk;
  std::vector<std::string> notes, severe;
};

}  // namespace pando::manager::testing

#include "manager/inspect/journal_print.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "dns/rdata/rdata.h"
#include "manager/io/directory_lock.h"
#include "manager/journal/journal.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/journal/segment_reader.h"

namespace pando::manager {
namespace journal_print_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

dns::Name name_of(std::string_view text) { return dns::Name::from_text(text).value(); }

zone::Record address(std::string_view owner, std::uint8_t last) {
  return {name_of(owner), dns::RRType::kA, {300}, {192, 0, 2, last}};
}

JournalEntry changeset(std::string_view zone, std::uint32_t from, std::vector<zone::Record> removed,
                       std::vector<zone::Record> added) {
  const zone::Changeset changes{name_of(zone), std::move(removed), std::move(added)};
  return {name_of(zone), dns::Serial{from}, dns::Serial{from + 1}, zone::encode(changes)};
}

/// A journal in a folder of its own, with four groups in two segments.
class JournalPrintTest : public ::testing::Test {
 protected:
  JournalPrintTest() {
    char pattern[] = "/tmp/pando-print-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    append({changeset("a.test", 5, {address("www.a.test", 1)}, {address("www.a.test", 2)})});
    append({changeset("b.test", 8, {}, {address("b.test", 3)})});
    journal().seal();
    append({removed_entry(name_of("b.test"), dns::Serial{9}, 1'700'000'000)});
    append({changeset("a.test", 6, {}, {address("mail.a.test", 9)})});
  }
  ~JournalPrintTest() override { fs::remove_all(folder_); }

  Journal& journal() {
    if (!journal_)
      journal_.emplace(
          Journal::open({folder_, 4096}, native_files(), [](const JournalNote&) {}).value());
    return *journal_;
  }
  void append(const std::vector<JournalEntry>& group) {
    ASSERT_TRUE(journal().append(group).has_value());
  }
  /// The journal's files by name, without the process that wrote them.
  std::vector<fs::path> segments() {
    journal_.reset();
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().extension() == ".journal") found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  }
  void flip(const fs::path& file, std::streamoff offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(offset);
    const int byte = stream.get();
    stream.seekp(offset);
    stream.put(static_cast<char>(byte ^ 0x40));
  }
  static std::vector<std::uint64_t> positions(const ipc::JournalPrintResult& result) {
    std::vector<std::uint64_t> found;
    for (const ipc::JournalRecordRow& row : result.records) found.push_back(row.position);
    return found;
  }

  std::string folder_;
  std::optional<Journal> journal_;
};

TEST_F(JournalPrintTest, RecordsAreInWords) {
  const auto printed = print_journal(native_files(), journal().files(), {});
  EXPECT_THAT(printed.damage, IsEmpty());
  ASSERT_THAT(positions(printed), ElementsAre(1, 2, 3, 4));
  const ipc::JournalRecordRow& first = printed.records[0];
  EXPECT_EQ(first.zone, "a.test.");
  EXPECT_EQ(first.kind, "changeset");
  EXPECT_EQ(first.from, 5U);
  EXPECT_EQ(first.to, 6U);
  EXPECT_THAT(first.removed, ElementsAre(ipc::RecordRow{"www.a.test.", 300, "A", "192.0.2.1"}));
  EXPECT_THAT(first.added, ElementsAre(ipc::RecordRow{"www.a.test.", 300, "A", "192.0.2.2"}));
  EXPECT_EQ(first.time, 0U);
  EXPECT_EQ(printed.records[2].kind, "gone");
  EXPECT_EQ(printed.records[2].time, 1'700'000'000U);
  EXPECT_EQ(printed.next, 0U);
  EXPECT_EQ(printed.last, 4U);
}

TEST_F(JournalPrintTest, PagesFollowEachOtherAndAZoneIsPickedOut) {
  JournalPage page;
  page.records = 3;
  auto printed = print_journal(native_files(), journal().files(), page);
  EXPECT_THAT(positions(printed), ElementsAre(1, 2, 3));
  EXPECT_EQ(printed.next, 4U);
  page.from = printed.next;
  printed = print_journal(native_files(), journal().files(), page);
  EXPECT_THAT(positions(printed), ElementsAre(4));
  EXPECT_EQ(printed.next, 0U);
  JournalPage of_zone;
  of_zone.zone = name_of("B.test");
  EXPECT_THAT(positions(print_journal(native_files(), journal().files(), of_zone)),
              ElementsAre(2, 3));
  of_zone.from = 99;
  EXPECT_THAT(positions(print_journal(native_files(), journal().files(), of_zone)), IsEmpty());
}

TEST_F(JournalPrintTest, LongRecordsAreCutAndCounted) {
  std::vector<zone::Record> many;
  for (std::uint8_t i = 0; i < 200; ++i) many.push_back(address("x.a.test", i));
  append({changeset("a.test", 7, {}, many)});
  JournalPage page;
  page.from = 5;
  page.rows = 10;
  const auto printed = print_journal(native_files(), journal().files(), page);
  ASSERT_THAT(positions(printed), ElementsAre(5));
  EXPECT_EQ(printed.records[0].added_count, 200U);
  EXPECT_EQ(printed.records[0].added.size(), 10U);
}

TEST_F(JournalPrintTest, APayloadThatIsNoChangesetIsToldAndNotHidden) {
  append({{name_of("a.test"), dns::Serial{7}, dns::Serial{8}, {1, 2, 3}}});
  JournalPage page;
  page.from = 5;
  const auto printed = print_journal(native_files(), journal().files(), page);
  ASSERT_EQ(printed.records.size(), 1U);
  EXPECT_THAT(printed.records[0].note, HasSubstr("cannot be decoded"));
}

TEST_F(JournalPrintTest, AFolderIsReadWithoutAManagerAndStaysAsItIs) {
  const auto files = segments();
  std::vector<std::pair<fs::path, fs::file_time_type>> before;
  for (const auto& entry : fs::directory_iterator(folder_))
    before.emplace_back(entry.path(), entry.last_write_time());
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const auto printed = print_journal_at(folder_, {});
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_TRUE(printed) << printed.error().text;
  EXPECT_THAT(positions(*printed), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(printed->damage, IsEmpty());
  for (const auto& [path, time] : before) EXPECT_EQ(fs::last_write_time(path), time) << path;
  const auto single = print_journal_at(files.back(), {});
  ASSERT_TRUE(single);
  EXPECT_THAT(positions(*single), ElementsAre(3, 4));
  EXPECT_THAT(single->damage, IsEmpty()) << "the others are not asked for";
}

TEST_F(JournalPrintTest, DamageIsToldAndWhatIsSoundBehindItIsPrinted) {
  const auto files = segments();
  flip(files.front(), kSegmentHeaderBytes + kRecordHeaderBytes + 3);
  auto printed = print_journal_at(folder_, {});
  ASSERT_TRUE(printed);
  EXPECT_THAT(positions(*printed), ElementsAre(2, 3, 4));
  EXPECT_THAT(printed->damage, ElementsAre(HasSubstr("record 1 is missing")));
  flip(files.front(), 40);  // its header
  printed = print_journal_at(folder_, {});
  ASSERT_TRUE(printed);
  EXPECT_THAT(positions(*printed), ElementsAre(3, 4));
  EXPECT_THAT(printed->damage, Contains(HasSubstr("records 1 to 2 are missing")));
  EXPECT_FALSE(print_journal_at(files.front(), {})) << "a single file that cannot be read";
}

TEST_F(JournalPrintTest, ADamagedAndATornEndAreTold) {
  const auto files = segments();
  // The record's last byte before its padding.
  std::uint64_t last = 0;
  {
    std::ifstream stream(files.back(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    last = text.find_last_not_of('\0');
  }
  flip(files.back(), static_cast<std::streamoff>(last));
  auto printed = print_journal_at(folder_, {});
  ASSERT_TRUE(printed);
  EXPECT_THAT(positions(*printed), ElementsAre(1, 2, 3));
  EXPECT_THAT(printed->damage, ElementsAre(HasSubstr("damaged behind record 3")));

  const std::uint64_t piece = last / kWrittenPiece * kWrittenPiece;
  {
    std::fstream stream(files.back(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(piece));
    stream << std::string(last - piece + 1, '\0');
  }
  printed = print_journal_at(folder_, {});
  ASSERT_TRUE(printed);
  EXPECT_THAT(positions(*printed), ElementsAre(1, 2, 3));
  EXPECT_THAT(printed->damage, ElementsAre(HasSubstr("behind record 3 there is a group that")));
}

TEST_F(JournalPrintTest, AFolderOfARunningManagerAndStrangePathsAreRefused) {
  segments();
  auto directory = OwnedDirectory::open("the.journal", folder_, std::nullopt);
  ASSERT_TRUE(directory);
  const auto lock = DirectoryLock::take(*directory, "journal.lock");
  ASSERT_TRUE(lock);
  const auto refused = print_journal_at(folder_, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExists);
  EXPECT_FALSE(print_journal_at("/nowhere/at/all", {}));
  const auto empty = print_journal_at("/tmp", {});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Errc::kNotFound);
}

}  // namespace journal_print_test
}  // namespace pando::manager

#include "dns/zonefile/zone_scanner_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/content_hash.h"
#include "dns/rdata/rdata.h"

namespace pando::dns {
namespace zone_scanner_parts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Scan {
  std::vector<std::string> records;  // "owner ttl type rdata"
  ScanReport report;
  std::uint64_t octets = 0;
};

class ZoneScannerParts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "zone_parts." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    write("included", "i 5 A 192.0.2.200\n$TTL 77\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  /// In one go without `parts`. The sink refuses owners that begin with "bad".
  static Scan scan(const std::string& path, const PartOptions* parts = nullptr) {
    Scan result;
    std::atomic<std::uint64_t> octets = 0;
    ScanOptions options;
    options.origin = Name::from_text("example.").value();
    options.max_errors = 3;
    options.bytes_read = &octets;
    const RecordSink sink = [&result](const ScannedRecord& record) -> Status {
      const std::string owner = to_text(record.owner);
      if (owner.starts_with("bad")) return fail(Errc::kInvalid, "refused {}", owner);
      result.records.push_back(fmt::format("{} {} {} {}", owner, record.ttl.seconds,
                                           to_text(record.type),
                                           rdata_to_text(record.type, record.rdata)));
      return {};
    };
    result.report = parts != nullptr ? scan_zone_file_in_parts(path, options, *parts, sink)
                                     : scan_zone_file(path, options, sink);
    result.octets = octets;
    return result;
  }

  /// The same whatever the parts are.
  static void expect_same(const std::string& path, std::string_view text) {
    const Scan whole = scan(path);
    for (const unsigned threads : {1U, 3U})
      for (const std::size_t octets : {1U, 40U, 150U, 1000U}) {
        const PartOptions parts{threads, octets, 0};
        const Scan found = scan(path, &parts);
        const std::string what = fmt::format("{} threads, {} octets:\n{}", threads, octets, text);
        ASSERT_EQ(found.records, whole.records) << what;
        ASSERT_EQ(found.report.records, whole.report.records) << what;
        ASSERT_EQ(found.report.errors, whole.report.errors) << what;
        ASSERT_EQ(found.report.warnings, whole.report.warnings) << what;
        if (found.report.ok()) {
          ASSERT_EQ(found.octets, whole.octets) << what;
          ASSERT_EQ(found.report.content_hash, whole.report.content_hash) << what;
          ASSERT_EQ(found.report.has_included, whole.report.has_included) << what;
        }
      }
  }

  std::string folder_;
};

TEST_F(ZoneScannerParts, OrdinaryFileIsScannedInParts) {
  std::string text = "$TTL 60\n@ SOA ns m 1 2 3 4 5\n@ NS ns\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("n{} A 192.0.2.{}\n  TXT \"x\"\n", i, i % 256);
  expect_same(write("zone", text), text);
}

TEST_F(ZoneScannerParts, AFileIsHashedWithWhatItIncludes) {
  std::string text = "$TTL 60\n@ SOA ns m 1 2 3 4 5\n@ NS ns\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("n{} A 192.0.2.{}\n", i, i % 256);
  ContentHash expected;
  expected.add(text.data(), 1);
  expected.add(text.data() + 1, text.size() - 1);
  EXPECT_EQ(scan(write("zone", text)).report.content_hash, expected.value());
  EXPECT_NE(scan(write("zone", text + ";\n")).report.content_hash, expected.value());
  expect_same(write("zone", text + ";\n"), text);
  EXPECT_FALSE(scan(write("zone", text)).report.has_included);
  text += "$INCLUDE included\n";
  const ScanReport before = scan(write("zone", text)).report;
  EXPECT_TRUE(before.has_included);
  expect_same(write("zone", text), text);
  write("included", "i 5 A 192.0.2.201\n$TTL 77\n");
  const ScanReport after = scan(write("zone", text)).report;
  expect_same(write("zone", text), text);
  expected.add("$INCLUDE included\n", 18);
  EXPECT_EQ((std::set{before.content_hash, after.content_hash, expected.value(), std::uint64_t{0}})
                .size(),
            4U)
      << "neither of its own octets alone";
}

TEST_F(ZoneScannerParts, AByteOrderMarkIsSkippedAtTheBeginningOfEachFileAlone) {
  const std::string mark = "\xEF\xBB\xBF";
  std::string text = mark + "$TTL 60\n@ SOA ns m 1 2 3 4 5\n@ NS ns\n$INCLUDE marked\n";
  write("marked", mark + "marked 5 A 192.0.2.200\n");
  for (int i = 0; i < 40; ++i) text += fmt::format("n{} A 192.0.2.{}\n", i, i);
  const std::string path = write("zone", text);
  EXPECT_THAT(scan(path).report.errors, IsEmpty());
  EXPECT_EQ(scan(path).report.records, 43U);
  expect_same(path, text);
  EXPECT_NE(scan(path).report.content_hash,
            scan(write("unmarked", text.substr(3))).report.content_hash);

  text += mark + "late A 192.0.2.1\n";
  EXPECT_THAT(scan(write("zone", text)).report.records, 44U) << "octets of a name";
  expect_same(write("zone", text), text);
  for (const std::string_view cut : {mark.substr(0, 1), mark.substr(0, 2), mark})
    expect_same(write("zone", cut), cut);
  EXPECT_THAT(scan(write("zone", mark)).report.errors, IsEmpty());
  EXPECT_EQ(scan_zone_text(mark + "@ SOA ns m 1 2 3 4 5\n", "memory", {},
                           [](const auto&) { return Status(); })
                .records,
            1U);
}

TEST_F(ZoneScannerParts, BlankOwnerBehindAnOriginOfAnEarlierPartGetsAWarning) {
  // The origin in capitals differs from the one assumed for the parts behind it.
  std::string text = "$TTL 60\n@ SOA ns m 1 2 3 4 5\na A 192.0.2.1\n$ORIGIN EXAMPLE.\n; none\n";
  text += "  TXT blank\nb A 192.0.2.2\n  TXT blank\n";
  const std::string path = write("zone", text);
  EXPECT_THAT(scan(path).report.warnings, ::testing::ElementsAre(::testing::HasSubstr(":6: ")));
  expect_same(path, text);
}

TEST_F(ZoneScannerParts, RandomTextIsScannedAsInOneGo) {
  const std::vector<std::string> pieces = {
      "a{} A 192.0.2.1\n",
      "a{} 7 MX 5 mail\n",
      "A{}.b TXT \"x;y\" \"( \" ; note (\n",
      "  TXT blank{}\n",
      "\n; comment {}\n",
      "; only\n; comments\n; here, longer than a part {}\n; and more of them, and more of them\n",
      "p{} TXT (\none\n  two )\n",
      "q{} TXT ( one\nA ; no owner\n192.0.2.1\n)\n",
      "r{} TXT \"a\\\"b\" \\010\n",
      "b{} A 192.0.2.1 \r\n",
      "c{} CNAME @\n",
  };
  const std::vector<std::string> rare = {
      "$TTL {}\n",
      "$ORIGIN sub{}\n",
      "$ORIGIN example.\n",
      "$ORIGIN EXAMPLE.\n",
      "$GENERATE 1-3 g{}x$ A 192.0.2.$\n",
      "$INCLUDE included\n",
      "$INCLUDE missing{}\n",
      "bad{} A 192.0.2.1\n",
      "w{} A 192.0.2.300\n",
      "x{} TXT ( never closed\n",
      "y{} TXT \"never closed\n",
      "z{} 4294967295 A 192.0.2.1\n",
      "$NOTHING {}\n",
  };
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 150; ++round) {
    std::string text = round % 3 == 0 ? "" : "$TTL 60\n";
    const auto oddness = static_cast<unsigned>(round % 5);
    const auto lines = random() % 60;
    for (unsigned long i = 0; i < lines; ++i) {
      const auto& from = random() % 40 < oddness ? rare : pieces;
      text += fmt::format(fmt::runtime(from[random() % from.size()]), random() % 100);
    }
    if (round % 7 == 0) text += "end A 192.0.2.9";
    expect_same(write("zone", text), text);
    if (HasFatalFailure()) return;
  }
}

TEST_F(ZoneScannerParts, RefusalNamesItsLineAndNothingIsHandedOutTwice) {
  std::string text = "$TTL 60\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("n{} A 192.0.2.1\n", i);
  text += "bad1 A 192.0.2.1\nlast A 192.0.2.1\n";
  const PartOptions parts{2, 100, 0};
  const Scan found = scan(write("zone", text), &parts);
  EXPECT_THAT(found.report.errors, ElementsAre(folder_ + "/zone:52: refused bad1.example."));
  EXPECT_EQ(found.records.size(), 51U);
  EXPECT_EQ(found.report.records, 52U);
}

TEST_F(ZoneScannerParts, FileThatChangesMeanwhileIsAnError) {
  std::string text = "$TTL 60\n";
  for (int i = 0; i < 5000; ++i) text += fmt::format("n{} A 192.0.2.1\n", i);
  const std::string path = write("zone", text);
  ScanOptions options;
  options.origin = Name::from_text("example.").value();
  bool changed = false;
  const ScanReport report =
      scan_zone_file_in_parts(path, options, PartOptions{2, 1000, 0}, [&](const ScannedRecord&) {
        if (!std::exchange(changed, true))
          std::ofstream(path, std::ios::app) << "more A 192.0.2.1\n";
        return Status{};
      });
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("file was changed while it was read")));
}

TEST_F(ZoneScannerParts, WhatIsNoFileIsTheSameError) {
  const PartOptions parts{2, 1000, 0};
  EXPECT_EQ(scan(folder_ + "/none", &parts).report.errors, scan(folder_ + "/none").report.errors);
  EXPECT_EQ(scan(folder_, &parts).report.errors, scan(folder_).report.errors);
  EXPECT_THAT(scan(write("empty", ""), &parts).report.errors, IsEmpty());
}

}  // namespace zone_scanner_parts_test
}  // namespace pando::dns

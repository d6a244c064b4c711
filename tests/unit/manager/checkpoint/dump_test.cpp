// Dumps: what is written is what a store is made from again, and whatever is wrong with the bytes,
// they are refused rather than served.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <filesystem>

#include "manager/checkpoint/dump_loading.h"
#include "manager/checkpoint/placed_dump.h"
#include "manager/journal/journal_identity.h"
#include "manager/journal/record/journal_payload.h"
#include "shm/inspect/inspection.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/audit/audit.h"
#include "zone/dump/dump_writer.h"
#include "zone/history/history.h"
#include "zone/read/each_record.h"

namespace pando::manager {
namespace dump_test {

using shm::test::must;
using ::testing::HasSubstr;
using testing::name;
using testing::Parts;
using testing::record;
using testing::soa_line;

/// A store that is read back from bytes.
zone::DumpReader::Source source_of(const Bytes& bytes) {
  return [&bytes, at = std::size_t{0}](std::span<std::uint8_t> into) mutable {
    const std::size_t got = std::min(into.size(), bytes.size() - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), got, into.begin());
    at += got;
    return Result<std::size_t>(got);
  };
}

Result<zone::DumpCounts> check(const Bytes& bytes) {
  auto reader = zone::DumpReader::open(source_of(bytes), "f");
  if (!reader) return pass(reader);
  return zone::check_dump(*reader);
}

/// An empty store that a dump is loaded into.
class Target {
 public:
  Target() : store_(make()) {}
  Result<LoadedDump> load(const Bytes& bytes, const zone::DataLimits& limits = {}) {
    auto reader = zone::DumpReader::open(source_of(bytes), "f");
    if (!reader) return pass(reader);
    return load_dump(store_, *reader, limits);
  }
  shm::Store& store() { return store_; }
  [[nodiscard]] zone::ZoneView zone(std::string_view text) const {
    const shm::VersionInfo now = store_.current();
    return zone::StoreView(store_.window(), now.root, now.number).zone_at(name(text));
  }

 private:
  shm::Store make() {
    shm::StoreOptions options = shm::test::options(folder_, 64 << 20);
    options.layout = zone::layout_fingerprint();
    return must(shm::Store::create(options));
  }
  shm::test::Folder folder_;
  shm::Store store_;
};

std::vector<std::string> records_of(const zone::ZoneView& zone) {
  std::vector<std::string> lines;
  must(zone::for_each_record(
      zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
        lines.push_back(fmt::format("{} {} {} {}", to_text(owner), ttl.seconds, to_text(type),
                                    dns::rdata_to_text(type, rdata)));
        return {};
      }));
  return lines;
}

std::vector<std::string> history_of(const zone::ZoneView& zone) {
  std::vector<std::string> lines;
  auto reader = zone::HistoryReader::from_oldest(zone);
  if (!reader) return lines;
  while (const zone::HistoryRecord* found = reader->next())
    lines.push_back(fmt::format("{}-{} {} {} {} {} {}", reader->from().value, reader->to().value,
                                found->added ? "+" : "-", to_text(found->owner), found->ttl.seconds,
                                to_text(found->type),
                                dns::rdata_to_text(found->type, found->rdata)));
  EXPECT_FALSE(reader->damaged());
  return lines;
}

/// A store with updates, and its dump.
class Dump : public ::testing::Test {
 protected:
  void update(std::uint32_t from, const std::vector<std::string>& removed,
              const std::vector<std::string>& added) {
    auto out = removed;
    auto in = added;
    out.push_back(soa_line(from));
    in.push_back(soa_line(from + 1));
    must(parts_.apply(out, in));
  }
  Bytes dump(std::vector<zone::DumpNote> notes = {}) {
    Bytes bytes;
    zone::DumpWriter writer(
        [&](ByteView part) -> Status {
          append(bytes, part);
          return {};
        },
        {{7, 8}, 1700000000, 3, 42, 0});
    const zone::StoreView version = parts_.zone.view();
    version.for_each_zone([&](const zone::ZoneView& zone) {
      must(writer.put_zone(zone, parts_.zone.store().side(zone.side_index()), notes));
    });
    must(writer.finish());
    EXPECT_EQ(bytes.size(), writer.bytes());
    return bytes;
  }
  /// Another zone, without data.
  void configure(std::string_view apex, std::uint32_t side, bool secondary) {
    must(parts_.edit([=](zone::Draft& draft) {
      zone::ZoneSettings settings;
      settings.is_secondary = secondary;
      return draft.put_zone_settings(name(apex), settings, side);
    }));
  }

  Parts parts_;
};

TEST_F(Dump, MakesTheStoreAgain) {
  update(10, {"www 300 A 192.0.2.10"}, {"new 60 TXT \"one\""});
  update(11, {}, {"new 60 TXT \"two\"", "*.w 5 MX 10 ns1"});
  configure("other.", 1, true);
  parts_.zone.store().side(1)->expires_at.store(1234);
  parts_.zone.store().side(1)->next_refresh.store(99);
  parts_.zone.store().side(1)->last_ok.store(98);
  Target target;
  const LoadedDump loaded = must(target.load(dump()));
  EXPECT_EQ(loaded.counts, (zone::DumpCounts{2, 12, 2}));
  const zone::ZoneView zone = target.zone("@");
  EXPECT_EQ(records_of(zone), records_of(parts_.zone.zone()));
  EXPECT_EQ(zone.serial(), dns::Serial{12});
  EXPECT_EQ(history_of(zone), history_of(parts_.zone.zone()));
  EXPECT_EQ(history_of(zone).size(), 8U);
  EXPECT_EQ(target.store().current().journal_position, 42U);
  const zone::ZoneView other = target.zone("other.");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other.loaded());
  EXPECT_TRUE(must(zone::decode_zone_settings(other.settings_bytes())).is_secondary);
  EXPECT_FALSE(must(zone::decode_zone_settings(zone.settings_bytes())).is_secondary);
  const auto* side = target.store().side(other.side_index());
  EXPECT_EQ(side->expires_at.load(), 1234U);
  EXPECT_EQ(side->next_refresh.load(), 99U);
  EXPECT_EQ(side->last_ok.load(), 98U);
  must(target.store().check());
}

TEST_F(Dump, HasTheSerialOfThePrimary) {
  Target before;
  must(before.load(dump()));
  EXPECT_EQ(zone::primary_serial(before.zone("@")), std::nullopt);
  must(parts_.edit(
      [](zone::Draft& draft) { return draft.put_primary_serial(name("@"), dns::Serial{40}); }));
  Target target;
  must(target.load(dump()));
  EXPECT_EQ(zone::primary_serial(target.zone("@")), std::optional(dns::Serial{40}));
  EXPECT_EQ(records_of(target.zone("@")), records_of(parts_.zone.zone()));
}

TEST_F(Dump, LargeZonesAndDifferencesComeInParts) {
  std::vector<std::string> added;
  for (int i = 0; i < 400; ++i)
    added.push_back(fmt::format("n{} 60 TXT \"{}\" \"{}\" {}", i, std::string(250, 'x'), i, [] {
      std::string more;
      for (int k = 0; k < 20; ++k) more += "\"" + std::string(250, 'y') + "\" ";
      return more;
    }()));
  update(10, {}, added);
  update(11, {}, {"last 60 A 192.0.2.1"});
  const Bytes bytes = dump();
  ASSERT_GT(bytes.size(), 4 * zone::kDumpPartBytes);
  Target target;
  must(target.load(bytes));
  EXPECT_EQ(records_of(target.zone("@")), records_of(parts_.zone.zone()));
  EXPECT_EQ(history_of(target.zone("@")), history_of(parts_.zone.zone()));
}

TEST_F(Dump, HistoriesAreAsLongAsTheLimitsAllow) {
  for (std::uint32_t serial = 10; serial < 40; ++serial)
    update(serial, {}, {fmt::format("n{} 60 A 192.0.2.1", serial)});
  zone::DataLimits limits;
  limits.history = 2000;
  Target target;
  must(target.load(dump(), limits));
  EXPECT_LE(target.zone("@").history_bytes(), 2000U);
  const auto all = history_of(parts_.zone.zone());
  const auto kept = history_of(target.zone("@"));
  ASSERT_FALSE(kept.empty());
  EXPECT_TRUE(std::equal(kept.rbegin(), kept.rend(), all.rbegin()));
  limits.history = 10;
  Target none;
  must(none.load(dump(), limits));
  EXPECT_TRUE(history_of(none.zone("@")).empty());
}

TEST_F(Dump, AChangesetThatIsTooLongLeavesNoGap) {
  update(10, {}, {"a 60 A 192.0.2.1"});
  update(11, {},
         {fmt::format("b 60 TXT \"{}\" \"{}\"", std::string(250, 'x'), std::string(250, 'y'))});
  update(12, {}, {"c 60 A 192.0.2.1"});
  zone::DataLimits limits;
  limits.history = 600;
  Target target;
  must(target.load(dump(), limits));
  const auto kept = history_of(target.zone("@"));
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_TRUE(kept.front().starts_with("12-13 "));
}

/// The snapshots of `zone`, with the data and history that each leads to.
std::vector<std::string> snapshots_in(const zone::ZoneView& zone) {
  std::vector<std::string> lines;
  for (const zone::ZoneSnapshot& one : zone::snapshots_of(zone)) {
    lines.push_back(fmt::format("{} {} {} {} {} {}", one.label, one.serial.value, one.taken,
                                one.records, to_text(one.state), one.archive != 0));
    const zone::ZoneView data = zone::data_of(zone, one);
    if (!data) continue;
    for (const auto& part : {records_of(data), history_of(data)})
      lines.insert(lines.end(), part.begin(), part.end());
  }
  return lines;
}

class DumpOfSnapshots : public Dump {
 protected:
  void save(std::string_view label) {
    parts_.zone.commit(
        [&](zone::Draft& draft) { return draft.take_snapshot(name("@"), label, 1234, {}); });
  }
  /// Two of archived data, one of others that were, two of the zone's own.
  void make() {
    save("first");
    update(10, {}, {"a 60 A 192.0.2.1"});
    save("second");
    update(11, {"a 60 A 192.0.2.1"}, {"b 60 A 192.0.2.1"});
    parts_.zone.put({soa_line(50), "@ 60 NS ns1", "ns1 60 A 192.0.2.1"});
    save("third");
    parts_.zone.put({soa_line(70), "@ 60 NS ns2", "ns2 60 A 192.0.2.1"});
    update(70, {}, {"before 60 A 192.0.2.1"});
    save("fourth");
    update(71, {}, {"c 60 A 192.0.2.1"});
    save("fifth");
  }
  static void expect_sound(shm::Store& store) {
    zone::Audit result = zone::audit(store.window(), store.current().root);
    compare_chunks(result, shm::occupancy(store.window()));
    EXPECT_EQ(result.fault_count, 0U) << (result.faults.empty() ? "" : result.faults.front());
  }
};

TEST_F(DumpOfSnapshots, HasThemWithAllThatLeadsToThem) {
  make();
  ASSERT_EQ(zone::snapshots_of(parts_.zone.zone()).size(), 5U);
  Target target;
  const LoadedDump loaded = must(target.load(dump()));
  EXPECT_EQ(loaded.counts, (zone::DumpCounts{1, 5, 4, 5}));
  EXPECT_EQ(snapshots_in(target.zone("@")), snapshots_in(parts_.zone.zone()));
  EXPECT_EQ(records_of(target.zone("@")), records_of(parts_.zone.zone()));
  EXPECT_EQ(history_of(target.zone("@")), history_of(parts_.zone.zone()));
  expect_sound(target.store());
}

TEST_F(DumpOfSnapshots, AZoneWithoutDataKeepsThem) {
  make();
  parts_.zone.commit([](zone::Draft& draft) { return draft.unload_zone(name("@")); });
  Target target;
  must(target.load(dump()));
  EXPECT_FALSE(target.zone("@").loaded());
  EXPECT_EQ(snapshots_in(target.zone("@")), snapshots_in(parts_.zone.zone()));
  EXPECT_GT(snapshots_in(target.zone("@")).size(), 20U);
  expect_sound(target.store());
}

TEST_F(DumpOfSnapshots, TheLostOnesComeWithTheReason) {
  zone::DataLimits limits;
  limits.history = 300;
  limits.snapshots = 300;
  save("lost");
  for (std::uint32_t serial = 10; serial < 20; ++serial)
    update(serial, {}, {fmt::format("n{} 60 A 192.0.2.1", serial)});
  save("held");
  update(20, {}, {"last 60 A 192.0.2.1"});
  Target target;  // which is allowed less
  must(target.load(dump(), limits));
  const auto snapshots = zone::snapshots_of(target.zone("@"));
  ASSERT_EQ(snapshots.size(), 2U);
  EXPECT_EQ(snapshots[0].state, zone::ZoneSnapshot::State::kTooLarge);
  EXPECT_TRUE(snapshots[1].held());
  expect_sound(target.store());
  // And on from there: what is lost stays so.
  Bytes again;
  zone::DumpWriter writer(
      [&](ByteView part) -> Status {
        append(again, part);
        return {};
      },
      {{7, 8}, 1700000000, 3, 42, 0});
  must(writer.put_zone(target.zone("@"), nullptr, {}));
  must(writer.finish());
  Target last;
  must(last.load(again));
  EXPECT_EQ(snapshots_in(last.zone("@")), snapshots_in(target.zone("@")));
}

TEST_F(Dump, OneOfAnotherVersionIsRefused) {
  for (const std::uint32_t version : {0U, zone::kDumpVersion + 1}) {
    Bytes other = dump();
    store_be32(other.data() + 8, version);
    store_be64(other.data() + 72, XXH3_64bits(other.data(), 72));
    const auto found = check(other);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::kLayout);
    EXPECT_EQ(found.error().text,
              fmt::format("f: byte 0: a dump of version {}, this build reads version {}", version,
                          zone::kDumpVersion));
  }
}

TEST_F(Dump, OneThatIsCutOffAnywhereIsRefused) {
  update(10, {}, {"new 60 TXT \"one\""});
  const Bytes whole = dump();
  must(check(whole));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    const auto found = check(part);
    ASSERT_FALSE(found) << bytes;
    ASSERT_TRUE(found.error().text.starts_with("f: byte ")) << found.error().text;
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_THAT(check(longer).error().text, HasSubstr("after the end"));
}

TEST_F(Dump, AnyBitThatIsAnotherIsFound) {
  update(10, {}, {"new 60 TXT \"one\""});
  const Bytes whole = dump();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    ASSERT_FALSE(check(damaged)) << bit;
  }
}

/// Streams with right checksums and wrong contents.
class Crafted {
 public:
  Crafted() { bytes_ = encode(zone::DumpHeader{{1, 2}, 3, 4, 5, 6}); }
  Crafted& add(const zone::DumpItem& item) {
    zone::append_dump_record(bytes_, item, ++number_, 6);
    return *this;
  }
  Crafted& zone(std::string_view apex, std::uint64_t records, std::uint32_t serial = 10) {
    zone::DumpZone head;
    head.name = name(apex);
    head.loaded = true;
    head.records = records;
    head.serial = {serial};
    return add(head);
  }
  Crafted& part(const std::vector<std::string>& lines) {
    zone::DumpPart part{{name("@"), {}, {}}};
    for (const std::string& line : lines) part.records.added.push_back(record(line));
    return add(part);
  }
  Crafted& changeset(std::uint32_t from, std::uint32_t to, bool last = true) {
    return add(zone::DumpChangeset{
        {from}, {to}, last, {name("@"), {record(soa_line(from))}, {record(soa_line(to))}}});
  }
  Crafted& snapshot(std::string_view label, std::uint32_t serial) {
    return add(zone::DumpSnapshot{{std::string(label), {serial}, 1, 2}});
  }
  Crafted& end() { return add(zone::DumpZoneEnd{}); }
  const Bytes& finish(const zone::DumpCounts& counts) { return add(counts).bytes_; }
  /// The first error of reading it, or of loading.
  std::string error() {
    Target target;
    const auto loaded = target.load(bytes_);
    return loaded ? "" : loaded.error().text;
  }

 private:
  Bytes bytes_;
  std::uint64_t number_ = 0;
};

TEST(CraftedDump, IsReadInOneOrderOnly) {
  const std::vector<std::string> sound{soa_line(10), "@ 60 NS a"};
  const auto good = [&] { return Crafted().zone("@", 2).part(sound); };
  EXPECT_TRUE(check(good().end().finish({1, 2, 0})));
  EXPECT_THAT(good().end().add(zone::DumpCounts{1, 3, 0}).error(), HasSubstr("counts"));
  EXPECT_THAT(Crafted().end().error(), HasSubstr("in a wrong place"));
  EXPECT_THAT(Crafted().part(sound).error(), HasSubstr("records of"));
  EXPECT_THAT(good().zone("b.@", 0).error(), HasSubstr("in a wrong place"));
  EXPECT_THAT(good().add(zone::DumpCounts{1, 2, 0}).error(), HasSubstr("in a wrong place"));
  EXPECT_THAT(good().end().zone("@", 0).error(), HasSubstr("zones are in order"));
  EXPECT_THAT(Crafted().zone("@", 3).part(sound).end().error(),
              HasSubstr("2 records, its header counts 3"));
  EXPECT_THAT(good().changeset(9, 10).part(sound).error(), HasSubstr("in a wrong place"));
  EXPECT_THAT(good().changeset(8, 9).end().error(), HasSubstr("ends at 9"));
  EXPECT_THAT(good().changeset(7, 8).changeset(9, 10).error(), HasSubstr("after serial 8"));
  EXPECT_THAT(good().changeset(9, 10, false).end().error(), HasSubstr("a changeset's"));
  EXPECT_THAT(good().changeset(10, 10).error(), HasSubstr("not ahead"));
}

TEST(CraftedDump, SnapshotsStandWhereTheyBelong) {
  const std::vector<std::string> sound{soa_line(10), "@ 60 NS a"};
  const auto good = [&] { return Crafted().zone("@", 2).part(sound); };
  const auto archive = zone::DumpArchive{{10}, 2};
  EXPECT_TRUE(
      check(good().snapshot("a", 9).changeset(9, 10).snapshot("b", 10).end().finish({1, 2, 1, 2})));
  EXPECT_TRUE(check(good().snapshot("a", 10).add(archive).part(sound).end().finish({1, 2, 0, 1})));
  EXPECT_THAT(good().snapshot("a", 9).end().error(), HasSubstr("ends at 9"));
  EXPECT_THAT(good().snapshot("a", 8).changeset(9, 10).error(), HasSubstr("after serial 8"));
  EXPECT_THAT(good().changeset(8, 9).snapshot("a", 8).error(), HasSubstr("which is not there"));
  EXPECT_THAT(good().snapshot("a", 10).snapshot("a", 10).error(), HasSubstr("two snapshots"));
  EXPECT_THAT(good().snapshot("a/b", 10).error(), HasSubstr("a label has"));
  EXPECT_THAT(Crafted().zone("@", 2).snapshot("a", 10).error(), HasSubstr("which is not there"));
  EXPECT_THAT(good().add(archive).error(), HasSubstr("in a wrong place")) << "for nobody";
  EXPECT_THAT(good().snapshot("a", 10).add(zone::DumpArchive{{10}, 3}).error(),
              HasSubstr("2 records, its header counts 3"));
  EXPECT_THAT(good().snapshot("a", 10).add(zone::DumpArchive{{11}, 2}).error(),
              HasSubstr("ends at 10"));
  EXPECT_THAT(good().snapshot("a", 10).add(archive).end().error(),
              HasSubstr("0 records, its header counts 2"));
  EXPECT_THAT(good().add(zone::DumpNote{9, {}, {}, Bytes(24)}).snapshot("a", 10).error(),
              HasSubstr("in a wrong place"));
  Crafted many = good();
  for (std::size_t i = 0; i <= zone::kMaxSnapshots; ++i) many.snapshot(fmt::format("v{}", i), 10);
  EXPECT_THAT(many.error(), HasSubstr("more snapshots"));
}

TEST(CraftedDump, WhatNoServerCouldServeIsRefused) {
  const std::vector<std::string> sound{soa_line(10), "@ 60 NS a"};
  EXPECT_THAT(Crafted().zone("@", 1).part({"www.other. 60 A 192.0.2.1"}).error(),
              HasSubstr("is not in"));
  zone::DumpPart part{{name("@"), {}, {{name("@"), dns::RRType::kA, {60}, {1, 2, 3}}}}};
  EXPECT_THAT(Crafted().zone("@", 1).add(part).error(), HasSubstr("byte"));
  part.records.added[0].type = dns::RRType{255};
  EXPECT_THAT(Crafted().zone("@", 1).add(part).error(), HasSubstr("cannot be in a zone"));
  part.records = {name("other."), {}, {}};
  EXPECT_THAT(Crafted().zone("@", 1).add(part).error(), HasSubstr("other."));
  EXPECT_NE(Crafted().zone("@", 1).part({"@ 60 NS a"}).end().error(), "");
  EXPECT_THAT(Crafted().zone("@", 2, 11).part(sound).end().error(), HasSubstr("has serial 10"));
  EXPECT_THAT(Crafted().zone("@", 2).part(sound).add(zone::DumpNote{1, {1}, {2}, {}}).error(),
              HasSubstr("a note of kind 1"));
  EXPECT_THAT(Crafted().zone("@", 2).part(sound).add(zone::DumpNote{8, {1}, {2}, {0, 9}}).error(),
              HasSubstr("damaged"));
}

TEST(CraftedDump, AStampIsThatOfTheFileThatTheZoneNames) {
  const std::vector<std::string> sound{soa_line(10), "@ 60 NS a"};
  const zone::ZoneFileInfo noted{12, 34, 56, 78};
  const auto stamp_of = [&](const Bytes& note, bool with_history) {
    zone::DumpZone head;
    head.name = name("@");
    head.loaded = true;
    head.records = 2;
    head.serial = {10};
    head.source = noted;
    Crafted crafted;
    crafted.add(head).part(sound);
    if (with_history) crafted.changeset(9, 10);
    Target target;
    must(target.load(crafted.add(zone::DumpNote{9, {10}, {10}, note})
                         .end()
                         .finish({1, 2, with_history ? 1U : 0U})));
    return target.zone("@").source().stamp;
  };
  for (const bool with_history : {false, true}) {
    EXPECT_EQ(stamp_of(encode_stamped(noted), with_history), 78U);
    EXPECT_EQ(stamp_of(encode(noted), with_history), 0U) << "as earlier builds wrote it";
    EXPECT_EQ(stamp_of(encode_stamped({12, 34, 57, 78}), with_history), 0U) << "another file";
  }
}

TEST(CraftedDump, ALengthThatLiesTakesNoMemory) {
  Bytes bytes = encode(zone::DumpHeader{{1, 2}, 3, 4, 5, 6});
  zone::append_dump_record(bytes, zone::DumpZoneEnd{}, 1, 6);
  store_be32(bytes.data() + zone::kDumpHeaderBytes + 4, zone::kMaxDumpBody);
  std::size_t largest = 0;
  auto source = source_of(bytes);
  auto reader = must(zone::DumpReader::open(
      [&](std::span<std::uint8_t> into) {
        largest = std::max(largest, into.size());
        return source(into);
      },
      "f"));
  EXPECT_THAT(reader.next().error().text, HasSubstr("ends in the middle"));
  EXPECT_LE(largest, std::size_t{1} << 20);
}

// Files ------------------------------------------------------------------------------------------

class DumpFile : public Dump {
 protected:
  Result<WrittenDump> write(const std::string& path, Files& files = native_files(),
                            bool ended = false) {
    return testing::write_dump(parts_, files, path, ended);
  }
  [[nodiscard]] std::string path(std::string_view leaf) const {
    return fmt::format("{}/{}", parts_.folder.path(), leaf);
  }
};

TEST_F(DumpFile, IsWholeAndForItsOwnerAlone) {
  update(10, {}, {"new 60 A 192.0.2.1"});
  const WrittenDump written = must(write(path("d")));
  EXPECT_EQ(written.counts.zones, 1U);
  EXPECT_EQ(written.bytes, std::filesystem::file_size(path("d")));
  struct stat status{};
  ASSERT_EQ(::stat(path("d").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path("d.partial")));
}

TEST_F(DumpFile, OneThatIsGivenUpLeavesWhatWasThere) {
  must(write(path("d")));
  const auto before = std::filesystem::last_write_time(path("d"));
  EXPECT_THAT(write(path("d"), native_files(), true).error().text, HasSubstr("is ending"));
  EXPECT_EQ(std::filesystem::last_write_time(path("d")), before);
  EXPECT_FALSE(std::filesystem::exists(path("d.partial")));
}

/// A server that starts on a dump, with a journal of its own.
class Start {
 public:
  explicit Start(const std::string& journal) : journal_(journal) {
    std::filesystem::create_directories(journal);
    owner_ = must(journal_identity(native_files(), journal));
  }
  Result<std::unique_ptr<PlacedDump>> find() {
    return PlacedDump::find(native_files(), journal_, owner_);
  }
  Status run() {
    auto dump = find();
    if (!dump) return pass(dump);
    auto journal = must(Journal::open({journal_}, native_files(), [](const JournalNote&) {}));
    auto done = (*dump)->bring_up(target.store(), journal, {}, [](const JournalNote&) {});
    last = journal.last_position();
    history = JournalHistory::read(native_files(), journal.files(), [](const JournalNote&) {});
    return done;
  }
  const shm::StoreOwner& owner() const { return owner_; }

  Target target;
  std::uint64_t last = 0;
  std::shared_ptr<const JournalHistory> history;

 private:
  std::string journal_;
  shm::StoreOwner owner_{};
};

TEST_F(DumpFile, BringsWhatCameByUpdateToAnotherJournal) {
  update(10, {"www 300 A 192.0.2.10"}, {"new 60 A 192.0.2.1"});
  update(11, {}, {"more 60 A 192.0.2.1"});
  Start start(path("other"));
  const WrittenDump written = must(write(PlacedDump::path_in(path("other"))));
  EXPECT_FALSE(must(start.find())->is_own());
  must(start.run());
  EXPECT_EQ(records_of(start.target.zone("@")), records_of(parts_.zone.zone()));
  // Behind the position of the dump, so that nothing of the other journal is repeated.
  EXPECT_GT(start.last, written.position);
  EXPECT_EQ(start.target.store().current().journal_position, start.last);
  const MergeBase state = must(start.history->merge_base(name("@"), UINT64_MAX));
  EXPECT_TRUE(state.dynamic_changes.known());
  EXPECT_EQ(state.dynamic_changes.entries().size(), 3U);  // one out, two in
  EXPECT_EQ(state.serial, dns::Serial{12});
  EXPECT_EQ(state.file_serial, dns::Serial{10});
  EXPECT_TRUE(must(start.find())->is_own());
}

/// So that the first start on it does not read every zone's file for its hash.
TEST_F(DumpFile, TellsHowTheNotedFileLay) {
  const zone::ZoneFileInfo noted{12, 34, 56, 78};
  for (const bool updated : {false, true}) {
    if (updated) update(10, {}, {"new 60 A 192.0.2.1"});
    bool done = false;
    parts_.committer.edit(
        [&](zone::Draft& draft) { return draft.put_zone_source(name("@"), noted); },
        [&](const Status& status) { done = status.has_value(); });
    ASSERT_TRUE(parts_.run_until([&] { return done; }));
    const std::string journal = path(updated ? "updated" : "other");
    Start start(journal);
    must(write(PlacedDump::path_in(journal)));
    must(start.run());
    EXPECT_EQ(start.target.zone("@").source(), noted) << updated;
    ASSERT_EQ(start.history->knows(name("@")), updated) << "else nobody asks the journal";
    const MergeBase state = must(start.history->merge_base(name("@"), UINT64_MAX));
    if (updated) {
      EXPECT_EQ(state.source, (zone::ZoneFileInfo{12, 34, 56, 0})) << "of another disk";
    }
  }
}

TEST_F(DumpFile, OfAnotherJournalIsRefusedBesideRecords) {
  const std::string journal = path("other");
  Start start(journal);
  {
    auto other = must(Journal::open({journal}, native_files(), [](const JournalNote&) {}));
    const std::vector<JournalEntry> group{
        {name("@"), {1}, {2}, zone::encode(zone::Changeset{name("@"), {}, {}})}};
    must(other.append(group));
  }
  must(write(PlacedDump::path_in(journal)));
  const auto found = start.find();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::kDenied);
  EXPECT_THAT(found.error().text, HasSubstr("of another journal"));
}

TEST_F(DumpFile, NoneIsNothingAndADamagedOneIsToldOf) {
  Start start(path("other"));
  EXPECT_EQ(must(start.find()), nullptr);
  must(write(PlacedDump::path_in(path("other"))));
  std::filesystem::resize_file(PlacedDump::path_in(path("other")), 300);
  EXPECT_THAT(start.run().error().text, HasSubstr("other/store.dump: byte "));
}

}  // namespace dump_test
}  // namespace pando::manager

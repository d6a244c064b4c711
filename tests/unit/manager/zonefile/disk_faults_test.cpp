// Each writer of whole files (exports, copies of secondary zones, dumps, copies of the store) on a
// disk of which each call fails, once and from then on: what was there stays, or the new file is
// there and whole; whoever asked is told; and once the disk is well again, so is the next try.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "manager/checkpoint/image.h"
#include "manager/merge/merge_base.h"
#include "manager/zonefile/export_file.h"
#include "manager/zonefile/zone_copies.h"
#include "manager/zonefile/zone_exports.h"
#include "manager/zonefile/zone_file.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/dump/dump_reader.h"

namespace pando::manager {
namespace disk_faults_test {

using shm::test::must;
using testing::FailingFiles;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using Call = FakeDisk::Call;
using Fault = FailingFiles::Fault;


class Writer : public ::testing::Test {
 protected:
  virtual Fault& fault() { return disk_.fail; }
  /// As a process asks for it that has just started.
  virtual Status write() = 0;
  /// Version (or serial) of which the file has all, 0: there is none. One that has not all of it is
  /// a failure of the test.
  virtual std::uint64_t found() = 0;
  virtual std::uint64_t now() { return parts_.committer.current().version(); }
  /// What is there beside the file and what it needs.
  virtual std::vector<std::string> left() = 0;
  /// Takes the file away, and all that is beside it.
  virtual void clear() { disk_ = FakeDisk(); }
  virtual void cut_power() { disk_.power_cut(random_); }

  void change() {
    const std::uint32_t serial = parts_.zone.zone().serial().value;
    must(testing::update(parts_, {}, {fmt::format("host{} 300 A 192.0.2.200", serial)}));
    lines_[serial + 1] = parts_.zone.zone().record_count() + 2;  // a comment and $ORIGIN
  }
  /// Serial of a zone's text, by its comment.
  std::uint64_t serial_of(const std::string& text) {
    const std::string_view mark = "at serial ";
    const auto at = text.find(mark);
    if (at == std::string::npos) return 0;
    const std::uint64_t serial = std::stoull(text.substr(at + mark.size()));
    EXPECT_EQ(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')),
              lines_[serial]);
    EXPECT_TRUE(text.ends_with('\n'));
    return serial;
  }

  void each_call_fails() {
    std::set<Call> failed;
    for (const bool there : {false, true})
      for (const bool for_ever : {false, true})
        for (const Errc code : {Errc::kFull, Errc::kIo})
          for (std::uint64_t nth = 0;; ++nth) {
            SCOPED_TRACE(fmt::format("call {} {}, error {}, {}", nth,
                                     for_ever ? "and all behind it" : "alone",
                                     static_cast<int>(code), there ? "replaced" : "made"));
            const auto call = fails_at(there, nth, code, for_ever);
            if (!call || HasFatalFailure()) break;
            failed.insert(*call);
          }
    for (const Call call :
         {Call::kOpen, Call::kWrite, Call::kSync, Call::kRename, Call::kSyncDirectory})
      EXPECT_TRUE(failed.contains(call)) << static_cast<int>(call);
  }

  FakeDisk disk_;
  Parts parts_;

 private:
  /// The call that failed; none: there were not so many.
  std::optional<Call> fails_at(bool there, std::uint64_t nth, Errc code, bool for_ever) {
    if (!there) clear();
    const std::uint64_t before = found();
    change();
    std::optional<Call> failed;
    bool of_quarantined = false;  // whose chunks lie here is not known then
    fault() = [&, asked = std::uint64_t{0}](Call call, const std::string& path) mutable -> Status {
      const std::uint64_t at = asked++;
      if (at < nth || (at > nth && !for_ever)) return {};
      of_quarantined = of_quarantined || (!failed && path.ends_with(".quarantined"));
      if (!failed) failed = call;
      return fail(code, "as told");
    };
    const Status done = write();
    fault() = [](Call, const std::string&) { return Status(); };
    EXPECT_TRUE(done || failed);
    if (!done) {
      EXPECT_THAT(done.error().text, HasSubstr("as told"));
    }
    // A folder that could not be synced may still have the old name: what either needs stays.
    const std::set<Call> leaves = {Call::kSyncDirectory, Call::kRemove, Call::kList};
    if (!for_ever && !of_quarantined && !(failed && leaves.contains(*failed))) {
      EXPECT_THAT(left(), IsEmpty());
    }
    for (int look = 0; look < 2; ++look) {
      const std::uint64_t after = found();
      EXPECT_TRUE(after == now() || (!done && after == before)) << after << " of " << now();
      if (look == 0) cut_power();
    }
    change();
    const Status again = write();
    EXPECT_TRUE(again) << again.error().text;
    EXPECT_EQ(found(), now());
    EXPECT_THAT(left(), IsEmpty());
    return failed;
  }

  std::mt19937_64 random_{1};
  std::map<std::uint64_t, std::uint64_t> lines_;  // by serial
};

/// All but `known`.
std::vector<std::string> others(std::vector<std::string> paths, const std::string& known) {
  std::erase(paths, known);
  return paths;
}

std::string text_of(FakeDisk& disk, const std::string& path) {
  if (!disk.has(path)) return "";
  const Bytes& bytes = disk.contents(path);
  return {bytes.begin(), bytes.end()};
}

// Zone text --------------------------------------------------------------------------------------

class CopyOfAZone : public Writer {
 protected:
  Status write() override {
    const zone::StoreView version = parts_.committer.current();
    auto hash = write_zone_file(disk_, version.zone_at(name("@")), kPath);
    return hash ? Status() : Status(pass(hash));
  }
  std::uint64_t found() override { return serial_of(text_of(disk_, kPath)); }
  std::uint64_t now() override { return parts_.zone.zone().serial().value; }
  std::vector<std::string> left() override { return others(disk_.paths(), kPath); }

  static constexpr const char* kPath = "/copies/example.zone";
};

TEST_F(CopyOfAZone, OutlivesEachFault) { each_call_fails(); }

/// By ZoneExports, on the file system.
class ExportedZone : public Writer {
 protected:
  ExportedZone() {
    std::ofstream(path_) << "; as the operator wrote it\n";
    zone::ZoneFileInfo source = *stat_source(path_);
    add_content(source, read_content(path_));
    must(parts_.edit([&](zone::Draft& draft) { return draft.put_zone_source(name("@"), source); }));
    config::Settings settings;
    settings.zones = config::ZoneTable(folder_.path());
    EXPECT_TRUE(settings.zones.add(name("@"), "example.zone", settings.zones.add_options({})));
    exports_.configure(*make_runtime(std::move(settings)));
    parts_.committer.on_published([this](const PublishedVersion& version) {
      for (const JournalEntry& entry : version.records) exports_.journalled(entry);
    });
  }
  ~ExportedZone() override { parts_.pool.join(); }

  Fault& fault() override { return files_.fail; }
  virtual void begin(ZoneExports::Done done) { exports_.write_own(name("@"), std::move(done)); }
  Status write() override {
    std::optional<Status> outcome;
    begin([&](const Result<ZoneExports::Exported>& exported) {
      outcome = exported ? Status() : Status(tl::unexpected<Error>(exported.error()));
    });
    EXPECT_TRUE(parts_.run_until([&] { return outcome.has_value(); }));
    return *outcome;
  }
  std::uint64_t found() override {
    std::ostringstream all;
    all << std::ifstream(file()).rdbuf();
    return serial_of(all.str());
  }
  std::uint64_t now() override { return parts_.zone.zone().serial().value; }
  /// FILE.export is what the journal has noted, when only its name is missing.
  std::vector<std::string> left() override {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      paths.push_back(entry.path().string());
    const std::string beside = path_ + ".export";
    const auto written = stat_source(beside);
    if (written && same_source(*written, parts_.zone.zone().source())) {
      const auto there = stat_source(path_);
      EXPECT_FALSE(there && same_source(*there, *written));
      std::erase(paths, beside);
    }
    std::erase(paths, path_);
    std::erase(paths, file());
    return paths;
  }
  void clear() override { std::filesystem::remove(file()); }
  void cut_power() override {}  // tests/crash/file_states.cpp
  virtual std::string file() { return path_; }

  shm::test::Folder folder_;
  std::string path_ = folder_.path() + "/example.zone";
  FailingFiles files_;
  ZoneExports exports_{parts_.io,
                       parts_.pool,
                       files_,
                       parts_.committer,
                       parts_.slots,
                       [this] {
                         return std::make_shared<HistorySource>(native_files(), parts_.journal,
                                                                [](const JournalNote&) {});
                       },
                       {}};
};

TEST_F(ExportedZone, OutlivesEachFault) { each_call_fails(); }

class ZoneExportedElsewhere : public ExportedZone {
 protected:
  void begin(ZoneExports::Done done) override {
    exports_.write_to(name("@"), file(), std::move(done));
  }
  std::string file() override { return folder_.path() + "/elsewhere"; }
};

TEST_F(ZoneExportedElsewhere, OutlivesEachFault) { each_call_fails(); }

// The store --------------------------------------------------------------------------------------

class DumpOfAStore : public Writer {
 protected:
  Status write() override {
    auto written = testing::write_dump(parts_, disk_, kPath);
    return written ? Status() : Status(pass(written));
  }
  std::uint64_t found() override {
    if (!disk_.has(kPath)) return 0;
    const Bytes bytes = disk_.contents(kPath);
    auto reader = must(zone::DumpReader::open(
        [&, at = std::size_t{0}](std::span<std::uint8_t> into) mutable -> Result<std::size_t> {
          const std::size_t n = std::min(into.size(), bytes.size() - at);
          std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n, into.begin());
          at += n;
          return n;
        },
        kPath));
    must(check_dump(reader));
    return reader.header().version;
  }
  std::vector<std::string> left() override { return others(disk_.paths(), kPath); }

  static constexpr const char* kPath = "/disk/dump";
};

TEST_F(DumpOfAStore, OutlivesEachFault) { each_call_fails(); }

class CopyOfAStore : public Writer {
 protected:
  Status write() override { return testing::write_copy(parts_, disk_, kPath); }
  std::uint64_t found() override {
    if (!disk_.has(kPath)) return 0;
    Image& image = opened();
    auto source = must(image.source());
    const auto& chunks = image.index()->state.chunks;
    for (std::uint32_t number = 0; number < chunks.size(); ++number) {
      if (chunks[number].count == 0) continue;
      Bytes into(chunks[number].used);
      must(source->read(number, into, chunks[number].checksum));
    }
    return image.index()->state.version;
  }
  std::vector<std::string> left() override {
    std::vector<std::string> paths = others(disk_.paths(), kPath);
    return disk_.has(kPath) ? others(std::move(paths), opened().chunks()) : paths;
  }
  /// On a disk of its own, since who opens an image removes what is no part of it.
  Image& opened() {
    looked_at_ = disk_;
    image_.emplace(looked_at_, Image::Options{kPath, zone::layout_fingerprint(), {}, true});
    must(image_->open());
    return *image_;
  }

  FakeDisk looked_at_;
  std::optional<Image> image_;
  static constexpr const char* kPath = "/disk/copy";
};

TEST_F(CopyOfAStore, OutlivesEachFault) { each_call_fails(); }

}  // namespace disk_faults_test
}  // namespace pando::manager

// Updates, edits of the zone file, reloads, restarts of process and host, compactions of the
// journal, and transfers from a primary in random order, against a model of a few lines: updates
// win, nothing else is lost, and what a primary sent is no update.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <set>

#include "manager/checkpoint/checkpointer.h"
#include "manager/checkpoint/image_replay.h"
#include "manager/checkpoint/store_opening.h"
#include "manager/journal/journal_snapshot.h"
#include "manager/upkeep/journal_upkeep.h"
#include "manager/zonefile/zone_loader.h"
#include "tests/unit/manager/commit/parts.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace recovery_model_test {

using shm::test::must;
using testing::name;
using testing::record;
using Records = std::set<std::string>;  // "owner TYPE rdata"

/// Each merged file and each transfer counts as a large change.
constexpr ChangeRoad::Options kAllBeside{0, 3};

/// A manager's data from its start to its end.
class Life {
 public:
  Life(const shm::test::Folder& folder, const std::string& zone_file, bool new_host)
      : zone_file_(zone_file),
        image_(open_image(folder)),
        journal_(must(Journal::open({folder.path() + "/journal", 16 << 10}, native_files(), note))),
        opened_(open(folder, new_host)),
        store_(std::move(opened_.store)),
        slots_(must(shm::SlotTable::open(folder.slots(), folder.store(), layout()))),
        committer_((prepare(), io_), store_, journal_, journal_thread_, {}),
        here_(io_, pool_, store_, slots_, committer_, {}),
        road_(io_, pool_, store_, slots_, committer_, kAllBeside),
        loader_(io_, pool_, 2, store_, slots_, committer_, road_, {}),
        checkpointer_(io_, store_, slots_, journal_, std::move(image_), {}) {
    checkpointer_.set_pin(std::move(pin_));
  }
  ~Life() {
    pool_.join();
    journal_thread_.join();
  }

  [[nodiscard]] zone::ZoneView zone() const { return committer_.current().zone_at(name("@")); }

  void load() {
    bool given = false, done = false;
    loader_.load({
        LoadKind::kFiles,
        [&]() -> std::optional<LoadJob> {
          if (std::exchange(given, true)) return std::nullopt;
          return LoadJob{name("@"), zone_file_, false};
        },
        std::make_shared<HistorySource>(native_files(), journal_, note),
        [&](const LoadJob&, const LoadOutcome& outcome) {
          for (const std::string& problem : outcome.problems) ADD_FAILURE() << problem;
        },
        [&] { done = true; },
    });
    run_until(done);
  }

  void update(const Records& removed, const Records& added, int ttl) {
    bool done = false;
    ZoneChange change;
    change.zone = name("@");
    change.limits = {};
    change.shares_version = true;
    change.content = [&](const zone::StoreView& snapshot) {
      return ComputedChange::of(changes(snapshot.zone_at(name("@")), removed, added, ttl));
    };
    change.done = [&](const Result<ChangeOutcome>& outcome) {
      EXPECT_TRUE(outcome.has_value());
      done = true;
    };
    here_.submit(std::move(change));
    run_until(done);
  }

  /// As an IXFR does.
  void transfer(const Records& removed, const Records& added, int ttl) {
    bool done = false;
    ZoneChange change;
    change.zone = name("@");
    change.source = ChangeSource::kTransfer;
    change.limits = {};
    change.records = removed.size() + added.size();
    change.content = std::make_shared<const std::vector<zone::Changeset>>(
        1, changes(zone(), fitting(removed, true), fitting(added, false), ttl));
    change.done = [&](const Result<ChangeOutcome>& outcome) {
      EXPECT_TRUE(outcome.has_value());
      done = true;
    };
    road_.submit(std::move(change));
    run_until(done);
  }
  /// As an AXFR does.
  void transfer_whole(const Records& records) {
    shm::Transaction built_in = store_.begin_private();
    zone::ZoneBuilder builder(name("@"), built_in);
    const auto add = [&](const zone::Record& one) {
      must(builder.add(one.owner, one.type, one.ttl, one.rdata));
    };
    for (const char* text : {"@ 60 NS ns1", "ns1 60 A 192.0.2.1"}) add(record(text));
    add(soa(zone().serial().next()));
    for (const std::string& text : records) add(line(text, 60));
    auto built = must(builder.finish());
    bool done = false;
    ZoneChange change;
    change.zone = name("@");
    change.source = ChangeSource::kTransfer;
    change.is_whole = true;
    change.content = WholeZone{built, std::move(built_in)};
    change.done = [&](const Result<ChangeOutcome>& outcome) {
      EXPECT_TRUE(outcome.has_value());
      done = true;
    };
    road_.submit(std::move(change));
    run_until(done);
    while (committer_.busy()) run_some();
  }
  /// As ZoneTableSync does.
  void make_primary() {
    bool done = false;
    committer_.edit([](zone::Draft& draft) { return draft.put_zone_source(name("@"), {}); },
                    [&](const Status& status) {
                      EXPECT_TRUE(status.has_value());
                      done = true;
                    });
    run_until(done);
  }

  /// With the image before the journal's files go, or without, as when the disk was full then.
  void compact(bool image_first) {
    JournalUpkeep upkeep(io_, pool_, journal_thread_, native_files(), journal_, committer_, slots_,
                         1);
    if (image_first)
      upkeep.before_dropping([this](std::function<void()> resume) {
        checkpointer_.write_now([resume = std::move(resume)](const Status& status) {
          EXPECT_TRUE(status.has_value());
          resume();
        });
      });
    upkeep.check(false);
    while (upkeep.running()) run_some();
  }

  void checkpoint() {
    bool done = false;
    checkpointer_.write_now([&](const Status& status) {
      EXPECT_TRUE(status.has_value()) << status.error().text;
      done = true;
    });
    run_until(done);
  }
  /// Whether it began with the image, and with all that is served.
  [[nodiscard]] bool from_image() const { return from_image_; }
  [[nodiscard]] bool whole() const { return whole_; }

  /// The zone leaves the configuration and comes again.
  void leave() {
    bool done = false;
    CommitRequest request;
    request.stage = &testing::leave_and_come_again;
    request.done = [&](const Result<std::uint64_t>& version) {
      EXPECT_TRUE(version.has_value());
      done = true;
    };
    committer_.submit(std::move(request));
    run_until(done);
  }

 private:
  static std::uint64_t layout() { return zone::layout_fingerprint(); }
  static void note(const JournalNote& note) { ADD_FAILURE() << note.text; }
  static zone::Record line(const std::string& text, int ttl) {
    const auto space = text.find(' ');
    return record(fmt::format("{} {} {}", text.substr(0, space), ttl, text.substr(space + 1)));
  }
  static zone::Changeset changes(const zone::ZoneView& zone, const Records& removed,
                                 const Records& added, int ttl) {
    zone::Changeset changes{name("@"), {}, {}};
    for (const std::string& text : removed) changes.removed.push_back(line(text, ttl));
    for (const std::string& text : added) changes.added.push_back(line(text, ttl));
    changes.removed.push_back(soa(zone.serial()));
    changes.added.push_back(soa(zone.serial().next()));
    return changes;
  }
  /// Those of the records that the zone has, or has not: a primary sends nothing else.
  Records fitting(Records records, bool there) const {
    std::erase_if(records, [&](const std::string& text) {
      const zone::Record one = line(text, 60);
      bool found = false;
      zone().record_at(one.owner).find(one.type).for_each_rdata([&](ByteView rdata) {
        found = found || std::ranges::equal(rdata, one.rdata);
      });
      return found != there;
    });
    return records;
  }
  static zone::Record soa(dns::Serial serial) {
    return record(fmt::format("@ 60 SOA ns1 admin {} 3600 600 86400 300", serial.value));
  }
  static std::unique_ptr<Image> open_image(const shm::test::Folder& folder) {
    auto image = std::make_unique<Image>(
        native_files(), Image::Options{folder.path() + "/zones.image", layout(), {1, 2}});
    const auto opened = image->open();
    EXPECT_TRUE(opened || opened.error().code == Errc::kNotFound) << opened.error().text;
    return image;
  }
  OpenedStore open(const shm::test::Folder& folder, bool new_host) {
    shm::StoreOptions options = shm::test::options(folder, 32 << 20);
    options.layout = layout();
    if (new_host) std::filesystem::remove(folder.store());
    const BringUp bring_up = [this](shm::Store& restored) -> Status {
      whole_ = must(replay_onto_image(restored, journal_, native_files(), {}, note)).empty();
      return {};
    };
    OpenedStore opened = must(open_store(options, {.image = image_.get(), .bring_up = bring_up}));
    EXPECT_EQ(opened.from == OpenedStore::From::kLive, !new_host);
    return opened;
  }

  /// The manager's work before it begins: the journal's rest, or an empty store.
  void prepare() {
    pin_ = Checkpointer::pin(*image_, slots_);
    store_.set_slots(&slots_);
    from_image_ = opened_.from == OpenedStore::From::kImage;
    if (opened_.from == OpenedStore::From::kLive)
      return must(replay_journal(store_, journal_, native_files(), note));
    if (from_image_) return;
    image_->forget();
    shm::Transaction transaction = store_.begin();
    zone::Draft draft(transaction, store_.current().root, store_.current().number + 1);
    must(draft.put_zone_settings(name("@"), {}, 0));
    must(store_.publish(std::move(transaction), draft.root(), journal_.last_position()));
  }

  void run_some() {
    io_.restart();
    io_.run_one_for(std::chrono::milliseconds(20));
  }
  void run_until(const bool& done) {
    while (!done) run_some();
  }

  std::string zone_file_;
  bool from_image_ = false;
  bool whole_ = false;
  asio::io_context io_{1};
  JournalThread journal_thread_;
  asio::thread_pool pool_{2};
  std::unique_ptr<Image> image_;
  Journal journal_;
  OpenedStore opened_;
  shm::Store store_;
  shm::SlotTable slots_;
  shm::SlotTable::OwnPin pin_;
  Committer committer_;
  ChangeRoad here_;  // on the commit thread
  ChangeRoad road_;
  ZoneLoader loader_;
  Checkpointer checkpointer_;
};

class Model {
 public:
  Model(std::uint64_t seed, bool with_image) : random_(seed), with_image_(with_image) {
    edit();
    life_.emplace(folder_, path_, true);
    load(false);
  }

  void step() {
    switch (random_() % 14) {
      case 0:
      case 1:
      case 2:
      case 3:
        return update();
      case 4:
        edit();
        said_ += " edit";
        return load(false);
      case 5:
        life_->compact(with_image_ && random_() % 2 == 0);
        said_ += " compact";
        return check(true);
      case 12:
      case 13:
        if (!with_image_) return restart(true);
        life_->checkpoint();
        said_ += " checkpoint";
        return check(true);
      case 6:
        return restart(false);
      case 7:
      case 8:
        return restart(true);
      case 9:
        return transfer();
      case 10:
        return transfer_whole();
      default:
        if (random_() % 4 != 0) return restart(true);
        life_->leave();
        said_ += " leave";
        live_ = disk_;
        in_journal_ = false;
        transferred_.reset();
        life_->load();
        merged();
        return check(false);
    }
  }
  [[nodiscard]] const std::string& said() const { return said_; }
  /// Starts from the image: all, and those with nothing to load.
  [[nodiscard]] int from_image() const { return from_image_; }
  [[nodiscard]] int whole() const { return whole_; }

 private:
  static Records all() {
    Records records;
    for (const char* owner : {"a", "b", "c.b", "d"})
      for (const char* data : {"A 192.0.2.1", "A 192.0.2.2", "A 192.0.2.3", "TXT \"x\""})
        records.insert(fmt::format("{}.example. {}", owner, data));
    return records;
  }
  Records some(std::uint64_t one_in) {
    Records records = all();
    std::erase_if(records, [&](const std::string&) { return random_() % one_in != 0; });
    return records;
  }
  int ttl() { return random_() % 2 == 0 ? 60 : 90; }

  void update() {
    said_ += " update";
    const Records added = some(6);
    Records removed = some(6);
    for (const std::string& one : added) removed.erase(one);
    life_->update(removed, added, ttl());
    const Records before = live_;
    for (const std::string& one : removed) live_.erase(one);
    live_.insert(added.begin(), added.end());
    in_journal_ = in_journal_ || live_ != before;
    check(false);
  }

  /// The zone is a secondary's now, until its file is loaded.
  void transfer() {
    said_ += " ixfr";
    const Records added = some(6);
    Records removed = some(6);
    for (const std::string& one : added) removed.erase(one);
    life_->transfer(removed, added, ttl());
    for (const std::string& one : removed) live_.erase(one);
    live_.insert(added.begin(), added.end());
    transferred_ = live_;
    in_journal_ = true;
    check(false);
  }
  void transfer_whole() {
    said_ += " axfr";
    live_ = some(2);
    life_->transfer_whole(live_);
    transferred_ = live_;
    in_journal_ = true;
    merged_text_.clear();  // the journal no longer leads from the file to the zone
    check(false);
  }

  /// The file anew: with other records or the same, under a serial that may be anything.
  void edit() {
    if (random_() % 4 != 0)
      for (const std::string& one : some(6))
        if (disk_.erase(one) == 0) disk_.insert(one);
    if (random_() % 2 == 0) file_serial_ += static_cast<std::uint32_t>(random_() % 9) - 3;
    std::map<std::string, int> ttls;
    text_ =
        fmt::format("@ 60 SOA ns1 admin {} 3600 600 86400 300\n@ 60 NS ns1\nns1 60 A 192.0.2.1\n",
                    file_serial_);
    for (const std::string& one : disk_) {
      const auto space = one.find(' ');
      const int set_ttl = ttls.try_emplace(one.substr(0, space + 3), ttl()).first->second;
      text_ += fmt::format("{} {}{}\n", one.substr(0, space), set_ttl, one.substr(space));
    }
    std::ofstream(path_) << text_;
    std::filesystem::last_write_time(
        path_, std::filesystem::file_time_type(std::chrono::seconds(1'000'000 + ++writes_)));
  }
  /// Written again with the same content, it is the file that was merged.
  [[nodiscard]] bool edited() const { return text_ != merged_text_; }

  /// The model's rule: what the file added or removed since it was merged last is added or removed.
  /// After transfers a file that is not the noted one replaces all that was sent.
  void merged() {
    if (const auto sent = std::exchange(transferred_, {}); sent && edited()) {
      Records own = disk_;
      for (const std::string& one : all()) {
        if (live_.contains(one) && !sent->contains(one)) own.insert(one);
        if (!live_.contains(one) && sent->contains(one)) own.erase(one);
      }
      live_ = own;
      file_ = disk_;
    }
    for (const std::string& one : all()) {
      if (disk_.contains(one) == file_.contains(one)) continue;
      if (disk_.contains(one))
        live_.insert(one);
      else
        live_.erase(one);
    }
    file_ = disk_;
    merged_text_ = text_;
  }

  void load(bool same_version) {
    const bool same = same_version && !edited();
    if (transferred_ && life_->zone().loaded()) life_->make_primary();
    life_->load();
    merged();
    check(same);
  }

  void restart(bool host) {
    said_ += host ? " host" : " process";
    life_.reset();
    if (random_() % 2 == 0) {
      edit();
      said_ += "(edited)";
    }
    life_.emplace(folder_, path_, host);
    if (life_->from_image()) {
      ++from_image_;
      whole_ += life_->whole() ? 1 : 0;
      said_ += life_->whole() ? "(image)" : "(image without zone)";
    }
    load(true);
  }

  /// `same`: nothing may have changed, not even the serial.
  void check(bool same) {
    const zone::ZoneView zone = life_->zone();
    ASSERT_TRUE(zone && zone.loaded());
    Records served;
    auto cursor = zone.begin();
    std::vector<std::string> lines;
    while (const zone::RecordView found = cursor.next()) {
      const std::string owner = to_text(zone.owner_of(found));
      found.for_each_rrset([&](const zone::RRsetView& set) {
        if (set.type() == dns::RRType::kSOA) return;
        set.for_each_rdata([&](ByteView rdata) {
          const std::string data =
              to_text(set.type()) + " " + dns::rdata_to_text(set.type(), rdata);
          lines.push_back(fmt::format("{} {} {}", owner, set.ttl().seconds, data));
          if (owner != "example." && owner != "ns1.example.") served.insert(owner + " " + data);
        });
      });
    }
    EXPECT_EQ(served, live_);
    if (same) {
      EXPECT_EQ(zone.serial(), serial_);
      EXPECT_EQ(lines, lines_);
    } else if (lines != lines_ && in_journal_) {
      EXPECT_TRUE(zone.serial().ahead_of(serial_)) << "secondaries would not see the change";
    }
    serial_ = zone.serial();
    lines_ = lines;
  }

  std::mt19937_64 random_;
  bool with_image_;
  int from_image_ = 0;
  int whole_ = 0;
  shm::test::Folder folder_;
  std::string path_ = folder_.path() + "/example.zone";
  std::optional<Life> life_;
  std::uint32_t file_serial_ = 10;
  int writes_ = 0;
  std::string text_;         // the file as it is
  std::string merged_text_;  // as it was merged last
  Records disk_;             // the records of both
  Records file_;
  Records live_;                        // what is to be served
  std::optional<Records> transferred_;  // as a primary sent it last; no file was loaded since
  dns::Serial serial_;                  // served at the last look, with
  std::vector<std::string> lines_;
  bool in_journal_ = false;  // else nobody knows after the loss of the store what was served
  std::string said_;
};

/// Runs of forty steps each; `given`: one with this seed.
void run_models(bool with_image) {
  const char* const given = std::getenv("PANDO_SEED");
  const std::uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  const std::uint64_t runs = given != nullptr ? 1 : 30;
  int from_image = 0;
  int whole = 0;
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    Model model(seed, with_image);
    for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) model.step();
    ASSERT_FALSE(::testing::Test::HasFailure())
        << "again with PANDO_SEED=" << seed << ":" << model.said();
    from_image += model.from_image();
    whole += model.whole();
  }
  if (given != nullptr) return;
  EXPECT_EQ(from_image > 0, with_image);
  EXPECT_EQ(whole > 0, with_image);
  EXPECT_EQ(whole < from_image, with_image);
}

TEST(RecoveryModel, UpdatesOutliveEverythingAndEditsAreMerged) { run_models(false); }
TEST(RecoveryModel, TheSameWithAnImageOfAnyAge) { run_models(true); }

}  // namespace recovery_model_test
}  // namespace pando::manager

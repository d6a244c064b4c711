// Readers and writers that are killed or stopped at bad moments. The program is also the writer
// that it kills: started again with --writer, with PANDO_CRASH_AT set (base/crash_point.h).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>

#include <fstream>
#include <new>
#include <random>
#include <regex>
#include <set>
#include <vector>

#include "base/build.h"
#include "tests/property/store_table.h"
#include "tests/support/trees.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace {

using namespace test;

constexpr int kSmallUpdates = kSanitized ? 30'000 : 1'000'000;
constexpr std::uint64_t kWriterLimit = 8 * kMiB;
/// Enough to grow the file, fill it, empty it, and punch what became free, twice.
constexpr int kWriterVersions = 120;
constexpr int kPhase = 30;
constexpr int kAttempts = 20'000;
/// A reader keeps a lease for so many looks: longer than some writers live.
constexpr int kLeaseLooks = 50;

/// What the writer promised, in a file that outlives it: `sums` of recent versions are set before
/// they are published, `acknowledged` after.
struct Promises {
  std::array<std::atomic<std::uint64_t>, 8> sums;
  std::atomic<std::uint64_t> acknowledged;
  std::atomic<bool> stop;
};

Promises* map_promises(const std::string& folder) {
  const Fd file(::open((folder + "/promises").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (::posix_fallocate(file.get(), 0, sizeof(Promises)) != 0) return nullptr;
  void* memory =
      ::mmap(nullptr, sizeof(Promises), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Promises*>(memory);
}

StoreOptions options_in(const std::string& folder) {
  StoreOptions chosen;
  chosen.path = folder + "/zones.store";
  chosen.size_limit = kWriterLimit;
  chosen.layout = kLayout;
  return chosen;
}

/// The process that is killed.
class Writer {
 public:
  explicit Writer(const std::string& folder) : folder_(folder), promises_(map_promises(folder)) {}

  int run() {
    auto store = Store::attach(options_in(folder_));
    if (!store && store.error().code == Errc::kNotFound) store = Store::create(options_in(folder_));
    if (!store) return 10;
    auto slots = SlotTable::open(folder_ + "/slots", options_in(folder_).path, kLayout);
    if (!slots) return 11;
    store->set_slots(&*slots);
    acknowledge(*store);
    random_.seed(static_cast<std::uint32_t>(store->current().number));
    for (int i = 0; i < kWriterVersions; ++i) {
      if (!side_entry(*store)) return 12;
      // Readers may hold so much at a moment that nothing fits.
      for (int attempt = 0; !version(*store, i); ++attempt) {
        if (attempt == kAttempts) return 13;
        ::usleep(1000);
        store->reclaim();
      }
      if (!store->check()) return 14;
    }
    return 0;
  }

 private:
  void acknowledge(const Store& store) {
    const auto found = walk(store.window(), store.current().root);
    promises_->sums[store.current().number % 8].store(found ? found->sum : 0);
    promises_->acknowledged.store(store.current().number);
  }

  static bool side_entry(Store& store) {
    const auto granule = static_cast<std::uint32_t>(store.current().number / 16 % 2000);
    return store.side(granule * kSidePerGranule) != nullptr;
  }

  /// One version; false when it did not fit.
  bool version(Store& store, int i) {
    const bool filling = i / kPhase % 2 == 0;
    if (i % 7 == 0) store.choose_victims(50, 4);
    Transaction transaction = store.begin();
    if (!filling) transaction.use_reserve();
    Table table(transaction, store.current().root);
    if (!change(table, filling) || !table.compact()) return false;
    const std::uint64_t number = store.current().number + 1;
    const auto* root = transaction.window().at(table.root().as<TableRoot>());
    promises_->sums[number % 8].store(root->sum);
    if (!store.publish(std::move(transaction), table.root(), number)) return false;
    promises_->acknowledged.store(number);
    store.forget_victims();
    store.reclaim();
    return true;
  }

  bool change(Table& table, bool filling) {
    for (int i = 0; i < 12; ++i) {
      const auto key = static_cast<std::uint32_t>(random_() % 400);
      const std::size_t octets = random_() % 2 == 0 ? 64 : random_() % 3000 * 8;
      if (!(filling ? table.put(key, octets, random_()) : table.erase(key))) return false;
    }
    return true;
  }

  std::string folder_;
  Promises* promises_;
  std::mt19937 random_;
};

/// A reader that pins, leases and checks until `stop`; gives 0 when all it saw was whole.
class Watcher {
 public:
  Watcher(const std::string& folder, std::uint32_t slot) : promises_(map_promises(folder)) {
    SlotTable slots = must(SlotTable::open(folder + "/slots", options_in(folder).path, kLayout));
    must(slots.add(slot));
    reader_ =
        must(Reader::attach(must(slots.lend(slot)), kLayout, slot));
  }

  int run() {
    while (!promises_->stop.load()) {
      const Reader::View view = reader_->pin();
      if (view.version < last_ || !walk(view.window, view.root)) return 1;
      last_ = view.version;
      if (!renew_lease(view)) return 2;
      reader_->unpin();
    }
    return 0;
  }

 private:
  bool renew_lease(const Reader::View& view) {
    if (leased_.version != 0 && !walk(leased_.window, leased_.root)) return false;
    if (leased_.version != 0 && ++looks_ % kLeaseLooks != 0) return true;
    if (leased_.version != 0) reader_->give_up_lease(lease_);
    lease_ = must(reader_->take_lease());
    leased_ = view;
    return true;
  }

  Promises* promises_;
  std::optional<Reader> reader_;
  Reader::View leased_;
  std::size_t lease_ = 0;
  std::uint64_t last_ = 0;
  int looks_ = 0;
};

/// Starts this program as the writer; gives its end as end_of() does.
int run_writer(const std::string& folder, const std::string& crash_at) {
  std::string program = "/proc/self/exe";
  std::string mode = "--writer";
  std::string place = folder;
  std::string armed = "PANDO_CRASH_AT=" + crash_at;
  char* arguments[] = {program.data(), mode.data(), place.data(), nullptr};
  char* environment[] = {armed.data(), nullptr};
  pid_t writer = 0;
  if (::posix_spawn(&writer, program.c_str(), nullptr, nullptr, arguments, environment) != 0)
    return 98;
  return end_of(writer);
}

/// The store is whole and is the last acknowledged version, or the one that was being published.
void expect_acknowledged(const std::string& folder, const std::string& where) {
  const Promises* promises = map_promises(folder);
  Store store = must(Store::attach(options_in(folder)));
  SlotTable slots = must(SlotTable::open(folder + "/slots", options_in(folder).path, kLayout));
  store.set_slots(&slots);
  must(store.check());
  const std::uint64_t version = store.current().number;
  const std::uint64_t acknowledged = promises->acknowledged.load();
  EXPECT_TRUE(version == acknowledged || version == acknowledged + 1)
      << where << ": version " << version << ", acknowledged " << acknowledged;
  const auto found = walk(store.window(), store.current().root);
  ASSERT_TRUE(found) << where;
  EXPECT_EQ(found->sum, promises->sums[version % 8].load()) << where;
  EXPECT_EQ(store.stats().live_bytes, live_bytes_of(store, *found)) << where;
  store.reclaim();
  must(store.check());
}

/// All crash points of shm/, read from its sources: a new one is tested without being listed here.
std::set<std::string> crash_points() {
  std::set<std::string> names;
  const std::regex call("crash_point\\(\"(store-[a-z-]+)\"\\)");
  const std::string folder = pando::tests::source_path("/shm");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at)
      names.insert((*at)[1]);
  }
  return names;
}

TEST(StoreKill, WriterKilledAtEachPointLeavesTheAcknowledgedVersion) {
  const Folder folder;
  ASSERT_EQ(run_writer(folder.path(), "none"), 0);
  std::vector<pid_t> readers;
  for (std::uint32_t slot = 0; slot < 2; ++slot)
    readers.push_back(start_child([&] { return Watcher(folder.path(), slot).run(); }));
  const auto names = crash_points();
  EXPECT_GE(names.size(), 15U);
  for (const std::string& name : names) {
    if (name.starts_with("store-create")) continue;
    for (const int pass : {1, 2, 9, 60}) {
      const std::string where = name + ":" + std::to_string(pass);
      const int end = run_writer(folder.path(), where);
      EXPECT_TRUE(end == -SIGKILL || (end == 0 && pass > 1)) << where << " ended with " << end;
      expect_acknowledged(folder.path(), where);
      if (end == 0) break;
    }
  }
  map_promises(folder.path())->stop.store(true);
  for (const pid_t reader : readers) EXPECT_EQ(end_of(reader), 0);
}

TEST(StoreKill, WriterKilledWhileCreatingLeavesNothingOrAWholeStore) {
  for (const std::string& name : crash_points()) {
    if (!name.starts_with("store-create") && !name.starts_with("store-grow-f")) continue;
    const Folder folder;
    EXPECT_EQ(run_writer(folder.path(), name), -SIGKILL) << name;
    if (std::filesystem::exists(folder.store()))
      must(must(Store::attach(options_in(folder.path()))).check());
    EXPECT_EQ(run_writer(folder.path(), "none"), 0) << name;
    expect_acknowledged(folder.path(), name);
  }
}

class Readers : public ::testing::Test {
 protected:
  Readers() {
    store_->set_slots(&slots_);
    must(slots_.add(0));
    must(publish(1));
  }

  /// Replaces the one block, which takes most of a chunk.
  Status publish(int value) {
    Transaction transaction = store_->begin();
    const auto block = transaction.allocate(kBlock);
    if (!block) return tl::unexpected<Error>(block.error());
    std::memset(transaction.writable(*block), value, kBlock);
    if (const Ref<> old = store_->current().root) transaction.release(old, kBlock);
    auto published = store_->publish(std::move(transaction), *block, 0);
    if (!published) return pass(published);
    return {};
  }
  [[nodiscard]] Reader attach() const {
    return must(Reader::attach(must(slots_.lend(0)), kLayout, 0));
  }
  /// Publishes until the store is full or `most` versions are out; gives their number.
  int publish_until_full(int most) {
    for (int i = 0; i < most; ++i) {
      const auto published = publish(100);
      if (published) continue;
      EXPECT_EQ(published.error().code, Errc::kFull);
      return i;
    }
    return most;
  }
  /// A child that pins version 2, then ends or stops itself by `signal`, then checks what it holds.
  pid_t start_pinned(int signal, bool lease) {
    return start_child([this, signal, lease] {
      store_.reset();  // our copy of the manager's descriptor would keep its lock
      Reader reader = attach();
      const Reader::View view = reader.pin();
      if (lease) must(reader.take_lease());
      if (lease) reader.unpin();
      ::raise(signal);
      return filled(view.window, view.root, kBlock, 1) ? 0 : 1;
    });
  }
  static void wait_stopped(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

  static constexpr std::size_t kBlock = 50'000;
  Folder folder_;
  std::optional<Store> store_ = must(Store::create(options(folder_, 4 * kMiB)));
  SlotTable slots_ = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
};

TEST_F(Readers, KilledInABatchHoldsNothing) {
  EXPECT_EQ(end_of(start_pinned(SIGKILL, false)), -SIGKILL);
  EXPECT_EQ(publish_until_full(1000), 1000);
  store_->reclaim();
  EXPECT_EQ(store_->stats().waiting_chunks, 0U);
}

TEST_F(Readers, KilledWithALeaseHoldsNothing) {
  EXPECT_EQ(end_of(start_pinned(SIGKILL, true)), -SIGKILL);
  EXPECT_EQ(publish_until_full(1000), 1000);
  store_->reclaim();
  EXPECT_EQ(store_->stats().waiting_chunks, 0U);
}

TEST_F(Readers, StoppedInABatchFillsTheStoreAndIsNotHarmed) {
  const pid_t reader = start_pinned(SIGSTOP, false);
  wait_stopped(reader);
  EXPECT_LT(publish_until_full(1000), 100);
  EXPECT_TRUE(filled(store_->window(), store_->current().root, kBlock, 100));
  ::kill(reader, SIGCONT);
  EXPECT_EQ(end_of(reader), 0) << "what the reader had pinned was reused";
  EXPECT_EQ(publish_until_full(1000), 1000);
}

TEST_F(Readers, StoppedInABatchAndThenKilledHoldsNothing) {
  const pid_t reader = start_pinned(SIGSTOP, false);
  wait_stopped(reader);
  EXPECT_LT(publish_until_full(1000), 100);
  ::kill(reader, SIGKILL);
  EXPECT_EQ(end_of(reader), -SIGKILL);
  EXPECT_EQ(publish_until_full(1000), 1000);
}

TEST_F(Readers, StoppedWithALeaseHoldsThatVersionOnly) {
  const pid_t reader = start_pinned(SIGSTOP, true);
  wait_stopped(reader);
  EXPECT_EQ(publish_until_full(1000), 1000);
  store_->reclaim();
  EXPECT_LE(store_->stats().waiting_chunks, 2U);
  ::kill(reader, SIGCONT);
  EXPECT_EQ(end_of(reader), 0) << "what the reader had leased was reused";
}

TEST_F(Readers, NewWriterKeepsAPinThatIsOlderThanItself) {
  const pid_t reader = start_pinned(SIGSTOP, false);
  wait_stopped(reader);
  publish_until_full(5);
  store_.reset();
  store_ = must(Store::attach(options(folder_, 4 * kMiB)));
  store_->set_slots(&slots_);
  EXPECT_LT(publish_until_full(1000), 100);
  ::kill(reader, SIGCONT);
  EXPECT_EQ(end_of(reader), 0) << "what the reader had pinned was reused";
}

/// Steps that the processes of the next test wait for.
struct Steps {
  std::atomic<int> writer{0};
  std::atomic<int> reader{0};
  std::atomic<int> end{0};
};

void wait_for(const std::atomic<int>& step, int value) {
  while (step.load() < value) ::usleep(1000);
}

/// The first writer: builds a table, waits until it is leased, publishes three more versions.
int first_writer(const Folder& folder, Steps& steps) {
  Store store = must(Store::create(options(folder, 64 * kMiB)));
  SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
  must(slots.add(0));
  store.set_slots(&slots);
  const auto add = [&](std::uint32_t key) {
    Transaction transaction = store.begin();
    Table table(transaction, store.current().root);
    if (!table.put(key, 200, key)) ::_exit(1);
    must(store.publish(std::move(transaction), table.root(), 0));
  };
  for (std::uint32_t key = 0; key < 2000; ++key) add(key);
  steps.writer.store(1);
  wait_for(steps.reader, 1);
  for (std::uint32_t key = 0; key < 3; ++key) add(key);
  steps.writer.store(2);
  for (;;) ::pause();
}

int leasing_reader(const Folder& folder, Steps& steps) {
  wait_for(steps.writer, 1);
  const SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
  Reader reader = must(Reader::attach(must(slots.lend(0)), kLayout, 0));
  const Reader::View view = reader.pin();
  must(reader.take_lease());
  reader.unpin();
  const auto before = walk(view.window, view.root);
  steps.reader.store(1);
  wait_for(steps.end, 1);
  const auto after = walk(view.window, view.root);
  return before && after && before->values == 2000 && before->sum == after->sum ? 0 : 1;
}

TEST(StoreKill, LeaseSurvivesItsWriterAndAMillionUpdatesOfTheNext) {
  const Folder folder;
  void* memory =
      ::mmap(nullptr, sizeof(Steps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Steps& steps = *new (memory) Steps();
  const pid_t writer = start_child([&] { return first_writer(folder, steps); });
  const pid_t reader = start_child([&] { return leasing_reader(folder, steps); });
  wait_for(steps.writer, 2);
  ::kill(writer, SIGKILL);
  EXPECT_EQ(end_of(writer), -SIGKILL);

  Store store = must(Store::attach(options(folder, 64 * kMiB)));
  SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
  store.set_slots(&slots);
  for (int i = 0; i < kSmallUpdates; ++i) {
    Transaction transaction = store.begin();
    Table table(transaction, store.current().root);
    ASSERT_TRUE(table.put(static_cast<std::uint32_t>(i) % 2000, 24, static_cast<unsigned>(i)));
    must(store.publish(std::move(transaction), table.root(), 0));
  }
  must(store.check());
  EXPECT_EQ(store.current().number, 2004U + kSmallUpdates);
  const auto found = walk(store.window(), store.current().root);
  ASSERT_TRUE(found);
  EXPECT_EQ(store.stats().live_bytes, live_bytes_of(store, *found));
  // The leased version (0.6 MB), the current one, and what the updates scattered.
  EXPECT_LE(store.stats().chunks_in_use, 200U);
  steps.end.store(1);
  EXPECT_EQ(end_of(reader), 0) << "the leased version changed";
  store.set_slots(nullptr);
}

}  // namespace
}  // namespace pando::shm

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--writer") {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pando::shm::Writer(argv[2]).run();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

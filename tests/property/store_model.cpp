// Random transactions against a model, while reader processes check that whatever they pin or
// lease is one whole version.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "base/build.h"
#include "shm/live_file.h"
#include "shm/map/locks.h"
#include "shm/reader.h"
#include "tests/property/store_table.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace {

using namespace test;

constexpr int kVersions = kSanitized ? 1500 : 10'000;
constexpr std::uint32_t kReaders = 2;

struct Signals {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> looks{0};
};

Signals* shared_signals() {
  void* memory =
      ::mmap(nullptr, sizeof(Signals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Signals();
}

/// A reader process: pins, leases, and walks what it holds until told to stop. The exit status says
/// what went wrong.
class Watcher {
 public:
  Watcher(Reader reader, Signals& signals, std::uint32_t seed)
      : reader_(std::move(reader)), signals_(signals), random_(seed) {}

  int run() {
    while (!signals_.stop.load()) {
      if (!look_at_current()) return 1;
      if (!look_at_leases()) return 2;
      signals_.looks.fetch_add(1);
    }
    return 0;
  }

 private:
  struct Held {
    std::size_t lease;
    Reader::View view;
  };

  bool look_at_current() {
    const Reader::View view = reader_.pin();
    const bool whole = view.version >= last_ && walk(view.window, view.root).has_value();
    last_ = view.version;
    if (held_.size() < 5 && random_() % 4 == 0) {
      if (auto lease = reader_.take_lease()) held_.push_back({*lease, view});
    }
    reader_.unpin();
    return whole;
  }

  bool look_at_leases() {
    for (const Held& held : held_)
      if (!walk(held.view.window, held.view.root)) return false;
    if (!held_.empty() && random_() % 4 == 0) {
      const std::size_t which = random_() % held_.size();
      reader_.give_up_lease(held_[which].lease);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    return true;
  }

  Reader reader_;
  Signals& signals_;
  std::mt19937 random_;
  std::vector<Held> held_;
  std::uint64_t last_ = 0;
};

/// What the table should hold: key → (octets, seed).
using Model = std::map<std::uint32_t, std::pair<std::size_t, std::uint64_t>>;

class StoreModel : public ::testing::Test {
 protected:
  StoreModel() { store_.set_slots(&slots_); }
  ~StoreModel() override {
    signals_->stop.store(true);
    for (const pid_t reader : readers_)
      EXPECT_EQ(end_of(reader), 0) << "a reader saw a version that is not whole";
    store_.set_slots(nullptr);
  }

  void start_readers() {
    for (std::uint32_t slot = 0; slot < kReaders; ++slot) {
      must(slots_.add(slot));
      readers_.push_back(start_child([this, slot] {
        auto reader = Reader::attach(must(slots_.lend(slot)), kLayout, slot);
        return Watcher(must(std::move(reader)), *signals_, slot + 1).run();
      }));
    }
  }

  /// Without taking the exit status from whoever checks it at the end.
  [[nodiscard]] bool readers_alive() const {
    for (const pid_t reader : readers_) {
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(reader), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid == reader) return false;
    }
    return true;
  }

  std::size_t random_bytes() {
    const auto kind = random_() % 100;
    if (kind == 0) return random_() % 20'000 * 8;  // sometimes above a chunk
    if (kind < 10) return random_() % 1000 * 8;
    return random_() % 40 * 8;
  }

  /// One random change to the table and to the model's copy.
  bool change(Table& table, Model& model) {
    const auto key = static_cast<std::uint32_t>(random_() % kKeys);
    if (random_() % 3 == 0) {
      model.erase(key);
      return table.erase(key);
    }
    const std::size_t octets = random_bytes();
    const std::uint64_t seed = random_();
    model[key] = {octets, seed};
    return table.put(key, octets, seed);
  }

  /// A transaction of random size that is published, dropped, or fails because the store is full.
  void random_version() {
    Transaction transaction = store_.begin();
    Table table(transaction, store_.current().root);
    Model after = model_;
    const std::size_t changes = 1 + random_() % (random_() % 20 == 0 ? 300 : 4);
    bool fits = true;
    for (std::size_t i = 0; fits && i < changes; ++i) fits = change(table, after);
    if (!fits) return make_room();
    if (random_() % 8 == 0) return;  // dropped
    if (store_.publish(std::move(transaction), table.root(), random_()))
      model_ = std::move(after);
    else
      ++full_;  // readers hold so much that there was no room for the root block
  }

  /// More than fits, in one transaction, which is then dropped: whatever readers hold, the store is
  /// full for a moment.
  void overfill() {
    Transaction transaction = store_.begin();
    Table table(transaction, store_.current().root);
    for (std::uint32_t key = 0; key < kKeys; ++key)
      if (!table.put(key, 150'000, key)) return make_room();
    FAIL() << "more than the limit went in";
  }

  void make_room() {
    ++full_;
    Transaction transaction = store_.begin();
    transaction.use_reserve();
    Table table(transaction, store_.current().root);
    Model after = model_;
    for (std::uint32_t i = 0; i < 8 && !after.empty(); ++i) {
      const auto victim = after.lower_bound(static_cast<std::uint32_t>(random_() % kKeys));
      const auto key = victim == after.end() ? after.begin()->first : victim->first;
      after.erase(key);
      if (!table.erase(key)) return;  // readers hold what there is: try again later
    }
    if (store_.publish(std::move(transaction), table.root(), 0)) model_ = std::move(after);
  }

  void compact() {
    store_.choose_victims(60, 8);
    Transaction transaction = store_.begin();
    transaction.use_reserve();
    Table table(transaction, store_.current().root);
    if (table.compact() && !store_.publish(std::move(transaction), table.root(), 0)) ++full_;
    store_.forget_victims();
  }

  void expect_model() {
    const auto found = walk(store_.window(), store_.current().root);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->values, model_.size());
    EXPECT_EQ(found->sum, sum_of_model());
    EXPECT_EQ(store_.stats().live_bytes, live_bytes_of(store_, *found));
    must(store_.check());
  }

  [[nodiscard]] std::uint64_t sum_of_model() const {
    std::uint64_t sum = 0;
    std::vector<std::uint64_t> words;
    for (const auto& [key, value] : model_) {
      words.clear();
      for (std::size_t i = 0; i + 8 <= value.first; i += 8) words.push_back(value.second + i);
      sum += hash_of(key, reinterpret_cast<const std::byte*>(words.data()), value.first);
    }
    return sum;
  }

  Folder folder_;
  Store store_ = must(Store::create(options(folder_, 8 * kMiB)));
  SlotTable slots_ = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
  Signals* signals_ = shared_signals();
  std::vector<pid_t> readers_;
  std::mt19937 random_{20240501};
  Model model_;
  int full_ = 0;
};

TEST_F(StoreModel, RandomTransactionsMatchTheModelWhileReadersVerify) {
  start_readers();
  for (int i = 0; i < kVersions; ++i) {
    random_version();
    if (i % 50 == 0) compact();
    if (i % 10 == 0) store_.reclaim();
    if (i % 100 == 0) expect_model();
    if (i % 300 == 299) overfill();
  }
  // Every reader has looked often enough to have met a wrong version if there was one.
  while (signals_->looks.load() < 200 && readers_alive())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_model();
  EXPECT_GT(full_, 0) << "the store was never full: the test does not reach its edges";
}

/// Pins with the protocol's own functions on the writer's mapping, so that ThreadSanitizer, which
/// does not know that two mappings are one memory, can follow from the writer's last store to a
/// reused block back to the reader's last look at it.
bool watch_in_thread(const Store& store, SlotPage& page, const std::atomic<bool>& stop) {
  const auto* header = reinterpret_cast<const Header*>(store.window().base());
  bool whole = true;
  for (std::uint64_t looks = 0; whole && !stop.load(); ++looks) {
    const Pinned pinned = pin(header->publication, page.epoch);
    const Window window(store.window().base(), header->committed.load(std::memory_order_acquire));
    const RootBlock* block = root_block_at(window, Ref<RootBlock>{pinned.root});
    whole = block != nullptr && walk(window, Ref<>{block->root}).has_value();
    const bool lease = looks % 2 == 0 && block != nullptr;
    const Ref<> root{block != nullptr ? block->root : 0};
    if (lease) hold_lease(page.leases[0], block->version);
    unpin(page.epoch);
    if (!lease) continue;
    whole = whole && walk(window, root).has_value();
    drop_lease(page.leases[0]);
  }
  return whole;
}

TEST_F(StoreModel, ReaderThreadsAreNeverOverwritten) {
  std::atomic<bool> stop{false};
  std::atomic<int> whole{0};
  const Fd locks = must(open_store_file(folder_.store(), O_RDONLY));
  std::vector<std::thread> readers;
  for (std::uint32_t slot = 0; slot < kReaders; ++slot) {
    SlotPage* page = must(slots_.add(slot));
    ASSERT_TRUE(must(try_lock(locks.get(), LockKind::kShared, kSlotLockBase + slot)));
    readers.emplace_back([&, page] { whole += watch_in_thread(store_, *page, stop) ? 1 : 0; });
  }
  std::thread builder([&] {
    while (!stop.load()) {
      Transaction zone = store_.begin_private();
      for (int i = 0; i < 20; ++i)
        if (const auto block = zone.allocate(3000)) std::memset(zone.writable(*block), 1, 3000);
    }
  });
  for (int i = 0; i < kVersions; ++i) {
    random_version();
    if (i % 50 == 0) compact();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  builder.join();
  EXPECT_EQ(whole.load(), static_cast<int>(kReaders));
  expect_model();
}

TEST_F(StoreModel, TableSurvivesAttachingAgainAndAgain) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) random_version();
    const VersionInfo before = store_.current();
    const Folder elsewhere;
    store_ = must(Store::create(options(elsewhere, kMiB)));  // lets go of the lock
    store_ = must(Store::attach(options(folder_, 8 * kMiB)));
    store_.set_slots(&slots_);
    EXPECT_EQ(store_.current().number, before.number);
    EXPECT_EQ(store_.current().root, before.root);
    expect_model();
  }
}

}  // namespace
}  // namespace pando::shm

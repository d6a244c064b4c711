// The pin protocol of shm/epoch.h under load: one writer that reuses memory as soon as the protocol
// allows, one reader that looks at what it pinned. The same code runs with two processes and, so
// that ThreadSanitizer can follow it, with two threads.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <new>
#include <thread>

#include "base/build.h"
#include "shm/epoch.h"

namespace pando::shm {
namespace {

constexpr std::uint64_t kRounds = kSanitized ? 400'000 : 10'000'000;
/// So few blocks that each is reused within microseconds.
constexpr std::size_t kBlocks = 6;
/// The reader keeps a lease for this many pins, then lets it go for as many.
constexpr std::uint64_t kLeasePins = 32;

/// Plain words on purpose: if the writer ever overlaps a reader, ThreadSanitizer sees a data race.
struct alignas(64) Block {
  std::array<std::uint64_t, 8> words;
};

struct Arena {
  Publication words;
  SlotPage slot;
  std::array<Block, kBlocks> blocks;
  alignas(64) std::atomic<std::uint64_t> pins;
  std::atomic<std::uint64_t> versions;
  std::atomic<bool> writer_done;
  std::atomic<bool> reader_failed;
};

void write_block(Block& block, std::uint64_t version) {
  for (std::uint64_t& word : block.words) word = version;
}

/// The version a block belongs to, 0 when it is a mixture.
std::uint64_t version_in(const Block& block) {
  for (const std::uint64_t word : block.words)
    if (word != block.words[0]) return 0;
  return block.words[0];
}

class Writer {
 public:
  explicit Writer(Arena& arena) : arena_(arena) {
    write_block(arena_.blocks[0], 1);
    lives_[0] = {1, 0};
    publish_words(arena_.words, 1, 1);
  }

  void run() {
    while ((version_ < kRounds || arena_.pins.load() < kRounds) && !arena_.reader_failed.load()) {
      publish();
      arena_.versions.store(version_, std::memory_order_relaxed);
    }
    arena_.writer_done.store(true);
  }

 private:
  struct Life {
    std::uint64_t born = 0;  // 0 = free
    std::uint64_t freed_at = 0;
  };

  void publish() {
    const std::size_t next = free_block();
    write_block(arena_.blocks[next], version_ + 1);
    lives_[next] = {version_ + 1, 0};
    ++version_;
    publish_words(arena_.words, static_cast<std::uint32_t>(next + 1), version_);
    lives_[current_].freed_at = version_;
    current_ = next;
  }

  std::size_t free_block() {
    for (;;) {
      holds_.clear();
      collect_holds(arena_.slot, version_, holds_);
      for (std::size_t i = 0; i < kBlocks; ++i)
        if (i != current_ && reusable(lives_[i])) return i;
      ::sched_yield();  // the reader was preempted while it had something pinned
    }
  }

  [[nodiscard]] bool reusable(const Life& life) const {
    if (life.freed_at > holds_.oldest_batch) return false;
    for (const std::uint64_t version : holds_.exact)
      if (life.born <= version && version < life.freed_at) return false;
    return true;
  }

  Arena& arena_;
  std::array<Life, kBlocks> lives_{};
  std::uint64_t version_ = 1;
  std::size_t current_ = 0;
  Holds holds_;
};

class Watcher {
 public:
  explicit Watcher(Arena& arena) : arena_(arena) {}

  void run() {
    while (!arena_.writer_done.load(std::memory_order_relaxed)) {
      if (!look()) {
        arena_.reader_failed.store(true);
        return;
      }
    }
    drop_lease(lease());
  }

 private:
  Lease& lease() { return arena_.slot.leases[3]; }

  bool look() {
    const Pinned pinned = pin(arena_.words, arena_.slot.epoch);
    const Block& block = arena_.blocks[pinned.root - 1];
    const std::uint64_t version = version_in(block);
    bool good = version >= pinned.epoch && version >= last_;
    last_ = version;
    take_or_drop_lease(block, version);
    // A second look at both: what is pinned or leased must not have changed in between.
    good = good && version_in(block) == version;
    unpin(arena_.slot.epoch);
    if (leased_ != nullptr) good = good && version_in(*leased_) == leased_version_;
    arena_.pins.store(++pins_, std::memory_order_relaxed);
    return good;
  }

  void take_or_drop_lease(const Block& block, std::uint64_t version) {
    if (pins_ % kLeasePins != 0) return;
    if (leased_ == nullptr) {
      hold_lease(lease(), version);
      leased_ = &block;
      leased_version_ = version;
    } else {
      drop_lease(lease());
      leased_ = nullptr;
    }
  }

  Arena& arena_;
  const Block* leased_ = nullptr;
  std::uint64_t leased_version_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t pins_ = 0;
};

Arena* shared_arena() {
  void* memory =
      ::mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Arena();
}

TEST(EpochLitmus, ReaderProcessNeverSeesReusedMemory) {
  Arena* arena = shared_arena();
  ASSERT_NE(arena, nullptr);
  Writer writer(*arena);
  const pid_t reader = ::fork();
  if (reader == 0) {
    Watcher(*arena).run();
    ::_exit(0);
  }
  writer.run();
  int status = 0;
  ::waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(arena->reader_failed.load());
  EXPECT_GE(arena->versions.load(), kRounds);
  EXPECT_GE(arena->pins.load(), kRounds);
}

TEST(EpochLitmus, ReaderThreadNeverSeesReusedMemory) {
  Arena* arena = shared_arena();
  ASSERT_NE(arena, nullptr);
  Writer writer(*arena);
  std::thread reader([arena] { Watcher(*arena).run(); });
  writer.run();
  reader.join();
  EXPECT_FALSE(arena->reader_failed.load());
  EXPECT_GE(arena->pins.load(), kRounds);
}

}  // namespace
}  // namespace pando::shm

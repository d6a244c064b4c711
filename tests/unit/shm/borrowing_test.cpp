// A store that is served from an image's file while that is copied: what readers see before, during
// and after, what a writer that dies leaves, and damage.

#include "shm/borrowing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "shm/inspect/inspection.h"
#include "shm/layout.h"
#include "shm/live_file.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace borrowing_test {

using namespace test;

constexpr int kBlocks = 60;
constexpr std::size_t kBlockBytes = 30'000;  // two to a chunk

/// An image in a file of its own, as manager/checkpoint/image has it.
class ImageInFile : public ImageSource {
 public:
  explicit ImageInFile(std::string path) : path_(std::move(path)) {}

  void write(Store& store) {
    ImageCapture capture = store.capture();
    const Window window = store.window();
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    for (std::uint32_t chunk = 0; chunk < capture.state.chunks.size(); ++chunk) {
      ImageChunk& part = capture.state.chunks[chunk];
      if (part.count == 0) continue;
      const ByteView bytes = chunk_bytes(window, chunk, 0, part.used);
      part.checksum = chunk_checksum(bytes);
      file.seekp(static_cast<std::streamoff>((chunk + 1) * kChunkBytes));
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    file.close();
    state = std::move(capture.state);
    std::filesystem::resize_file(path_, (state.chunks.size() + 1) * kChunkBytes);
  }
  void damage(std::uint32_t chunk) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    const auto at = static_cast<std::streamoff>((chunk + 1) * kChunkBytes + 100);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }
  /// As checkpoints may when nobody has the file.
  void overwrite() {
    std::ofstream file(path_, std::ios::binary);
    const std::string nonsense((state.chunks.size() + 1) * kChunkBytes, '\x77');
    file.write(nonsense.data(), static_cast<std::streamsize>(nonsense.size()));
  }
  void cut(std::uint64_t bytes) { std::filesystem::resize_file(path_, bytes); }
  [[nodiscard]] ImageFile open() const { return {Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC))}; }

  Status read(std::uint32_t chunk, std::span<std::uint8_t> into, std::uint32_t checksum) override {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>((chunk + 1) * kChunkBytes));
    file.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    if (!file || chunk_checksum(into) != checksum) return fail(Errc::kCorrupt, "chunk {}", chunk);
    return {};
  }
  Result<ImageFile> file(std::uint32_t chunks) override {
    mapped = chunks;
    return open();
  }
  void lent(std::unique_ptr<Borrowing> given) override { borrowing = std::move(given); }

  ImageState state;
  std::uint32_t mapped = 0;
  std::unique_ptr<Borrowing> borrowing;

 private:
  std::string path_;
};

bool always() { return true; }

std::uint64_t memory_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

class BorrowedStore : public ::testing::Test {
 protected:
  /// Blocks of which every third was freed again, so that there are empty chunks between others.
  BorrowedStore() {
    {
      Store first = must(Store::create(options(folder_)));
      for (int i = 0; i < kBlocks; ++i) {
        Transaction transaction = first.begin();
        blocks_[i] = put(transaction, kBlockBytes, i);
        must(first.publish(std::move(transaction), blocks_[0], 40));
      }
      Transaction transaction = first.begin();
      for (int i = 0; i < kBlocks; ++i)
        if (i % 6 > 3) transaction.release(blocks_[i], kBlockBytes);
      must(first.publish(std::move(transaction), blocks_[0], 41));
      image_.write(first);
    }
    std::filesystem::remove(folder_.store());
  }
  ~BorrowedStore() override {
    if (store_) store_->set_slots(nullptr);
    image_.borrowing.reset();
  }
  void borrow() {
    store_.emplace(must(Store::restore(options(folder_), image_.state, image_)));
    ASSERT_NE(image_.borrowing, nullptr);
    slots_.emplace(must(SlotTable::open(folder_.slots(), folder_.store(), kLayout)));
    must(slots_->add(0));
    store_->set_slots(&*slots_);
  }
  Result<Reader> try_attach(ImageFile image) {
    return Reader::attach(must(slots_->lend(0)), kLayout, 0,
                          std::move(image));
  }
  Reader attach() { return must(try_attach(image_.open())); }
  void copy() { must(image_.borrowing->copy(image_, always)); }
  void settle() { must(image_.borrowing->settle()); }
  [[nodiscard]] static bool is_live(int block) { return block % 6 <= 3; }
  void expect_blocks(const Window& window) const {
    for (int i = 0; i < kBlocks; ++i)
      if (is_live(i)) {
        EXPECT_TRUE(filled(window, blocks_[i], kBlockBytes, i)) << i;
      }
  }
  /// One version that replaces block `i` by one of another value.
  void replace(int i, int value) {
    Transaction transaction = store_->begin();
    transaction.release(blocks_[i], kBlockBytes);
    blocks_[i] = put(transaction, kBlockBytes, value);
    must(store_->publish(std::move(transaction), blocks_[i], 42));
  }

  Folder folder_;
  ImageInFile image_{folder_.path() + "/image"};
  Ref<> blocks_[kBlocks];
  std::optional<Store> store_;
  std::optional<SlotTable> slots_;
};

TEST_F(BorrowedStore, IsServedBeforeItIsCopied) {
  borrow();
  Reader reader = attach();
  const Reader::View view = reader.pin();
  EXPECT_EQ(view.version, image_.state.version);
  expect_blocks(view.window);
  expect_blocks(store_->window());
  EXPECT_EQ(store_->current().journal_position, 41U);
  EXPECT_LT(store_->stats().memory_bytes, image_.borrowing->bytes() / 4) << "it was copied";
  must(store_->check());
}

TEST_F(BorrowedStore, CannotBeReadWithoutTheImage) {
  borrow();
  EXPECT_EQ(try_attach({}).error().code, Errc::kInvalid);
  image_.cut(image_.mapped * kChunkBytes);
  EXPECT_EQ(try_attach(image_.open()).error().code, Errc::kCorrupt) << "would be SIGBUS";
}

TEST_F(BorrowedStore, TakesChangesBehindTheImage) {
  borrow();
  Reader reader = attach();
  for (int i = 0; i < 20; ++i) {
    if (!is_live(i)) continue;
    replace(i, i + 100);
    EXPECT_GE(blocks_[i].offset(), chunk_offset(image_.mapped)) << "nobody would see it";
    store_->reclaim();
    const Reader::View view = reader.pin();
    EXPECT_TRUE(filled(view.window, view.root, kBlockBytes, i + 100));
    reader.unpin();
  }
  must(store_->check());
  copy();
  settle();
  EXPECT_EQ(image_.borrowing->copied(), image_.borrowing->bytes());
  const Reader::View view = reader.pin();
  for (int i = 0; i < kBlocks; ++i)
    if (is_live(i)) {
      EXPECT_TRUE(filled(view.window, blocks_[i], kBlockBytes, i < 20 ? i + 100 : i)) << i;
    }
  must(store_->check());
}

TEST_F(BorrowedStore, UsesTheImagesChunksAgainWhenItIsSettled) {
  borrow();
  Reader reader = attach();
  (void)reader.pin();
  reader.unpin();
  copy();
  settle();
  bool used_again = false;
  for (int round = 0; round < 4; ++round)
    for (int i = 0; i < kBlocks; ++i) {
      if (!is_live(i)) continue;
      replace(i, 100 + i + round);
      store_->reclaim();
      const Reader::View view = reader.pin();
      EXPECT_TRUE(filled(view.window, view.root, kBlockBytes, 100 + i + round))
          << "the reader still sees the image";
      reader.unpin();
      used_again = used_again || blocks_[i].offset() < chunk_offset(image_.mapped);
    }
  EXPECT_TRUE(used_again);
  must(store_->check());
}

TEST_F(BorrowedStore, KeepsWhatALeaseNames) {
  borrow();
  Reader reader = attach();
  const Reader::View before = reader.pin();
  must(reader.take_lease());
  reader.unpin();
  copy();
  settle();
  reader.settle();
  image_.overwrite();
  for (int i = 0; i < kBlocks; ++i)
    if (is_live(i)) {
      const Ref<> old = blocks_[i];
      replace(i, 200);
      store_->reclaim();
      EXPECT_TRUE(filled(before.window, old, kBlockBytes, i)) << i;
    }
}

TEST_F(BorrowedStore, GoesOnInTheImageForAReaderThatHasNotLooked) {
  borrow();
  Reader reader = attach();
  const Reader::View view = reader.pin();
  copy();
  settle();
  expect_blocks(view.window);
  reader.unpin();
  image_.overwrite();
  expect_blocks(reader.pin().window);
}

TEST_F(BorrowedStore, IsMadeAnewAfterItsWriterDied) {
  EXPECT_EQ(in_child([&] {
              borrow();
              replace(0, 99);
              int chunks = 0;
              (void)image_.borrowing->copy(image_, [&] { return ++chunks < 10; });
              return image_.borrowing->copied() == 9 * kChunkBytes ? 7 : 1;
            }),
            7);
  EXPECT_TRUE(died_borrowing(options(folder_)));
  const std::uint64_t before = memory_of(folder_.store());
  EXPECT_EQ(Store::attach(options(folder_)).error().code, Errc::kCorrupt);
  EXPECT_LE(memory_of(folder_.store()) + 9 * kChunkBytes, before) << "the next store needs it";
  EXPECT_EQ(Inspection::open(folder_.store(), kLayout).error().code, Errc::kCorrupt);
  borrow();
  copy();
  settle();
  EXPECT_FALSE(died_borrowing(options(folder_)));
  expect_blocks(store_->window());
  must(store_->check());
}

TEST_F(BorrowedStore, UsesChunksBehindTheImageAgainMeanwhile) {
  borrow();
  Reader reader = attach();
  std::uint64_t highest = 0;
  for (int round = 0; round < 300; ++round) {
    replace(0, round);
    store_->reclaim();
    const Reader::View view = reader.pin();
    EXPECT_TRUE(filled(view.window, view.root, kBlockBytes, round));
    reader.unpin();
    highest = std::max<std::uint64_t>(highest, blocks_[0].offset());
  }
  EXPECT_LT(highest, chunk_offset(image_.mapped + 100));
  for (int i = 1; i < kBlocks; ++i)  // the image's own become empty and are let alone
    if (is_live(i)) replace(i, 7);
  store_->reclaim();
  must(store_->check());
  copy();
  settle();
  must(store_->check());
  for (int i = 1; i < kBlocks; ++i)
    if (is_live(i)) {
      EXPECT_TRUE(filled(store_->window(), blocks_[i], kBlockBytes, 7)) << i;
    }
}

TEST_F(BorrowedStore, IsLikeAnyOtherWhenItWasSettled) {
  EXPECT_EQ(in_child([&] {
              borrow();
              copy();
              replace(0, 99);
              settle();
              return 7;
            }),
            7);
  image_.overwrite();
  store_.emplace(must(Store::attach(options(folder_))));
  slots_.emplace(must(SlotTable::open(folder_.slots(), folder_.store(), kLayout)));
  store_->set_slots(&*slots_);
  EXPECT_TRUE(filled(store_->window(), store_->current().root, kBlockBytes, 99));
  for (int i = 1; i < kBlocks; ++i)
    if (is_live(i)) {
      EXPECT_TRUE(filled(store_->window(), blocks_[i], kBlockBytes, i)) << i;
    }
  must(store_->check());
}

TEST_F(BorrowedStore, FindsDamageWhileItCopies) {
  borrow();
  std::uint32_t last = image_.mapped - 1;
  image_.damage(last);
  EXPECT_EQ(image_.borrowing->copy(image_, always).error().code, Errc::kCorrupt);
  EXPECT_LT(image_.borrowing->copied(), image_.borrowing->bytes());
}

TEST_F(BorrowedStore, WaitsForMemory) {
  EXPECT_EQ(in_child([&] {
              borrow();
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit none{chunk_offset(5), RLIM_INFINITY};
              ::setrlimit(RLIMIT_FSIZE, &none);
              const auto full = image_.borrowing->copy(image_, always);
              if (full || full.error().code != Errc::kFull) return 1;
              const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
              ::setrlimit(RLIMIT_FSIZE, &all);
              copy();
              settle();
              expect_blocks(store_->window());
              return HasFailure() ? 2 : 7;
            }),
            7);
}

/// Where the file cannot be mapped.
TEST_F(BorrowedStore, IsCopiedFirstFromASourceWithoutAFile) {
  struct Plain : ImageSource {
    explicit Plain(ImageInFile& file) : image(file) {}
    Status read(std::uint32_t chunk, std::span<std::uint8_t> into,
                std::uint32_t checksum) override {
      return image.read(chunk, into, checksum);
    }
    ImageInFile& image;
  };
  Plain plain(image_);
  store_.emplace(must(Store::restore(options(folder_), image_.state, plain)));
  expect_blocks(store_->window());
  must(store_->check());
}

}  // namespace borrowing_test
}  // namespace pando::shm

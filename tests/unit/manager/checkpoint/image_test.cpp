// The image on a model of a disk: what a checkpoint wrote is there after a crash, whatever the next
// one was doing, and damage is found.

#include "manager/checkpoint/image.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdlib>
#include <deque>
#include <random>

#include "shm/side_table.h"
#include "shm/slots.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace image_test {

using shm::test::must;
using testing::FakeDisk;

constexpr const char* kPath = "/disk/zones.image";

/// The expected contents of a version: a block for each number, filled with a byte, and a list of
/// their references as the root.
struct Contents {
  std::map<std::uint32_t, std::uint8_t> blocks;
  bool operator==(const Contents&) const = default;
};

struct Entry {
  std::uint32_t key;
  std::uint32_t ref;
  std::uint32_t bytes;
  std::uint32_t value;
};

/// A store whose versions are maps. Each block's length follows from its key, some are runs.
class Blocks {
 public:
  explicit Blocks(shm::Store&& store) : store_(std::move(store)) { read(); }

  static std::uint32_t length_of(std::uint32_t key) {
    return key % 16 == 0 ? 70'000 + key : 600 + key * 37 % 9000;
  }

  void change(std::mt19937_64& random) {
    shm::Transaction transaction = store_.begin();
    std::map<std::uint32_t, Entry> next = entries_;
    for (std::uint64_t i = random() % 6 + 1; i > 0; --i) {
      const auto key = static_cast<std::uint32_t>(random() % 60);
      if (const auto old = next.find(key); old != next.end()) {
        transaction.release(shm::Ref<>{old->second.ref}, old->second.bytes);
        next.erase(old);
        if (random() % 3 == 0) continue;
      }
      const auto value = static_cast<std::uint32_t>(random() % 256);
      const shm::Ref<> ref = shm::test::put(transaction, length_of(key), static_cast<int>(value));
      next[key] = {key, ref.units, length_of(key), value};
    }
    publish(std::move(transaction), std::move(next));
  }

  [[nodiscard]] Contents contents() const {
    Contents contents;
    for (const auto& [key, entry] : entries_)
      contents.blocks[key] = static_cast<std::uint8_t>(entry.value);
    return contents;
  }
  shm::Store& store() { return store_; }
  /// All blocks are as the list says.
  void check() {
    for (const auto& [key, entry] : entries_)
      ASSERT_TRUE(shm::test::filled(store_.window(), shm::Ref<>{entry.ref}, entry.bytes,
                                    static_cast<int>(entry.value)))
          << "block " << key;
    must(store_.check());
  }

 private:
  void publish(shm::Transaction&& transaction, std::map<std::uint32_t, Entry>&& next) {
    if (list_bytes_ != 0) transaction.release(store_.current().root, list_bytes_);
    std::vector<Entry> list{{static_cast<std::uint32_t>(next.size()), 0, 0, 0}};
    for (const auto& [key, entry] : next) list.push_back(entry);
    list_bytes_ = list.size() * sizeof(Entry);
    const shm::Ref<> root = must(transaction.allocate(list_bytes_));
    std::memcpy(transaction.writable(root), list.data(), list_bytes_);
    must(store_.publish(std::move(transaction), root, store_.current().journal_position + 1));
    entries_ = std::move(next);
  }
  void read() {
    const shm::Ref<> root = store_.current().root;
    if (!root) return;
    const auto* head = store_.window().at(root.as<Entry>());
    ASSERT_NE(head, nullptr);
    for (std::uint32_t i = 1; i <= head->key; ++i) entries_[head[i].key] = head[i];
    list_bytes_ = (head->key + 1) * sizeof(Entry);
  }

  shm::Store store_;
  std::map<std::uint32_t, Entry> entries_;
  std::size_t list_bytes_ = 0;
};

bool at_once(std::uint64_t) { return true; }

/// A manager with an image, on a host that may crash.
class Host {
 public:
  explicit Host(std::uint64_t seed) : random(seed) {}

  shm::StoreOptions options() const {
    shm::StoreOptions chosen = shm::test::options(folder_, 64 << 20);
    chosen.owner = {1, 2};
    return chosen;
  }
  Image::Options image_options() const { return {kPath, shm::test::kLayout, {1, 2}}; }

  /// The host starts: the store is lost, the image is what the disk has.
  Status boot() {
    stop();
    std::filesystem::remove(folder_.store());
    image.emplace(disk, image_options());
    auto opened = image->open();
    if (opened) {
      auto source = image->source();
      if (!source) return pass(source);
      auto store = shm::Store::restore(options(), image->index()->state, **source);
      if (!store) return pass(store);
      begin(std::move(*store));
      return {};
    }
    begin(must(shm::Store::create(options())));
    image->forget();
    return opened;
  }
  /// The process alone starts again.
  void restart() {
    stop();
    image.emplace(disk, image_options());
    shm::Store store = must(shm::Store::attach(options()));
    const bool known = image->look(store.lineage()).has_value();
    if (!known) image->forget();
    begin(std::move(store));
  }
  void begin(shm::Store&& store) {
    blocks.emplace(std::move(store));
    slots.emplace(must(shm::SlotTable::open(folder_.slots(), folder_.store(), shm::test::kLayout)));
    pin = pin_index();
    blocks->store().set_slots(&*slots);
  }
  void stop() {
    pin = {};
    blocks.reset();
    slots.reset();
  }
  shm::SlotTable::OwnPin pin_index() {
    return image->index() == nullptr ? shm::SlotTable::OwnPin()
                                     : slots->pin_own(image->index()->state.version);
  }
  Result<Image::Written> checkpoint() {
    auto current = slots->pin_own(blocks->store().current().number);
    auto written = image->write(blocks->store().capture(), blocks->store().window(), at_once);
    if (written) pin = std::move(current);
    if (!written && !image->in_place()) pin = {};
    return written;
  }

  FakeDisk disk;
  std::mt19937_64 random;
  std::optional<Image> image;
  std::optional<Blocks> blocks;
  std::optional<shm::SlotTable> slots;
  shm::SlotTable::OwnPin pin;

 private:
  shm::test::Folder folder_;
};

TEST(Image, HasWhatTheStoreHadAtTheCheckpoint) {
  Host host(1);
  EXPECT_EQ(host.boot().error().code, Errc::kNotFound);
  for (int i = 0; i < 40; ++i) host.blocks->change(host.random);
  host.blocks->store().side(5000)->expires_at = 77;
  ASSERT_NE(host.blocks->store().side(9), nullptr);  // has memory, and nothing to say
  EXPECT_TRUE(must(host.checkpoint()).anew);
  const Contents saved = host.blocks->contents();
  const shm::VersionInfo version = host.blocks->store().current();
  host.blocks->change(host.random);
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
  EXPECT_EQ(host.blocks->store().current().number, version.number);
  EXPECT_EQ(host.blocks->store().current().journal_position, version.journal_position);
  EXPECT_EQ(host.image->index()->state.side.size(), 1U);
  const shm::Window window = host.blocks->store().window();
  EXPECT_EQ(shm::known_side(window, 9), nullptr);
  ASSERT_NE(shm::known_side(window, 5000), nullptr);
  EXPECT_EQ(shm::known_side(window, 5000)->expires_at, 77U);
  EXPECT_EQ(shm::known_side(window, shm::Store::kSideEntries), nullptr);
  host.blocks->check();
}

TEST(Image, ASecondCheckpointWritesWhatChanged) {
  Host host(2);
  (void)host.boot();
  for (int i = 0; i < 200; ++i) host.blocks->change(host.random);
  const Image::Written all = must(host.checkpoint());
  const Image::Written none = must(host.checkpoint());
  EXPECT_EQ(none.chunks, 0U);
  EXPECT_FALSE(none.anew);
  host.blocks->change(host.random);
  const Image::Written one = must(host.checkpoint());
  EXPECT_GT(one.chunks, 0U);
  EXPECT_LT(one.bytes, all.bytes / 2);
}

TEST(Image, AnotherProcessGoesOnInTheSameFile) {
  Host host(3);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  const Image::Written all = must(host.checkpoint());
  for (int i = 0; i < 3; ++i) {
    host.restart();
    host.blocks->change(host.random);
    const Image::Written more = must(host.checkpoint());
    EXPECT_FALSE(more.anew);
    EXPECT_LT(more.bytes, all.bytes);
    const Contents saved = host.blocks->contents();
    must(host.boot());
    EXPECT_EQ(host.blocks->contents(), saved);
    EXPECT_FALSE(must(host.checkpoint()).anew);
  }
}

TEST(Image, KnowsTheConfigurationOfItsVersion) {
  Host host(10);
  (void)host.boot();
  host.blocks->change(host.random);
  const auto write = [&](std::uint64_t configuration) {
    (void)must(host.image->write(host.blocks->store().capture(), host.blocks->store().window(),
                                 at_once, configuration));
  };
  write(0x0102030405060708);
  must(host.boot());
  EXPECT_EQ(host.image->index()->configuration, 0x0102030405060708U);
  write(0);
  must(host.boot());
  EXPECT_EQ(host.image->index()->configuration, 0U);
}

TEST(Image, OfALiveStoreIsReadWithTheFirstCheckpoint) {
  Host host(7);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  const std::uint64_t version = host.image->index()->state.version;
  host.blocks->change(host.random);
  host.disk.calls.clear();
  host.restart();
  EXPECT_EQ(host.disk.calls[FakeDisk::Call::kRead], 1) << "its head";
  ASSERT_NE(host.image->index(), nullptr);
  EXPECT_EQ(host.image->index()->state.version, version) << "which has to be pinned";
  EXPECT_TRUE(host.image->in_place());
  const Image::Written written = must(host.checkpoint());
  EXPECT_FALSE(written.anew);
  const Contents saved = host.blocks->contents();
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
}

TEST(Image, OfALiveStoreThatIsDamagedBehindItsHeadIsReplaced) {
  Host host(8);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  host.restart();
  host.disk.contents(kPath).back() ^= 1;
  EXPECT_TRUE(must(host.checkpoint()).anew);
  const Contents saved = host.blocks->contents();
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
}

TEST(Image, ThatBecameAnotherOneSinceItWasLookedAtIsReplaced) {
  Host host(9);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  const Bytes older = host.disk.contents(kPath);
  host.blocks->change(host.random);
  (void)must(host.checkpoint());
  host.restart();
  host.disk.contents(kPath) = older;  // whose version nobody has pinned
  EXPECT_TRUE(must(host.checkpoint()).anew);
  const Contents saved = host.blocks->contents();
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
}

/// The bytes with the checksum that they ought to have.
Bytes sealed(Bytes index) {
  index.resize(index.size() - 8);
  append_be32(index, 0);
  append_be32(index, 0);
  store_be64(index.data() + index.size() - 8, XXH3_64bits(index.data(), index.size() - 8));
  return index;
}

TEST(Image, OfAnotherVersionIsNotUsedAndReplaced) {
  for (const std::uint32_t version : {0U, shm::kImageVersion + 1}) {
    Host host(12);
    (void)host.boot();
    host.blocks->change(host.random);
    (void)must(host.checkpoint());
    Bytes& index = host.disk.contents(kPath);
    store_be32(index.data() + 8, version);
    index = sealed(index);
    Image image(host.disk, host.image_options());
    for (const Status& found : {image.open(), image.look(host.blocks->store().lineage())}) {
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code, Errc::kLayout);
      EXPECT_EQ(found.error().text,
                fmt::format("{}: an image of version {}, this build reads version {}", kPath,
                            version, shm::kImageVersion));
    }
    host.restart();
    EXPECT_TRUE(must(host.checkpoint()).anew);
    must(host.boot());
  }
}

TEST(Image, OfAnotherLineageIsNotTakenForOneOfTheLiveStore) {
  Host host(13);
  (void)host.boot();
  for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  const std::uint64_t lineage = host.blocks->store().lineage();
  Image image(host.disk, host.image_options());
  must(image.look(lineage));
  Image other(host.disk, host.image_options());
  const auto paths = host.disk.paths();
  const Status looked = other.look(lineage + 1);
  ASSERT_FALSE(looked);
  EXPECT_TRUE(Image::may_be_good(looked.error().code));
  EXPECT_EQ(other.index(), nullptr) << "nothing is pinned for it";
  EXPECT_EQ(host.disk.paths(), paths);
  // A store that is made from the image goes on with its lineage.
  must(host.boot());
  EXPECT_EQ(host.blocks->store().lineage(), lineage);
}

TEST(Image, OfAnotherStoreIsLeftAndReplaced) {
  Host host(4);
  (void)host.boot();
  for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  must(host.boot());
  Host other(5);
  other.disk = host.disk;
  (void)other.boot();
  for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
  // The first host's store goes on with a disk that has had another store's image since.
  for (int i = 0; i < 50; ++i) other.blocks->change(other.random);
  (void)must(other.checkpoint());
  host.disk = other.disk;
  host.restart();
  ASSERT_NE(host.image->index(), nullptr);
  const Image::Written written = must(host.checkpoint());
  EXPECT_TRUE(written.anew);
  const Contents saved = host.blocks->contents();
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
}

TEST(Image, ThatIsQuarantinedIsLeftAlone) {
  Host host(7);
  (void)host.boot();
  for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  const Contents saved = host.blocks->contents();
  const std::string chunks = host.image->chunks();
  const auto begin_empty = [&host] {
    must(host.image->open());
    must(host.image->quarantine());
    EXPECT_EQ(host.boot().error().code, Errc::kNotFound);
  };
  begin_empty();
  for (int round = 0; round < 3; ++round) {  // each in a file of its own
    for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
    host.image->leave();
    EXPECT_TRUE(must(host.checkpoint()).anew);
  }
  EXPECT_EQ(host.disk.paths().size(), 4U);  // two indexes, two files of chunks
  must(host.boot());
  EXPECT_NE(host.blocks->contents(), saved);

  // There is one already: nothing is changed.
  EXPECT_EQ(host.image->quarantine().error().code, Errc::kExists);
  const Contents second = host.blocks->contents();
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), second);

  // One command undoes it, and what is not named any more goes with the next start.
  must(host.disk.rename(host.image->quarantine_path(), kPath));
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
  EXPECT_EQ(host.image->chunks(), chunks);
  EXPECT_EQ(host.disk.paths().size(), 2U);
}

/// A disk with an image at PATH and a quarantined one; the paths of the latter's
/// files.
std::vector<std::string> quarantine_one(Host& host) {
  (void)host.boot();
  for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  must(host.image->open());
  const std::string chunks = host.image->chunks();
  must(host.image->quarantine());
  EXPECT_EQ(host.boot().error().code, Errc::kNotFound);
  for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
  EXPECT_TRUE(must(host.checkpoint()).quarantined);
  return {host.image->quarantine_path(), chunks};
}

TEST(Image, OneThatNobodyCanReadDoesNotKeepItsPlace) {
  enum class Harm { kBit, kMagic, kShort, kEmpty, kNoChunks, kCutChunks };
  for (const Harm harm :
       {Harm::kBit, Harm::kMagic, Harm::kShort, Harm::kEmpty, Harm::kNoChunks, Harm::kCutChunks}) {
    Host host(14);
    const auto kept = quarantine_one(host);
    Bytes& index = host.disk.contents(kept[0]);
    switch (harm) {
      case Harm::kBit:
        index[100] ^= 1;
        break;
      case Harm::kMagic:
        index[0] ^= 1;
        break;
      case Harm::kShort:
        index.resize(60);
        break;
      case Harm::kEmpty:
        index.clear();
        break;
      case Harm::kNoChunks:
        must(host.disk.remove(kept[1]));
        break;
      case Harm::kCutChunks:
        host.disk.contents(kept[1]).resize(70'000);
        break;
    }
    must(host.image->open());
    const Bytes sound = host.disk.contents(kPath);
    const std::string chunks = host.image->chunks();
    must(host.image->quarantine());
    EXPECT_EQ(host.disk.contents(kept[0]), sound);
    EXPECT_FALSE(host.disk.has(kPath));
    EXPECT_EQ(host.boot().error().code, Errc::kNotFound);
    EXPECT_EQ(host.disk.paths(), (std::vector<std::string>{chunks, kept[0]}));
  }
}

TEST(Image, OneThatCannotBeReadNowKeepsItsPlace) {
  Host host(15);
  const auto kept = quarantine_one(host);
  for (const std::string& broken : kept) {
    must(host.image->open());
    host.disk.fail = [&](FakeDisk::Call call, const std::string& path) -> Status {
      if (call == FakeDisk::Call::kRead && path == broken) return fail(Errc::kIo, "as told");
      return {};
    };
    EXPECT_EQ(host.image->quarantine().error().code, Errc::kIo);
    host.disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    EXPECT_TRUE(host.disk.has(kPath) && host.disk.has(kept[0]) && host.disk.has(kept[1]));
  }
}

/// Which chunks it has is known of any version, so no others are kept because of it.
TEST(Image, OneOfALaterVersionIsKeptWithItsOwnChunksAlone) {
  Host host(16);
  const auto kept = quarantine_one(host);
  Bytes& index = host.disk.contents(kept[0]);
  store_be32(index.data() + 8, shm::kImageVersion + 1);
  index = sealed(index);
  EXPECT_TRUE(host.image->has_quarantined());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) host.blocks->change(host.random);
    host.image->leave();
    EXPECT_TRUE(must(host.checkpoint()).anew);
    EXPECT_EQ(host.disk.paths().size(), 4U) << "two indexes, two files of chunks";
    EXPECT_TRUE(host.disk.has(kept[1]));
  }
  EXPECT_EQ(host.image->quarantine().error().code, Errc::kExists);
  must(host.disk.remove(kept[0]));
  must(host.boot());
  EXPECT_EQ(host.disk.paths().size(), 2U);
}

TEST(Image, OfALiveStoreThatCannotBeReadNowIsProvenLater) {
  Host host(17);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  host.restart();
  const auto paths = host.disk.paths();
  host.disk.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kRead ? Status(fail(Errc::kIo, "too many open files"))
                                         : Status();
  };
  EXPECT_FALSE(host.image->prove());
  EXPECT_FALSE(host.checkpoint());
  EXPECT_TRUE(host.image->unproven() && host.image->in_place());
  EXPECT_EQ(host.disk.paths(), paths) << "nothing is written anew";
  host.disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  host.blocks->change(host.random);
  EXPECT_FALSE(must(host.checkpoint()).anew);
}

TEST(Image, OfALiveStoreThatCannotBeReadAtAllIsReplaced) {
  Host host(18);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  host.restart();
  host.disk.fail = [](FakeDisk::Call call, const std::string& path) -> Status {
    return call == FakeDisk::Call::kRead && path == kPath ? Status(fail(Errc::kIo, "a bad sector"))
                                                          : Status();
  };
  EXPECT_FALSE(host.image->prove());
  EXPECT_FALSE(host.image->prove());
  EXPECT_TRUE(must(host.checkpoint()).anew) << "the third try is the last";
  host.disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  const Contents saved = host.blocks->contents();
  must(host.boot());
  EXPECT_EQ(host.blocks->contents(), saved);
}

TEST(Image, OfAnotherJournalIsLeftAlone) {
  Host host(8);
  (void)host.boot();
  (void)must(host.checkpoint());
  const auto paths = host.disk.paths();
  Image other(host.disk, {kPath, shm::test::kLayout, {3, 4}});
  const auto opened = other.open();
  ASSERT_FALSE(opened);
  EXPECT_TRUE(Image::may_be_good(opened.error().code));
  EXPECT_EQ(host.disk.paths(), paths);
}

TEST(Image, ThatCannotBeReadIsNotCalledDamaged) {
  Host host(9);
  (void)host.boot();
  (void)must(host.checkpoint());
  const std::string chunks = host.image->chunks();
  for (const std::string& broken : {std::string(kPath), chunks}) {
    host.disk.fail = [&](FakeDisk::Call, const std::string& path) -> Status {
      if (path == broken) return fail(Errc::kIo, "as told");
      return {};
    };
    Image image(host.disk, host.image_options());
    const auto opened = image.open();
    ASSERT_FALSE(opened);
    EXPECT_TRUE(Image::may_be_good(opened.error().code)) << opened.error().text;
  }
  host.disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  must(host.disk.remove(chunks));
  Image image(host.disk, host.image_options());
  EXPECT_FALSE(Image::may_be_good(image.open().error().code));
}

TEST(Image, DamageIsFoundWhereverItIs) {
  Host host(6);
  (void)host.boot();
  for (int i = 0; i < 100; ++i) host.blocks->change(host.random);
  (void)must(host.checkpoint());
  const Contents saved = host.blocks->contents();
  const shm::ImageState state = host.image->index()->state;
  for (const std::string& path : host.disk.paths()) {
    const Bytes sound = host.disk.contents(path);
    for (int i = 0; i < 200; ++i) {
      Bytes& damaged = host.disk.contents(path);
      const std::uint64_t at = host.random() % damaged.size();
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ (1U << host.random() % 8));
      if (const auto status = host.boot(); status) {
        // An byte that no version uses.
        EXPECT_NE(path, kPath);
        EXPECT_EQ(host.blocks->contents(), saved);
        host.blocks->check();
      } else {
        EXPECT_EQ(status.error().code, Errc::kCorrupt) << status.error().text;
      }
      host.disk.contents(path) = sound;
    }
    host.disk.contents(path).resize(sound.size() / 2);
    EXPECT_FALSE(host.boot());
    host.disk.contents(path) = sound;
  }
  must(host.boot());
}

/// Each call on the disk fails once, or from then on; the image that was there stays, and when the
/// disk is well again the next checkpoint succeeds.
TEST(Image, NoFailureOfTheDiskLosesTheImageThatWasThere) {
  using Call = FakeDisk::Call;
  for (const Call call :
       {Call::kOpen, Call::kWrite, Call::kSync, Call::kRename, Call::kSyncDirectory, Call::kRemove})
    for (const Errc code : {Errc::kFull, Errc::kIo})
      for (int nth = 1; nth <= 4; ++nth)
        for (const bool for_ever : {false, true}) {
          Host host(static_cast<std::uint64_t>(nth));
          (void)host.boot();
          for (int i = 0; i < 30; ++i) host.blocks->change(host.random);
          (void)must(host.checkpoint());
          std::deque<Contents> durable{host.blocks->contents()};
          for (int i = 0; i < 30; ++i) host.blocks->change(host.random);
          int left = nth;
          host.disk.fail = [&](Call asked, const std::string&) -> Status {
            if (asked != call || --left > 0 || (left < 0 && !for_ever)) return {};
            return fail(code, "as told");
          };
          for (int round = 0; round < 3; ++round) {
            const bool written = host.checkpoint().has_value();
            if (written) durable.clear();
            durable.push_back(host.blocks->contents());
            for (int i = 0; i < 10; ++i) host.blocks->change(host.random);
          }
          host.disk.fail = [](Call, const std::string&) { return Status(); };
          host.disk.power_cut(host.random);
          must(host.boot());
          EXPECT_NE(std::find(durable.begin(), durable.end(), host.blocks->contents()),
                    durable.end());
          host.blocks->check();
          (void)must(host.checkpoint());
        }
}

/// The host crashes at any moment of any checkpoint, with any part of what was not synced on the
/// disk: what comes back is a whole version, no older than the last checkpoint that was finished.
TEST(Image, AHostCrashAtAnyMomentLeavesAWholeVersion) {
  const char* const given = std::getenv("PANDO_SEED");
  const std::uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  const char* const wanted = std::getenv("PANDO_CRASH_STATES");
  const std::uint64_t states = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : 600;
  std::uint64_t tried = 0;
  for (std::uint64_t seed = first; tried < states; ++seed) {
    SCOPED_TRACE(fmt::format("again with PANDO_SEED={}", seed));
    Host host(seed);
    (void)host.boot();
    std::deque<Contents> durable{host.blocks->contents()};  // any of these may come back
    for (int life = 0; life < 20 && !::testing::Test::HasFailure(); ++life, ++tried) {
      // Calls on the disk until the crash: none of those behind it reaches anything.
      std::uint64_t left = host.random() % 60;
      bool crashed = false;
      host.disk.fail = [&](FakeDisk::Call, const std::string&) -> Status {
        crashed = crashed || left-- == 0;
        return crashed ? Status(fail(Errc::kIo, "the host has crashed")) : Status();
      };
      while (!crashed) {
        for (std::uint64_t i = host.random() % 12; i > 0; --i) host.blocks->change(host.random);
        if (host.random() % 8 == 0) host.restart();
        if (crashed) break;
        const Contents now = host.blocks->contents();
        if (host.checkpoint()) durable.clear();
        durable.push_back(now);
      }
      host.disk.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
      host.disk.power_cut(host.random);
      if (auto booted = host.boot(); !booted) {
        // There was no checkpoint yet.
        EXPECT_EQ(booted.error().code, Errc::kNotFound) << booted.error().text;
        EXPECT_TRUE(durable.front().blocks.empty());
      }
      const Contents back = host.blocks->contents();
      EXPECT_NE(std::find(durable.begin(), durable.end(), back), durable.end());
      host.blocks->check();
      durable.assign({back});
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace image_test
}  // namespace pando::manager

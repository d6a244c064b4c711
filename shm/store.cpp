#include "shm/store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/crash_point.h"
#include "shm/borrowing.h"
#include "shm/chunk_pool.h"
#include "shm/epoch.h"
#include "shm/image_state.h"
#include "shm/layout.h"
#include "shm/live_file.h"
#include "shm/transaction.h"

namespace pando::shm {

namespace {

/// A store below this could not hold a version, its successor and the reserve.
constexpr std::uint64_t kSmallestLimit = 8 * kChunkBytes;
/// Waiting chunks are checked again after this many versions even if no step needs a chunk.
constexpr std::uint64_t kReclaimInterval = 64;

Result<std::uint32_t> quota_of(const StoreOptions& options) {
  if (options.size_limit < kSmallestLimit)
    return fail(Errc::kInvalid, "a store's size limit must be at least {} KiB",
                kSmallestLimit / 1024);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.size_limit / kChunkBytes, kMaxChunks));
}

std::uint32_t spanned_chunks(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>(bytes / kChunkBytes + 2);
}

/// The count of a chunk after a transaction; kCorrupt when the transaction released more than the
/// chunk's live bytes.
Result<std::uint32_t> count_after(const LedgerEntry& entry, std::uint32_t before) {
  const std::int64_t live = std::int64_t{live_bytes(before)} + entry.delta;
  if (live < 0 || live > static_cast<std::int64_t>(kChunkBytes))
    return fail(Errc::kCorrupt, "chunk {} would have {} live bytes: a block was released twice",
                entry.chunk, live);
  const std::uint32_t run = entry.run ? kRunFlag : before & kRunFlag;
  return live == 0 ? 0 : static_cast<std::uint32_t>(live) | run;
}

/// The number of chunks up to the last one with content. Empty chunks between the image's chunks
/// are borrowed, too, so that one mapping suffices.
std::uint32_t borrowed_part(const ImageState& image) noexcept {
  auto end = static_cast<std::uint32_t>(image.chunks.size());
  while (end > 0 && image.chunks[end - 1].count == 0) --end;
  return end;
}

}  // namespace

struct Store::Impl {
  Impl(LiveFile&& live, std::uint32_t quota) : file(std::move(live)), pool(file, quota) {
    file.header().size_limit.store(quota * kChunkBytes, std::memory_order_relaxed);
  }

  [[nodiscard]] Publication& words() noexcept { return file.header().publication; }
  [[nodiscard]] const RootBlock* root_block() const noexcept {
    const Ref<RootBlock> ref{file.header().publication.root.load(std::memory_order_relaxed)};
    return root_block_at(file.window(), ref);
  }
  /// Bytes after the last version, in the open chunk.
  [[nodiscard]] std::uint32_t open_rest() const noexcept {
    return open.span.chunk == kNoChunk ? 0
                                       : static_cast<std::uint32_t>(kChunkBytes) - open.span.from;
  }
  std::unique_ptr<Transaction::Impl> begin(bool in_open_chunk);
  Result<std::uint64_t> publish(Transaction::Impl& transaction, Ref<> root, std::uint64_t journal);
  Result<Ref<RootBlock>> build_root(Transaction::Impl& transaction, Ref<> root,
                                    std::uint64_t journal);
  Result<Ref<>> allocate_root(Transaction::Impl& transaction, std::uint32_t& bytes);
  Status list_changes(Transaction::Impl& transaction, RootBlock& block);
  void note_open_chunk(Transaction::Impl& transaction, RootBlock& block);
  void finish(Transaction::Impl& transaction, const RootBlock& block);
  Status check_root() const;
  Status complete_publication();
  Status fill(const ImageState& image, ImageSource& source);
  Status fill_chunks(const ImageState& image, ImageSource& source);
  Status fill_side(const ImageState& image);
  Status bring_up(Store& store, std::uint64_t version, ImageSource& source);
  Status check_counts() const;

  LiveFile file;
  ChunkPool pool;
  OpenChunk open;
  std::atomic<std::uint64_t> live_total{0};
  std::mutex side_mutex;
};

std::unique_ptr<Transaction::Impl> Store::Impl::begin(bool in_open_chunk) {
  auto transaction = std::make_unique<Transaction::Impl>(file, pool);
  if (in_open_chunk && !open.lent) transaction->open_at(open);
  return transaction;
}

/// All work before publish_words() is private: a crash there leaves the old version. After
/// publish_words() the new version is whole for readers, and attaching completes the remaining
/// steps.
Result<std::uint64_t> Store::Impl::publish(Transaction::Impl& transaction, Ref<> root,
                                           std::uint64_t journal) {
  if (transaction.damaged)
    return fail(Errc::kCorrupt, "the transaction released something that is no block");
  auto ref = build_root(transaction, root, journal);
  if (!ref) return pass(ref);
  const RootBlock& block = *root_block_at(file.window(), *ref);
  crash_point("store-publish-built");
  publish_words(words(), ref->units, block.version);
  finish(transaction, block);
  return block.version;
}

/// Space for the root block, which lists three kinds of chunks: those that this transaction
/// touched, those of the old root block, and its own.
Result<Ref<>> Store::Impl::allocate_root(Transaction::Impl& transaction, std::uint32_t& bytes) {
  const RootBlock* old = root_block();
  std::uint64_t changes = transaction.ledger.entries().size() + 1;
  if (old != nullptr) changes += spanned_chunks(old->bytes);
  std::size_t size = sizeof(RootBlock) + changes * sizeof(CountChange);
  if (size > kChunkBytes) size += spanned_chunks(size) * sizeof(CountChange);
  bytes = static_cast<std::uint32_t>(block_bytes(size));
  // Without a root block not even deletes could be published, so a root block may always use the
  // reserve.
  const Reserve reserve = std::exchange(transaction.reserve, Reserve::kAll);
  auto ref = transaction.allocate(bytes);
  transaction.reserve = reserve;
  return ref;
}

Result<Ref<RootBlock>> Store::Impl::build_root(Transaction::Impl& transaction, Ref<> root,
                                               std::uint64_t journal) {
  std::uint32_t bytes = 0;
  auto ref = allocate_root(transaction, bytes);
  if (!ref) return pass(ref);
  const auto* old = root_block();
  if (old != nullptr)
    transaction.release(Ref<>{words().root.load(std::memory_order_relaxed)}, old->bytes);
  transaction.count_current();
  RootBlock& block = *reinterpret_cast<RootBlock*>(file.base() + ref->offset());
  block = RootBlock{.version = words().epoch.load(std::memory_order_relaxed) + 1,
                    .journal_position = journal,
                    .root = root.units,
                    .bytes = bytes,
                    .open_chunk = kNoChunk,
                    .open_from = 0,
                    .changes = 0,
                    .checksum = 0};
  if (auto listed = list_changes(transaction, block); !listed) {
    transaction.damaged = true;
    return pass(listed);
  }
  note_open_chunk(transaction, block);
  block.checksum = root_checksum(block);
  return ref->as<RootBlock>();
}

Status Store::Impl::list_changes(Transaction::Impl& transaction, RootBlock& block) {
  auto* change = reinterpret_cast<CountChange*>(&block + 1);
  for (const LedgerEntry& entry : transaction.ledger.entries()) {
    const std::uint32_t before = file.counts()[entry.chunk];
    auto after = count_after(entry, before);
    if (!after) return pass(after);
    if (*after == before) continue;
    *change++ = CountChange{entry.chunk, *after};
    ++block.changes;
  }
  PANDO_ASSERT(sizeof block + block.changes * sizeof *change <= block.bytes);
  return {};
}

/// Records where the next version continues to allocate, also after a crash. That place is after
/// this root block, or the open chunk's position if another transaction is (or may be) at work
/// there.
void Store::Impl::note_open_chunk(Transaction::Impl& transaction, RootBlock& block) {
  const bool moves =
      transaction.store_open != nullptr || (!open.lent && open.span.chunk == kNoChunk);
  const Span next = moves ? transaction.current() : open.span;
  block.open_chunk = next.chunk;
  block.open_from = next.from;
}

void Store::Impl::finish(Transaction::Impl& transaction, const RootBlock& block) {
  const Span last = transaction.current();
  std::int64_t grown = 0;
  for (const LedgerEntry& entry : transaction.ledger.entries()) grown += entry.delta;
  live_total.fetch_add(static_cast<std::uint64_t>(grown), std::memory_order_relaxed);
  pool.commit_counts(block, transaction.ledger.entries(), block.open_chunk);
  crash_point("store-publish-settled");
  if (last.chunk != kNoChunk && last.chunk != block.open_chunk) transaction.tails.push_back(last);
  pool.keep_tails(transaction.tails);
  if (transaction.store_open != nullptr) open.lent = false;
  open.span = Span{block.open_chunk, block.open_from};
  transaction.forget();
  if (block.version % kReclaimInterval == 0) pool.reclaim();
}

Status Store::Impl::check_root() const {
  const RootBlock* block = root_block();
  if (block == nullptr || block->version == 0 || block->checksum != root_checksum(*block))
    return fail(Errc::kCorrupt, "the store's root block is damaged");
  const std::uint64_t epoch = file.header().publication.epoch.load(std::memory_order_relaxed);
  if (epoch != block->version && epoch + 1 != block->version)
    return fail(Errc::kCorrupt, "the store's root is version {}, its epoch {}", block->version,
                epoch);
  const std::uint32_t chunks = file.committed_chunks();
  for (std::uint32_t i = 0; i < block->changes; ++i)
    if (changes_of(*block)[i].chunk >= chunks)
      return fail(Errc::kCorrupt, "the root block counts a chunk beyond the file");
  if (block->open_chunk != kNoChunk &&
      (block->open_chunk >= chunks || block->open_from > kChunkBytes ||
       block->open_from % kUnit != 0))
    return fail(Errc::kCorrupt, "the root block's open chunk lies beyond the file");
  return {};
}

/// Completes the publication that the last writer died in, whatever the step of publish(): the root
/// stands, so the version is whole. Both repairs are idempotent; dying between them changes
/// nothing.
///
/// This function publishes no version. Chunks without live blocks were freed by this version or an
/// earlier one. They are reusable when every reader shows this version or newer, or died. A reader
/// that pins now finds this root, which does not refer to them.
Status Store::Impl::complete_publication() {
  if (auto sound = check_root(); !sound) return sound;
  const RootBlock& block = *root_block();
  crash_point("store-attach-epoch");
  words().epoch.store(block.version, std::memory_order_seq_cst);
  crash_point("store-attach-counts");
  apply_counts(block, file.counts());
  crash_point("store-attach-counted");
  if (auto sound = check_counts(); !sound) return sound;
  // The open chunk may be an image's: versions then continue in another chunk.
  if (file.borrowed_chunks() == 0) open.span = Span{block.open_chunk, block.open_from};
  pool.distrust_readers();
  pool.adopt(open.span, block.version);
  std::uint64_t total = 0;
  for (std::uint32_t chunk = 0; chunk < file.committed_chunks(); ++chunk)
    total += live_bytes(file.counts()[chunk]);
  live_total.store(total, std::memory_order_relaxed);
  return {};
}

/// Gives the empty file the image's content, except for borrowed chunks. The words `root` and
/// `epoch` come last, though no other process sees the file yet.
Status Store::Impl::fill(const ImageState& image, ImageSource& source) {
  for (std::uint32_t chunk = 0; chunk < image.chunks.size(); ++chunk)
    if (image.chunks[chunk].used > kChunkBytes)
      return fail(Errc::kCorrupt, "chunk {} is too long", chunk);
  const bool borrows = file.borrowed_chunks() != 0;
  if (!borrows)
    if (auto filled = fill_chunks(image, source); !filled) return filled;
  for (std::uint32_t chunk = 0; chunk < image.chunks.size(); ++chunk)
    file.counts()[chunk] = image.chunks[chunk].count;
  if (auto filled = fill_side(image); !filled) return filled;
  file.header().lineage = image.lineage;  // versions continue the image's
  words().root.store(image.root_block, std::memory_order_relaxed);
  words().epoch.store(image.version, std::memory_order_relaxed);
  // Versions continue in the open chunk, which may have no live block.
  const RootBlock* block = root_block();
  if (borrows || block == nullptr || block->open_chunk >= image.chunks.size()) return {};
  return file.back(block->open_chunk, 1);
}

Status Store::Impl::fill_chunks(const ImageState& image, ImageSource& source) {
  const auto room = std::make_unique<std::array<std::uint8_t, kChunkBytes>>();
  for (std::uint32_t chunk = 0; chunk < image.chunks.size(); ++chunk) {
    if (image.chunks[chunk].count == 0) continue;
    auto copied = copy_chunk(file, source, chunk, image.chunks[chunk], *room);
    if (!copied) return copied;
  }
  return {};
}

Status Store::Impl::fill_side(const ImageState& image) {
  for (const ImageSide& side : image.side) {
    if (side.granule >= kSideGranules || side.bytes.size() != kSideGranuleBytes)
      return fail(Errc::kCorrupt, "the image's side table is damaged");
    if (auto backed = file.back_side(side.granule); !backed) return backed;
    std::memcpy(file.base() + kSideOffset + side.granule * kSideGranuleBytes, side.bytes.data(),
                side.bytes.size());
  }
  return {};
}

/// The file has no name yet, so no reader can open it. Until it gets its name, freed chunks can be
/// reused immediately, whatever readers of another store hold.
Status Store::Impl::bring_up(Store& store, std::uint64_t version, ImageSource& source) {
  pool.spare(version);
  // Chunks that the image has empty become free: else the store would count as fuller than it is.
  pool.reclaim();
  Status done = source.complete(store);
  if (!pool.has_spared()) source.used_again();
  pool.distrust_readers();
  return done;
}

Status Store::Impl::check_counts() const {
  for (std::uint32_t chunk = 0; chunk < file.committed_chunks(); ++chunk) {
    const std::uint32_t live = live_bytes(file.counts()[chunk]);
    if (live > kChunkBytes || live % kUnit != 0)
      return fail(Errc::kCorrupt, "chunk {} has a count of {}", chunk, live);
  }
  return {};
}

Store::Store(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::create(const StoreOptions& options, const Complete& complete) {
  auto quota = quota_of(options);
  if (!quota) return pass(quota);
  auto file = LiveFile::create(options);
  if (!file) return pass(file);
  Store store(std::make_unique<Impl>(std::move(*file), *quota));
  store.look_at_machine();
  auto first = store.publish(store.begin(), Ref<>{}, 0);
  if (!first) return pass(first);
  Status done = complete ? complete(store) : Status();
  if (done) done = store.impl_->file.install(options);
  if (!done) {
    store.impl_->file.discard(options);
    return pass(done);
  }
  return store;
}

Result<Store> Store::attach(const StoreOptions& options) {
  auto quota = quota_of(options);
  if (!quota) return pass(quota);
  auto file = LiveFile::attach(options);
  if (!file) return pass(file);
  Store store(std::make_unique<Impl>(std::move(*file), *quota));
  if (auto completed = store.impl_->complete_publication(); !completed) return pass(completed);
  return store;
}

Result<Store> Store::restore(const StoreOptions& options, const ImageState& image,
                             ImageSource& source) {
  auto quota = quota_of(options);
  if (!quota) return pass(quota);
  if (image.chunks.size() > kMaxChunks) return fail(Errc::kCorrupt, "the image is too long");
  const std::uint32_t borrowed = borrowed_part(image);
  auto chunks = source.file(borrowed);
  auto file = LiveFile::create(options);
  if (!file) return pass(file);
  // The reach is set before the pool is made: the pool must have room for all the image's chunks,
  // whatever the limit is now.
  Status done = file->reach(static_cast<std::uint32_t>(image.chunks.size()));
  const bool borrows = done && chunks && file->borrow(borrowed, *chunks).has_value();
  Store store(std::make_unique<Impl>(std::move(*file), *quota));
  if (done) done = store.impl_->fill(image, source);
  crash_point("restore-filled");
  if (done) done = store.impl_->complete_publication();
  // A start continues the journal after the index's position: the root must be of the same
  // version.
  const VersionInfo found = done ? store.current() : VersionInfo{};
  if (done && (found.number != image.version || found.journal_position != image.journal_position))
    done = fail(Errc::kCorrupt, "the image's index is of version {}, its root block of version {}",
                image.version, found.number);
  if (done) done = store.impl_->bring_up(store, image.version, source);
  if (done) done = store.impl_->file.install(options);
  if (!done) {
    store.impl_->file.discard(options);
    return pass(done);
  }
  if (borrows)
    source.lent(std::make_unique<Borrowing>(
        store.impl_->file, store.impl_->pool,
        std::vector(image.chunks.begin(), image.chunks.begin() + borrowed)));
  return store;
}

Transaction Store::begin() { return Transaction(impl_->begin(true)); }
Transaction Store::begin_private() { return Transaction(impl_->begin(false)); }

Result<std::uint64_t> Store::publish(Transaction&& transaction, Ref<> root,
                                     std::uint64_t journal_position) {
  return impl_->publish(*transaction.impl_, root, journal_position);
}

VersionInfo Store::current() const noexcept {
  const RootBlock* block = impl_->root_block();
  return VersionInfo{block->version, Ref<>{block->root}, block->journal_position};
}

std::uint64_t Store::lineage() const noexcept { return impl_->file.header().lineage; }

Window Store::window() const noexcept { return impl_->file.window(); }

ImageCapture Store::capture() {
  const RootBlock& block = *impl_->root_block();
  ImageCapture capture;
  capture.state.version = block.version;
  capture.state.journal_position = block.journal_position;
  capture.state.lineage = lineage();
  capture.state.root_block = impl_->words().root.load(std::memory_order_relaxed);
  impl_->pool.capture(capture);
  return capture;
}

std::uint64_t Store::chunks_held_by(std::uint64_t version) const {
  return impl_->pool.held_by(version);
}

std::size_t Store::reclaim() noexcept { return impl_->pool.reclaim(); }
void Store::look_at_machine() { impl_->pool.look_at_machine(); }
bool Store::may_reclaim() const { return impl_->pool.has_unsorted(); }

std::size_t Store::choose_victims(unsigned threshold_percent, std::size_t max_chunks) noexcept {
  return impl_->pool.choose_victims(threshold_percent, max_chunks, impl_->open_rest());
}

bool Store::narrow_victims() noexcept { return impl_->pool.narrow_victims(impl_->open_rest()); }
bool Store::is_borrowing() const { return impl_->pool.is_borrowing(); }

std::size_t Store::collapse(std::size_t max_regions) noexcept {
  std::size_t done = 0;
  for (const std::uint32_t region : impl_->pool.pick_full_regions(max_regions))
    if (impl_->pool.collapse(region)) ++done;
  return done;
}

void Store::forget_victims() noexcept { impl_->pool.forget_victims(); }
void Store::set_slots(SlotTable* slots) noexcept { impl_->pool.set_slots(slots); }

bool Store::low_space() const { return impl_->pool.space().low_space(); }
bool Store::low_space_without_pins() const { return impl_->pool.space().low_space_without_pins(); }
bool Store::leaves_reserve(Reserve use) const { return impl_->pool.space().leaves(0, use); }

StoreStats Store::stats() const noexcept {
  StoreStats stats;
  const Header& header = impl_->file.header();
  stats.memory_bytes = impl_->file.memory_bytes();
  stats.live_bytes = impl_->live_total.load(std::memory_order_relaxed);
  stats.size_limit = header.size_limit.load(std::memory_order_relaxed);
  impl_->pool.fill(stats);
  return stats;
}

Status Store::check() const {
  if (auto sound = impl_->check_root(); !sound) return sound;
  const std::uint64_t epoch = impl_->words().epoch.load(std::memory_order_relaxed);
  if (epoch != impl_->root_block()->version)
    return fail(Errc::kCorrupt, "the epoch is not the root's version");
  if (auto sound = impl_->check_counts(); !sound) return sound;
  std::uint64_t total = 0;
  for (std::uint32_t chunk = 0; chunk < impl_->file.committed_chunks(); ++chunk)
    total += live_bytes(impl_->file.counts()[chunk]);
  if (total != impl_->live_total.load(std::memory_order_relaxed))
    return fail(Errc::kCorrupt, "{} live bytes counted, {} expected", total,
                impl_->live_total.load(std::memory_order_relaxed));
  return impl_->pool.check();
}

Store::SideEntry* Store::side(std::uint32_t index) noexcept {
  if (index >= kSideEntries) return nullptr;
  const std::uint32_t granule = index / kSidePerGranule;
  const auto& bits = impl_->file.header().side_backed[granule / 64];
  if ((bits.load(std::memory_order_acquire) >> (granule % 64) & 1) == 0) {
    const std::scoped_lock lock(impl_->side_mutex);
    if (!impl_->file.back_side(granule)) return nullptr;
  }
  return reinterpret_cast<SideEntry*>(impl_->file.base() + kSideOffset) + index;
}

}  // namespace pando::shm

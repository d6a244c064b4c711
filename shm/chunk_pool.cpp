#include "shm/chunk_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "shm/image_state.h"
#include "shm/reserve.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; Debian 12's C library does not name it yet
#endif

namespace pando::shm {

namespace {

/// The file grows in steps of 1/32 of the chunks in use, at most 64 MiB. So system calls are few,
/// and the store of a small zone stays small.
constexpr std::uint32_t kGrowthShare = 32;
constexpr std::uint32_t kGrowthMax = (64U << 20) / kChunkBytes;
/// Number of free chunks that keep their memory beside cushion and growth step: a steady flow of
/// updates reuses them without a system call.
constexpr std::uint32_t kSpares = 8;
/// Low space begins when less than this part of the quota is free.
constexpr std::uint32_t kTightPart = 16;
constexpr std::uint32_t kCrowdedPart = 8;
constexpr std::uint32_t kLeastBeyond = 16;
constexpr std::size_t kTailsMax = 1024;
/// Number of rests that one allocation tries.
constexpr std::size_t kTailTries = 16;

/// The reserve for deletes and compaction in a store that started above its limit, or without room
/// for deletes. The space that one delete frees is no room for the next one there. So this reserve
/// must suffice at any time.
std::uint32_t beyond(std::uint32_t quota) noexcept {
  return std::max(static_cast<std::uint32_t>(reserve_chunks(quota)), kLeastBeyond);
}

/// Bound of the chunk numbers that a pool may use. Room for the whole quota must exist behind
/// borrowed chunks. Room for the reserve must exist behind the chunks of a store that is too full.
std::uint32_t limit_for(const LiveFile& file, std::uint32_t quota) noexcept {
  const std::uint32_t there = file.committed_chunks();
  if (file.borrowed_chunks() == 0)
    return std::max(quota, std::min(there + beyond(quota), kMaxChunks));
  return std::min(there + quota, kMaxChunks);
}

}  // namespace

ChunkPool::ChunkPool(LiveFile& file, std::uint32_t quota)
    : file_(file),
      quota_(quota),
      ceiling_(quota),
      borrowed_(file.borrowed_chunks()),
      limit_(limit_for(file, quota)),
      reserve_(static_cast<std::uint32_t>(reserve_chunks(quota))),
      free_(limit_),
      backed_(limit_),
      collapsed_(limit_ / kChunksPerRegion + 1),
      written_(limit_),
      victims_(std::make_unique<std::atomic<std::uint64_t>[]>((limit_ + 63) / 64)) {
  free_.set_all();
}

void ChunkPool::adopt(Span open, std::uint64_t version) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t end = file_.committed_chunks();
  std::uint32_t taken = 0;
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    const bool used = live(chunk) != 0;
    if (used || chunk == open.chunk) ++taken;
    if (borrowed_ != 0 && !used) {
      if (chunk >= borrowed_) continue;
      become(info(chunk), State::kBlocked);
      free_.reset(chunk);
      continue;
    }
    lend(chunk);
    info(chunk).born = 0;  // not known: assume that the oldest version refers to the chunk
    info(chunk).used = chunk == open.chunk ? open.from : static_cast<std::uint32_t>(kChunkBytes);
    written_.set(chunk);
    if (used || chunk == open.chunk) backed_.set(chunk);
    if (chunk == open.chunk) continue;
    become(info(chunk), State::kUsed);
    if (!used) wait(chunk, version);
  }
  if (taken + compaction_chunks(quota_) > quota_) beyond_ = beyond(quota_);
  // Where no more chunk numbers exist, deletes must still leave compaction its part.
  ceiling_ = std::max(quota_, std::min(in_use_ + beyond_, limit_));
}

void ChunkPool::settle_borrowed() {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t end = std::exchange(borrowed_, 0);
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    if (chunks_[chunk].state != State::kBlocked) continue;
    become(chunks_[chunk], State::kFree);
    free_.set(chunk);
    if (backed_.test(chunk)) ++backed_free_;  // the chunk was copied, so it has memory
  }
}

std::uint64_t ChunkPool::version() const noexcept {
  // Only this process writes the epoch. A pool thread that takes a chunk locks the mutex after the
  // store of the epoch.
  return file_.header().publication.epoch.load(std::memory_order_relaxed);
}

std::uint32_t ChunkPool::live(std::uint32_t chunk) const noexcept {
  return live_bytes(file_.counts()[chunk]);
}

/// Number of free chunks that keep memory of their own, so that deletes work when the machine has
/// none left.
std::uint32_t ChunkPool::cushion() const noexcept { return std::min(reserve_, in_use_ / 32); }

std::uint32_t ChunkPool::growth_step() const noexcept {
  return std::clamp(in_use_ / kGrowthShare, 1U, kGrowthMax);
}

ChunkPool::Chunk& ChunkPool::info(std::uint32_t chunk) {
  if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
  return chunks_[chunk];
}

Result<Span> ChunkPool::take(std::uint32_t bytes, Reserve use) {
  const std::scoped_lock lock(mutex_);
  Span span;
  if (take_tail(bytes, span)) return span;
  auto chunk = take_chunks(1, use);
  if (!chunk) return pass(chunk);
  return Span{*chunk, 0};
}

Result<std::uint32_t> ChunkPool::take_run(std::uint32_t count, Reserve use) {
  const std::scoped_lock lock(mutex_);
  return take_chunks(count, use);
}

bool ChunkPool::take_tail(std::uint32_t bytes, Span& span) {
  const std::size_t tries = std::min(tails_.size(), kTailTries);
  for (std::size_t i = tails_.size(); i > tails_.size() - tries; --i) {
    const Span tail = tails_[i - 1];
    if (kChunkBytes - tail.from < bytes) continue;
    tails_.erase(tails_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    chunks_[tail.chunk].has_tail = false;
    become(chunks_[tail.chunk], State::kLent);
    span = tail;
    return true;
  }
  return false;
}

void ChunkPool::drop_tail(std::uint32_t chunk) {
  if (!chunks_[chunk].has_tail) return;
  chunks_[chunk].has_tail = false;
  std::erase_if(tails_, [chunk](const Span& tail) { return tail.chunk == chunk; });
}

Result<std::uint32_t> ChunkPool::take_chunks(std::uint32_t count, Reserve use) {
  // Before the file grows, check once per version whether readers have moved on.
  if (backed_free_ < count && reclaimed_at_ != version()) reclaim_locked();
  auto first = try_take(count, use);
  if (first || first.error().code != Errc::kFull || waiting_count_ == 0) return first;
  if (reclaim_locked() != 0) first = try_take(count, use);
  if (first || first.error().code != Errc::kFull || give_up_spared() == 0) return first;
  return try_take(count, use);
}

/// Whether a step of kind `use` can take `more` chunks and leave its part of the reserve.
bool ChunkPool::leaves(std::uint32_t more, Reserve use) const noexcept {
  const std::uint64_t taken = std::uint64_t{in_use_} + more;
  const std::uint64_t least = compaction_chunks(quota_);
  switch (use) {
    case Reserve::kKept:
      return taken + reserve_ <= quota_;
    case Reserve::kHalf:
      return taken + (ceiling_ > quota_ ? std::max<std::uint64_t>(beyond_ / 2, least) : least) <=
             ceiling_;
    case Reserve::kAllButLast:
      return taken + kLastChunks <= ceiling_;
    case Reserve::kAll:
      break;
  }
  return taken <= ceiling_;
}

Result<std::uint32_t> ChunkPool::try_take(std::uint32_t count, Reserve use) {
  if (!leaves(count, use)) return fail(Errc::kFull, "the store has reached its size limit");
  const bool keeps = use == Reserve::kKept;
  const std::uint32_t wanted = (count == 1 ? 1 : 0) + (keeps ? cushion() : 0);
  if (auto grown = grow(wanted); !grown && keeps) return pass(grown);
  std::uint32_t first = count == 1 ? free_.find_both(backed_, 0) : free_.find_run(count);
  if (first == Bitmap::kNone && count == 1) first = free_.find_set(0);
  if (first == Bitmap::kNone)
    return fail(Errc::kFull, "the store has no {} chunks in a row", count);
  if (auto backed = back_range(first, count); !backed) return pass(backed);
  for (std::uint32_t chunk = first; chunk < first + count; ++chunk) lend(chunk);
  return first;
}

/// Gives memory to free chunks, lowest first, until `wanted` free chunks have memory. The steps
/// keep to the limit.
Status ChunkPool::grow(std::uint32_t wanted) {
  for (std::uint32_t from = 0; backed_free_ < wanted;) {
    const std::uint32_t first = free_.find_only(backed_, from);
    if (first == Bitmap::kNone) return {};  // all have memory; the caller checks what is left
    const std::uint32_t there = in_use_ + backed_free_;
    const std::uint32_t room = ceiling_ - std::min(ceiling_, there);
    const std::uint32_t aim = std::max(std::min(growth_step(), room), wanted - backed_free_);
    std::uint32_t count = 1;
    while (count < aim && first + count < limit_ && free_.test(first + count) &&
           !backed_.test(first + count))
      ++count;
    auto backed = back_range(first, count);
    if (!backed && count > 1) backed = back_range(first, 1);
    if (!backed) return backed;
    from = first;
  }
  return {};
}

/// Gives memory to the free chunks in the range that have none.
Status ChunkPool::back_range(std::uint32_t first, std::uint32_t count) {
  const std::uint32_t end = first + count;
  for (std::uint32_t at = first; at < end;) {
    if (backed_.test(at)) {
      ++at;
      continue;
    }
    std::uint32_t stop = at + 1;
    while (stop < end && !backed_.test(stop)) ++stop;
    if (auto backed = file_.back(at, stop - at); !backed) return backed;
    backed_free_ += stop - at;
    for (; at < stop; ++at) backed_.set(at);
  }
  return {};
}

void ChunkPool::lend(std::uint32_t chunk) {
  Chunk& lent = info(chunk);
  lent = Chunk{};
  lent.born = version() + 1;
  become(lent, State::kLent);
  free_.reset(chunk);
  ++in_use_;
  peak_in_use_ = std::max(peak_in_use_, in_use_);
  if (backed_.test(chunk)) --backed_free_;
}

void ChunkPool::give_back(Span span) {
  const std::scoped_lock lock(mutex_);
  Chunk& lent = info(span.chunk);
  if (span.from == 0) return free_chunk(span.chunk);  // no version ever referred to it
  become(lent, State::kUsed);
  if (live(span.chunk) == 0) return wait(span.chunk, version());
  if (tails_.size() >= kTailsMax) return;
  lent.has_tail = true;
  tails_.push_back(span);
}

void apply_counts(const RootBlock& published, std::uint32_t* counts) noexcept {
  const CountChange* changes = changes_of(published);
  for (std::uint32_t i = 0; i < published.changes; ++i) {
    counts[changes[i].chunk] = changes[i].count;
    crash_point("store-publish-count");
  }
}

void ChunkPool::settle(const RootBlock& published, const std::vector<LedgerEntry>& entries,
                       std::uint32_t open) {
  const std::scoped_lock lock(mutex_);
  apply_counts(published, file_.counts());
  for (const LedgerEntry& entry : entries) {
    Chunk& chunk = info(entry.chunk);
    if (entry.taken()) {
      written_.set(entry.chunk);
      chunk.used = kChunkBytes;  // keep_tails() knows better
    }
    if (entry.taken() && entry.chunk != open) become(chunk, State::kUsed);
    if (chunk.state == State::kUsed && live(entry.chunk) == 0) wait(entry.chunk, published.version);
  }
  if (open != kNoChunk) info(open).used = published.open_from;
}

void ChunkPool::keep_tails(const std::vector<Span>& tails) {
  const std::scoped_lock lock(mutex_);
  for (const Span& tail : tails) {
    Chunk& chunk = info(tail.chunk);
    if (tails_.size() >= kTailsMax || chunk.state != State::kUsed || chunk.has_tail ||
        kChunkBytes - tail.from < kTailMin)
      continue;
    chunk.has_tail = true;
    chunk.used = tail.from;
    tails_.push_back(tail);
  }
}

void ChunkPool::capture(ImageCapture& capture) {
  const std::scoped_lock lock(mutex_);
  const auto end = static_cast<std::uint32_t>(chunks_.size());
  capture.state.chunks.resize(end);
  capture.written.resize(end);
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    const std::uint32_t count = file_.counts()[chunk];
    if (count != 0) capture.state.chunks[chunk] = {count, chunks_[chunk].used, 0};
    capture.written[chunk] = written_.test(chunk);
  }
  written_ = Bitmap(limit_);
}

std::size_t ChunkPool::held_by(std::uint64_t version) const {
  const std::scoped_lock lock(mutex_);
  const auto bucket = held_.find(version);
  return bucket == held_.end() ? 0 : bucket->second.size();
}

void ChunkPool::become(Chunk& chunk, State state) noexcept {
  if (chunk.state == State::kLent) --lent_;
  if (state == State::kLent) ++lent_;
  chunk.state = state;
}

void ChunkPool::wait(std::uint32_t chunk, std::uint64_t freed_at) {
  drop_tail(chunk);
  become(chunks_[chunk], State::kWaiting);
  chunks_[chunk].freed_at = freed_at;
  waiting_.push_back(chunk);
  ++waiting_count_;
}

void ChunkPool::free_chunk(std::uint32_t chunk) {
  --in_use_;
  ceiling_ = std::max(quota_, std::min(ceiling_, in_use_ + beyond_));
  set_victim(chunk, false);
  if (chunk < borrowed_) return become(chunks_[chunk], State::kBlocked);
  become(chunks_[chunk], State::kFree);
  free_.set(chunk);
  if (backed_.test(chunk))
    ++backed_free_;
  else
    unsure_.push_back(chunk);
}

std::size_t ChunkPool::reclaim() {
  const std::scoped_lock lock(mutex_);
  return reclaim_locked();
}

bool ChunkPool::has_unsorted() const {
  const std::scoped_lock lock(mutex_);
  return !waiting_.empty();
}

/// The slots are checked after the epoch was stored. The thread that stored the epoch put the
/// waiting chunks here later, under the mutex. See shm/epoch.h for why that order is enough.
std::size_t ChunkPool::reclaim_locked() {
  std::size_t freed = reclaim_waiting();
  if (waiting_count_ != 0 && is_fuller_than(kCrowdedPart)) freed += give_up_spared();
  return freed;
}

std::size_t ChunkPool::give_up_spared() {
  if (spared_ == 0) return 0;
  spared_ = 0;
  has_spared_ = false;
  return reclaim_waiting();
}

std::size_t ChunkPool::reclaim_waiting() {
  reclaimed_at_ = version();
  if (waiting_count_ == 0 || !collect_holds()) return 0;
  std::size_t freed = release_dropped_holds();
  while (!waiting_.empty() && chunks_[waiting_.front()].freed_at <= holds_.oldest_batch) {
    freed += free_or_hold(waiting_.front());
    waiting_.pop_front();
  }
  crash_point("store-reclaimed");
  punch_unsure();
  trim();
  return freed;
}

/// False when no chunk may be freed because the readers are not known.
bool ChunkPool::collect_holds() {
  holds_.clear();
  if (slots_ != nullptr) slots_->collect(version(), holds_);
  if (spared_ != 0) holds_.exact.push_back(spared_);  // alone: there are no slots then
  return trust_;
}

/// Frees the chunks whose exact version is no longer held, or moves each to its next held version.
std::size_t ChunkPool::release_dropped_holds() {
  std::size_t freed = 0;
  for (auto bucket = held_.begin(); bucket != held_.end();) {
    if (std::binary_search(holds_.exact.begin(), holds_.exact.end(), bucket->first)) {
      ++bucket;
      continue;
    }
    const std::vector<std::uint32_t> chunks = std::move(bucket->second);
    bucket = held_.erase(bucket);
    for (const std::uint32_t chunk : chunks) freed += free_or_hold(chunk);
  }
  return freed;
}

/// A version w refers to the chunk when born <= w < freed_at. The smallest held version not below
/// `born` decides; the chunk is checked again when that version is dropped.
std::size_t ChunkPool::free_or_hold(std::uint32_t chunk) {
  const Chunk& waiting = chunks_[chunk];
  const auto holder = std::lower_bound(holds_.exact.begin(), holds_.exact.end(), waiting.born);
  if (holder != holds_.exact.end() && *holder < waiting.freed_at) {
    held_[*holder].push_back(chunk);
    return 0;
  }
  --waiting_count_;
  free_chunk(chunk);
  return 1;
}

/// After attaching, the writer does not know which empty chunks have memory. So all of them lose
/// it.
void ChunkPool::punch_unsure() {
  std::sort(unsure_.begin(), unsure_.end());
  for (std::size_t i = 0; i < unsure_.size();) {
    std::size_t end = i + 1;
    while (end < unsure_.size() && unsure_[end] == unsure_[end - 1] + 1) ++end;
    punch(unsure_[i], static_cast<std::uint32_t>(end - i));
    i = end;
  }
  unsure_.clear();
}

/// Gives memory of free chunks beyond the spares back to the machine, highest first.
void ChunkPool::trim() {
  const std::uint32_t keep = cushion() + 2 * growth_step() + kSpares;
  std::uint32_t end = limit_;
  while (backed_free_ > keep) {
    const std::uint32_t last = free_.find_last_both(backed_, end);
    if (last == Bitmap::kNone) return;
    std::uint32_t first = last;
    while (first > 0 && backed_free_ - (last - first + 1) > keep && free_.test(first - 1) &&
           backed_.test(first - 1))
      --first;
    if (!punch(first, last - first + 1)) return;
    for (std::uint32_t chunk = first; chunk <= last; ++chunk) backed_.reset(chunk);
    backed_free_ -= last - first + 1;
    end = first;
  }
}

bool ChunkPool::punch(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t chunk = first; chunk < first + count; ++chunk)
    collapsed_.reset(chunk / kChunksPerRegion);
  return file_.punch(first, count);
}

void ChunkPool::set_slots(SlotTable* slots) {
  const std::scoped_lock lock(mutex_);
  slots_ = slots;
  trust_ = true;
  spared_ = 0;
}

void ChunkPool::distrust_readers() {
  const std::scoped_lock lock(mutex_);
  trust_ = false;
  spared_ = 0;
}

void ChunkPool::spare(std::uint64_t version) {
  const std::scoped_lock lock(mutex_);
  PANDO_ASSERT(slots_ == nullptr);
  trust_ = true;
  spared_ = version;
  has_spared_ = true;
}

bool ChunkPool::has_spared() const {
  const std::scoped_lock lock(mutex_);
  return has_spared_;
}

std::vector<std::uint32_t> ChunkPool::pick_full_regions(std::size_t max_regions) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::uint32_t> regions;
  // Borrowed chunks are pages of the image's file: a huge page of the store cannot replace them.
  const std::uint32_t start = (borrowed_ + kChunksPerRegion - 1) / kChunksPerRegion;
  for (std::uint32_t region = collapsed_.find_clear(start); region != Bitmap::kNone;
       region = collapsed_.find_clear(region + 1)) {
    const std::uint32_t first = region * kChunksPerRegion;
    if (first + kChunksPerRegion > chunks_.size() || regions.size() >= max_regions) break;
    const std::uint32_t free = free_.find_set(first);
    if (free != Bitmap::kNone && free < first + kChunksPerRegion) continue;
    collapsed_.set(region);
    regions.push_back(region);
  }
  return regions;
}

bool ChunkPool::collapse(std::uint32_t region) {
  {
    const std::scoped_lock lock(mutex_);
    collapsed_.set(region);
  }
  std::byte* start = file_.base() + kChunksOffset + region * kHugePage;
  const bool done = ::madvise(start, kHugePage, MADV_COLLAPSE) == 0;
  if (done) huge_pages_.fetch_add(1, std::memory_order_relaxed);
  return done;
}

bool ChunkPool::is_fuller_than(std::uint32_t part) const noexcept {
  return in_use_ + quota_ / part >= quota_;
}

bool ChunkPool::is_tight_with(std::uint32_t in_use) const noexcept {
  return in_use + std::max(quota_ / kTightPart, reserve_) >= quota_;
}

bool ChunkPool::low_space() const {
  const std::scoped_lock lock(mutex_);
  return tight();
}

bool ChunkPool::low_space_without_pins() const {
  const std::scoped_lock lock(mutex_);
  return tight_for_good();
}

bool ChunkPool::can_afford(std::uint64_t bytes, Reserve use) const {
  const std::scoped_lock lock(mutex_);
  if (!tight()) return true;
  // Trees and rests of chunks need more than the bytes themselves.
  const std::uint64_t chunks = 2 * std::min(bytes, kReach) / kChunkBytes;
  return !tight_for_good() && leaves(static_cast<std::uint32_t>(chunks) + reserve_ / 4, use);
}

bool ChunkPool::leaves_reserve(Reserve use) const {
  const std::scoped_lock lock(mutex_);
  return leaves(0, use);
}

void ChunkPool::fill(StoreStats& stats) const {
  const std::scoped_lock lock(mutex_);
  stats.chunks_in_use = in_use_;
  stats.peak_chunks = std::max(peak_in_use_, in_use_);
  stats.waiting_chunks = waiting_count_;
  stats.lent_chunks = lent_;
  for (const auto& [version, chunks] : held_) stats.held_chunks += chunks.size();
  stats.spare_chunks = backed_free_;
  stats.free_chunks = chunks_.size() - in_use_;
  stats.huge_pages = huge_pages_.load(std::memory_order_relaxed);
}

Status ChunkPool::check() const {
  const std::scoped_lock lock(mutex_);
  std::uint32_t in_use = 0;
  std::uint32_t lent = 0;
  std::uint32_t backed_free = 0;
  for (std::uint32_t chunk = 0; chunk < limit_; ++chunk) {
    const State state = chunk < chunks_.size() ? chunks_[chunk].state : State::kFree;
    const bool counted = chunk < file_.committed_chunks() && live(chunk) != 0;
    if (counted && (state == State::kFree || state == State::kWaiting))
      return fail(Errc::kCorrupt, "chunk {} has live blocks but is free", chunk);
    if (state == State::kUsed && !counted)
      return fail(Errc::kCorrupt, "chunk {} is in use without live blocks", chunk);
    if ((state == State::kFree) != free_.test(chunk))
      return fail(Errc::kCorrupt, "chunk {} is free in one place only", chunk);
    if (state != State::kFree && state != State::kBlocked) ++in_use;
    if (state == State::kLent) ++lent;
    if (state == State::kFree && backed_.test(chunk)) ++backed_free;
  }
  if (in_use > ceiling_)
    return fail(Errc::kCorrupt, "{} chunks are in use, of {} at most", in_use, ceiling_);
  if (in_use != in_use_ || lent != lent_ || backed_free != backed_free_)
    return fail(Errc::kCorrupt, "chunks in use: {} counted, {} expected", in_use, in_use_);
  return {};
}

}  // namespace pando::shm

#include "shm/chunk_pool.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/crash_point.h"
#include "shm/image_state.h"

namespace pando::shm {

namespace {

/// Bound of the chunk numbers that a pool may use. Room for the whole quota must exist after
/// borrowed chunks. Room for the reserve must exist after the chunks of a store that is too full.
std::uint32_t limit_for(const LiveFile& file, std::uint32_t quota) noexcept {
  const std::uint32_t there = file.committed_chunks();
  if (file.borrowed_chunks() == 0)
    return std::max(quota, std::min(there + SpacePolicy::allowance(quota), kMaxChunks));
  return std::min(there + quota, kMaxChunks);
}

}  // namespace

ChunkPool::ChunkPool(LiveFile& file, std::uint32_t quota)
    : file_(file),
      borrowed_(file.borrowed_chunks()),
      space_(quota, limit_for(file, quota)),
      regions_(space_.limit()),
      memory_(file, regions_, space_.limit()),
      tails_(space_.limit()),
      written_(space_.limit()),
      victims_(space_.limit()) {}

void ChunkPool::adopt(Span open, std::uint64_t version) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t end = file_.committed_chunks();
  std::uint32_t filled = 0;
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    const bool used = live(chunk) != 0;
    if (used || chunk == open.chunk) ++filled;
    if (borrowed_ != 0 && !used) {
      if (chunk >= borrowed_) continue;
      become(info(chunk), State::kBlocked);
      memory_.take(chunk);
      continue;
    }
    lend(chunk);
    info(chunk).born = 0;  // not known: assume that the oldest version refers to the chunk
    info(chunk).used = chunk == open.chunk ? open.from : static_cast<std::uint32_t>(kChunkBytes);
    written_.set(chunk);
    if (used || chunk == open.chunk) memory_.note_memory(chunk);
    if (chunk == open.chunk) continue;
    become(info(chunk), State::kUsed);
    if (!used) wait(chunk, version);
  }
  if (borrowed_ == 0) space_.machine_has(space_.in_use() + file_.room());
  space_.admit(filled);
}

/// Chunks that are an image's get memory of this file later, so their share of the room is not
/// known before settle_borrowed().
void ChunkPool::look_at_machine() {
  const std::scoped_lock lock(mutex_);
  if (borrowed_ != 0) return;
  memory_.trim(space_.most_spare());
  const std::uint32_t room = file_.room();
  // A limit of the process or of its group may be below the file system's: only an allocation shows
  // it.
  if (space_.is_refused() && (room == 0 || !memory_.grow(memory_.spare() + 1, space_)))
    return space_.machine_refused(memory_.spare());
  space_.machine_gave();
  space_.machine_has(space_.in_use() + memory_.spare() + file_.room());
}

void ChunkPool::settle_borrowed() {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t end = std::exchange(borrowed_, 0);
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    if (chunks_[chunk].state != State::kBlocked) continue;
    become(chunks_[chunk], State::kFree);
    memory_.give_known(chunk);  // a chunk that was copied has memory
  }
}

std::uint64_t ChunkPool::version() const noexcept {
  // Only this process writes the epoch. A background thread that takes a chunk locks the mutex
  // after the store of the epoch.
  return file_.header().publication.epoch.load(std::memory_order_relaxed);
}

std::uint32_t ChunkPool::live(std::uint32_t chunk) const noexcept {
  return live_bytes(file_.counts()[chunk]);
}

ChunkPool::Chunk& ChunkPool::info(std::uint32_t chunk) {
  if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
  return chunks_[chunk];
}

Result<Span> ChunkPool::take(std::uint32_t bytes, Reserve use) {
  const std::scoped_lock lock(mutex_);
  if (const auto tail = tails_.take(bytes)) {
    become(chunks_[tail->chunk], State::kLent);
    return *tail;
  }
  auto chunk = take_chunks(1, use);
  if (!chunk) return pass(chunk);
  return Span{*chunk, 0};
}

Result<std::uint32_t> ChunkPool::take_run(std::uint32_t count, Reserve use) {
  const std::scoped_lock lock(mutex_);
  return take_chunks(count, use);
}

Result<std::uint32_t> ChunkPool::take_chunks(std::uint32_t count, Reserve use) {
  // Before the file grows, check once per version whether readers have moved on.
  if (memory_.spare() < count && reclaimed_at_ != version()) reclaim_locked();
  auto first = try_take(count, use);
  if (first || first.error().code != Errc::kFull || space_.waiting() == 0) return first;
  if (reclaim_locked() != 0) first = try_take(count, use);
  if (first || first.error().code != Errc::kFull || give_up_spared() == 0) return first;
  return try_take(count, use);
}

Result<std::uint32_t> ChunkPool::try_take(std::uint32_t count, Reserve use) {
  if (!space_.leaves(count, use))
    return fail(Errc::kFull, "{}",
                space_.is_bound_by_machine() ? "the machine has no more memory for the store"
                                             : "the store has reached its size limit");
  const bool keeps = use == Reserve::kKept;
  const std::uint32_t wanted = (count == 1 ? 1 : 0) + (keeps ? space_.cushion() : 0);
  if (auto grown = memory_.grow(wanted, space_); !grown) {
    if (grown.error().code == Errc::kFull) space_.machine_refused(memory_.spare());
    if (keeps) return pass(grown);
  }
  const std::uint32_t first = memory_.find(count);
  if (first == Bitmap::kNone)
    return fail(Errc::kFull, "the store has no {} chunks in a row", count);
  if (auto backed = memory_.back(first, count); !backed) return pass(backed);
  for (std::uint32_t chunk = first; chunk < first + count; ++chunk) lend(chunk);
  return first;
}

void ChunkPool::lend(std::uint32_t chunk) {
  Chunk& lent = info(chunk);
  lent = Chunk{};
  lent.born = version() + 1;
  become(lent, State::kLent);
  memory_.take(chunk);
  space_.count_taken();
}

void ChunkPool::give_back(Span span) {
  const std::scoped_lock lock(mutex_);
  Chunk& lent = info(span.chunk);
  if (span.from == 0) return free_chunk(span.chunk);  // no version ever referred to it
  become(lent, State::kUsed);
  if (live(span.chunk) == 0) return wait(span.chunk, version());
  tails_.add(span);
}

void apply_counts(const RootBlock& published, std::uint32_t* counts) noexcept {
  const CountChange* changes = changes_of(published);
  for (std::uint32_t i = 0; i < published.changes; ++i) {
    counts[changes[i].chunk] = changes[i].count;
    crash_point("store-publish-count");
  }
}

void ChunkPool::commit_counts(const RootBlock& published, const std::vector<LedgerEntry>& entries,
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
    if (chunk.state != State::kUsed || kChunkBytes - tail.from < kTailMin) continue;
    if (tails_.add(tail)) chunk.used = tail.from;
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
  written_ = Bitmap(space_.limit());
}

std::size_t ChunkPool::held_by(std::uint64_t version) const {
  const std::scoped_lock lock(mutex_);
  return waiting_.held_by(version);
}

void ChunkPool::become(Chunk& chunk, State state) noexcept {
  if (chunk.state == State::kLent) --lent_;
  if (state == State::kLent) ++lent_;
  chunk.state = state;
}

void ChunkPool::wait(std::uint32_t chunk, std::uint64_t freed_at) {
  tails_.drop(chunk);
  become(chunks_[chunk], State::kWaiting);
  waiting_.add({chunk, chunks_[chunk].born, freed_at});
  space_.count_waiting();
}

void ChunkPool::free_chunk(std::uint32_t chunk) {
  space_.count_freed();
  victims_.remove(chunk);
  if (chunk < borrowed_) return become(chunks_[chunk], State::kBlocked);
  become(chunks_[chunk], State::kFree);
  memory_.give(chunk);
}

std::size_t ChunkPool::reclaim() {
  const std::scoped_lock lock(mutex_);
  return reclaim_locked();
}

bool ChunkPool::has_unsorted() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.has_unsorted();
}

/// The slots are checked after the epoch was stored. The thread that stored the epoch put the
/// waiting chunks here later, under the mutex. See shm/epoch.h for why that order is enough.
std::size_t ChunkPool::reclaim_locked() {
  std::size_t freed = reclaim_waiting();
  if (space_.waiting() != 0 && space_.is_crowded()) freed += give_up_spared();
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
  if (space_.waiting() == 0 || !collect_holds()) return 0;
  const std::vector<std::uint32_t> freed = waiting_.release(holds_);
  for (const std::uint32_t chunk : freed) {
    space_.count_waited();
    free_chunk(chunk);
  }
  crash_point("store-reclaimed");
  memory_.punch_unknown();
  memory_.trim(space_.most_spare());
  return freed.size();
}

/// False when no chunk may be freed because the readers are not known.
bool ChunkPool::collect_holds() {
  holds_.clear();
  if (slots_ != nullptr) slots_->collect(version(), holds_);
  if (spared_ != 0) holds_.exact.push_back(spared_);  // alone: there are no slots then
  return trust_;
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

/// The count comes first: most chunks are full, and the table of counts is small.
std::size_t ChunkPool::choose_victims(unsigned threshold_percent, std::size_t max_chunks,
                                      std::uint32_t open_rest) {
  const std::scoped_lock lock(mutex_);
  if (borrowed_ != 0) return 0;  // emptying a chunk gives no memory back yet
  const auto is_thin = [this, threshold_percent](std::uint32_t chunk) {
    const std::uint32_t count = file_.counts()[chunk];
    return (count & kRunFlag) == 0 &&
           std::uint64_t{live_bytes(count)} * 100 < kChunkBytes * threshold_percent &&
           chunks_[chunk].state == State::kUsed;
  };
  const auto end = static_cast<std::uint32_t>(chunks_.size());
  const std::uint64_t room = space_.room_to_copy(open_rest);
  EmptiestChunks emptiest;
  for (std::uint32_t chunk = 0; chunk < end; ++chunk)
    if (is_thin(chunk)) emptiest.add(live(chunk));
  emptiest.select(max_chunks, room);
  if (emptiest.selected() == 0 || emptiest.gain() < space_.least_gain(room)) return 0;
  victims_.begin_walk(room);
  for (std::uint32_t chunk = 0; chunk < end; ++chunk) {
    if (!is_thin(chunk) || !emptiest.take(live(chunk))) continue;
    tails_.drop(chunk);
    victims_.add(chunk);
  }
  return emptiest.selected();
}

/// The blocks that refer to the copies may have taken more than half of the room. Then only the
/// emptiest victims are emptied, and the others another time.
bool ChunkPool::narrow_victims(std::uint32_t open_rest) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t room = space_.room_to_copy(open_rest);
  if (!victims_.must_narrow(room)) return true;
  const auto is_left = [this](std::uint32_t chunk) {
    return is_victim(chunk) && chunks_[chunk].state == State::kUsed;
  };
  const auto end = static_cast<std::uint32_t>(chunks_.size());
  EmptiestChunks emptiest;
  for (std::uint32_t chunk = 0; chunk < end; ++chunk)
    if (is_left(chunk)) emptiest.add(live(chunk));
  emptiest.select(end, room);
  for (std::uint32_t chunk = 0; chunk < end; ++chunk)
    if (is_left(chunk) && !emptiest.take(live(chunk))) victims_.remove(chunk);
  return emptiest.selected() > 0;
}

bool ChunkPool::is_borrowing() const {
  const std::scoped_lock lock(mutex_);
  return borrowed_ != 0;
}

/// Borrowed chunks are pages of the image's file: a huge page of the store cannot replace them.
std::vector<std::uint32_t> ChunkPool::pick_full_regions(std::size_t max_regions) {
  const std::scoped_lock lock(mutex_);
  return regions_.pick_full(borrowed_, static_cast<std::uint32_t>(chunks_.size()),
                            memory_.free_chunks(), max_regions);
}

bool ChunkPool::collapse(std::uint32_t region) {
  {
    const std::scoped_lock lock(mutex_);
    regions_.note_asked(region);
  }
  return regions_.collapse(file_.base() + kChunksOffset + region * kHugePage);
}

SpacePolicy ChunkPool::space() const {
  const std::scoped_lock lock(mutex_);
  return space_;
}

void ChunkPool::fill(StoreStats& stats) const {
  const std::scoped_lock lock(mutex_);
  stats.chunks_in_use = space_.in_use();
  stats.peak_chunks = space_.peak_in_use();
  stats.waiting_chunks = space_.waiting();
  stats.lent_chunks = lent_;
  stats.held_chunks = waiting_.held();
  stats.spare_chunks = memory_.spare();
  stats.free_chunks = chunks_.size() - space_.in_use();
  stats.huge_pages = regions_.given();
  stats.limit_bytes = std::uint64_t{space_.quota()} * kChunkBytes;
  stats.memory_refused = space_.is_refused();
}

Status ChunkPool::check() const {
  const std::scoped_lock lock(mutex_);
  std::uint32_t in_use = 0;
  std::uint32_t lent = 0;
  std::uint32_t spare = 0;
  for (std::uint32_t chunk = 0; chunk < space_.limit(); ++chunk) {
    const State state = chunk < chunks_.size() ? chunks_[chunk].state : State::kFree;
    const bool counted = chunk < file_.committed_chunks() && live(chunk) != 0;
    if (counted && (state == State::kFree || state == State::kWaiting))
      return fail(Errc::kCorrupt, "chunk {} has live blocks but is free", chunk);
    if (state == State::kUsed && !counted)
      return fail(Errc::kCorrupt, "chunk {} is in use without live blocks", chunk);
    if ((state == State::kFree) != memory_.is_free(chunk))
      return fail(Errc::kCorrupt, "chunk {} is free in one place only", chunk);
    if (state != State::kFree && state != State::kBlocked) ++in_use;
    if (state == State::kLent) ++lent;
    if (state == State::kFree && memory_.has_memory(chunk)) ++spare;
  }
  if (in_use > space_.ceiling())
    return fail(Errc::kCorrupt, "{} chunks are in use, of {} at most", in_use, space_.ceiling());
  if (in_use != space_.in_use() || lent != lent_ || spare != memory_.spare())
    return fail(Errc::kCorrupt, "chunks in use: {} counted, {} expected", in_use, space_.in_use());
  return {};
}

}  // namespace pando::shm

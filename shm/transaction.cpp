#include "shm/transaction.h"

#include <algorithm>

namespace pando::shm {

namespace {

/// Number of rests of its own chunks that a transaction tries for one block.
constexpr std::ptrdiff_t kTailTries = 16;

}  // namespace

Transaction::Impl::~Impl() {
  for (const LedgerEntry& entry : ledger.entries())
    if (entry.taken() && !(store_open != nullptr && store_open->span.chunk == entry.chunk))
      pool.give_back({entry.chunk, entry.fresh_from});
  // The store's open span still begins where this transaction began; no reader saw the bytes after
  // that.
  if (store_open != nullptr) store_open->lent = false;
}

void Transaction::Impl::open_at(OpenChunk& open) {
  store_open = &open;
  open.lent = true;
  if (open.span.chunk != kNoChunk) take(open.span);
}

void Transaction::Impl::take(Span span) {
  ledger.at(span.chunk).fresh_from = span.from;
  go_on_in(span);
}

void Transaction::Impl::go_on_in(Span span) {
  begin = chunk_offset(span.chunk) + ledger.at(span.chunk).fresh_from;
  position = counted = chunk_offset(span.chunk) + span.from;
  end = chunk_offset(span.chunk) + kChunkBytes;
}

Span Transaction::Impl::current() const noexcept {
  if (end == 0) return {};
  const std::uint32_t chunk = chunk_at(end - 1);
  return {chunk, static_cast<std::uint32_t>(position - chunk_offset(chunk))};
}

void Transaction::Impl::count_current() {
  if (position == counted) return;
  ledger.at(chunk_at(end - 1)).delta += static_cast<std::int64_t>(position - counted);
  counted = position;
}

void Transaction::Impl::leave_current() {
  if (end == 0) return;
  count_current();
  if (end - position >= kTailMin) tails.push_back(current());
  begin = position = end = counted = 0;
}

Result<Ref<>> Transaction::Impl::allocate(std::size_t bytes) {
  if (bytes > kReach) return fail(Errc::kFull, "a block of {} bytes", bytes);
  const std::size_t size = block_bytes(std::max<std::size_t>(bytes, 1));
  if (end - position < size) [[unlikely]] {
    if (size > kChunkBytes) return allocate_run(size);
    if (auto room = find_room(size); !room) return pass(room);
  }
  const Ref<> ref{static_cast<std::uint32_t>(position / kUnit)};
  position += size;
  allocated += size;
  return ref;
}

/// Moves on to the room that an earlier large block left, or to another chunk.
Status Transaction::Impl::find_room(std::size_t bytes) {
  const auto fits = [bytes](const Span& tail) { return kChunkBytes - tail.from >= bytes; };
  const auto tried = tails.rbegin() + std::min(std::ssize(tails), kTailTries);
  const auto own = std::find_if(tails.rbegin(), tried, fits);
  if (own != tried) {
    const Span span = *own;
    tails.erase(std::next(own).base());
    leave_current();
    go_on_in(span);
    return {};
  }
  auto span = pool.take(static_cast<std::uint32_t>(bytes), reserve);
  if (!span) return pass(span);
  const std::uint32_t left = current().chunk;
  leave_current();
  take(*span);
  if (left != kNoChunk) collapse_region_of(left);
  return {};
}

/// A region that a private transaction has filled alone gets its huge page now, while no reader can
/// access it. Readers of a published region would wait while the kernel copies it.
void Transaction::Impl::collapse_region_of(std::uint32_t chunk) {
  const std::uint32_t first = chunk / kChunksPerRegion * kChunksPerRegion;
  if (store_open != nullptr || chunk != first + kChunksPerRegion - 1) return;
  for (std::uint32_t own = first; own <= chunk; ++own) {
    const LedgerEntry* entry = ledger.find(own);
    if (entry == nullptr || entry->fresh_from != 0) return;
  }
  pool.collapse(first / kChunksPerRegion);
}

/// A block above 64 KiB has consecutive chunks to itself; the rest of the last one stays empty.
Result<Ref<>> Transaction::Impl::allocate_run(std::size_t bytes) {
  const auto count = static_cast<std::uint32_t>((bytes + kChunkBytes - 1) / kChunkBytes);
  auto first = pool.take_run(count, reserve);
  if (!first) return pass(first);
  for (std::uint32_t chunk = *first; chunk < *first + count; ++chunk) {
    LedgerEntry& entry = ledger.at(chunk);
    entry.fresh_from = 0;
    entry.run = true;
  }
  add_to_chunks(chunk_offset(*first), bytes, 1);
  allocated += bytes;
  return Ref<>{static_cast<std::uint32_t>(chunk_offset(*first) / kUnit)};
}

void Transaction::Impl::add_to_chunks(std::uint64_t offset, std::uint64_t bytes,
                                      std::int64_t sign) {
  while (bytes > 0) {
    const std::uint32_t chunk = chunk_at(offset);
    const std::uint64_t part = std::min(bytes, chunk_offset(chunk) + kChunkBytes - offset);
    ledger.at(chunk).delta += sign * static_cast<std::int64_t>(part);
    offset += part;
    bytes -= part;
  }
}

void Transaction::Impl::release(Ref<> ref, std::size_t bytes) {
  const std::uint64_t offset = ref.offset();
  const std::uint64_t size = block_bytes(std::max<std::size_t>(bytes, 1));
  if (offset < kChunksOffset || size > live_file.window().limit() ||
      offset + size > live_file.window().limit()) {
    damaged = true;
    return;
  }
  add_to_chunks(offset, size, -1);
  released += size;
}

bool Transaction::Impl::is_fresh(Ref<> ref) const noexcept {
  const std::uint64_t offset = ref.offset();
  if (offset >= begin && offset < position) return true;
  const std::uint32_t chunk = chunk_at(offset);
  const LedgerEntry* entry = chunk == kNoChunk ? nullptr : ledger.find(chunk);
  return entry != nullptr && entry->taken() && offset >= chunk_offset(chunk) + entry->fresh_from;
}

void Transaction::Impl::absorb(Impl& other) {
  leave_current();
  other.leave_current();
  for (const LedgerEntry& theirs : other.ledger.entries()) {
    LedgerEntry& ours = ledger.at(theirs.chunk);
    ours.delta += theirs.delta;
    if (theirs.taken()) ours.fresh_from = theirs.fresh_from;
    ours.run = ours.run || theirs.run;
  }
  tails.insert(tails.begin(), other.tails.begin(), other.tails.end());
  allocated += other.allocated;
  released += other.released;
  damaged = damaged || other.damaged;
  if (other.store_open != nullptr) store_open = other.store_open;
  other.forget();
}

void Transaction::Impl::forget() noexcept {
  ledger = Ledger();
  tails.clear();
  store_open = nullptr;
  begin = position = end = counted = 0;
}

Transaction::Transaction(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

Result<Ref<>> Transaction::allocate(std::size_t bytes) { return impl_->allocate(bytes); }
bool Transaction::is_fresh(Ref<> ref) const noexcept { return impl_->is_fresh(ref); }
void Transaction::release(Ref<> ref, std::size_t bytes) noexcept { impl_->release(ref, bytes); }
bool Transaction::in_victim(Ref<> ref) const noexcept {
  return impl_->pool.is_victim(chunk_at(ref.offset()));
}
void Transaction::absorb(Transaction&& other) { impl_->absorb(*other.impl_); }
void Transaction::use_reserve(Reserve use) noexcept { impl_->reserve = use; }
Reserve Transaction::reserve_use() const noexcept { return impl_->reserve; }
bool Transaction::low_space() const { return impl_->pool.space().low_space(); }
bool Transaction::low_space_without_pins() const {
  return impl_->pool.space().low_space_without_pins();
}
bool Transaction::can_afford(std::uint64_t bytes) const {
  return impl_->pool.space().can_afford(bytes, impl_->reserve);
}
std::uint64_t Transaction::allocated_bytes() const noexcept { return impl_->allocated; }
std::int64_t Transaction::added_bytes() const noexcept {
  return static_cast<std::int64_t>(impl_->allocated) - static_cast<std::int64_t>(impl_->released);
}
Window Transaction::window() const noexcept { return impl_->live_file.window(); }
std::byte* Transaction::mutable_base() noexcept { return impl_->live_file.base(); }

}  // namespace pando::shm

#include "zone/record/shared_sets.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

constexpr std::size_t kFirstTable = 1024;
/// Number of names with a set from which on the set is shared. Earlier names keep the set in their
/// records; for fewer names the shared copy would cost more than it saves.
constexpr std::uint32_t kNamesBefore = 2;
constexpr std::size_t kMinBytes = 2 * kExternalBytes;

constexpr std::size_t aligned(std::size_t octets) {
  return (octets + shm::kUnit - 1) / shm::kUnit * shm::kUnit;
}

}  // namespace

SharedSets::SharedSets(shm::Transaction& transaction, std::uint64_t worth)
    : transaction_(transaction), worth_(worth) {}

Result<std::uint32_t> SharedSets::place(ByteView packed) {
  if (packed.size() < kMinBytes || packed.size() > kInlineDataBytes) return 0U;
  const std::uint64_t hash = XXH3_64bits(packed.data(), packed.size());
  Seen& seen = find(hash == 0 ? 1 : hash);
  if (seen.ref != 0) {
    const auto* there = transaction_.window().at(shm::Ref<>{seen.ref}, packed.size());
    // A different set with the same hash stays in its record.
    const bool same = there != nullptr && std::memcmp(there, packed.data(), packed.size()) == 0;
    return same ? seen.ref : 0U;
  }
  if (seen.names > 0) saved_ += packed.size() - kExternalBytes;
  if (seen.names < kNamesBefore) ++seen.names;
  if (saved_ < worth_ || seen.names < kNamesBefore) return 0U;
  auto ref = append(packed);
  if (!ref && ref.error().code == Errc::kFull) {
    // No two adjacent chunks are free; single chunks may suffice for the records.
    worth_ = UINT64_MAX;
    return 0U;
  }
  if (ref) seen.ref = *ref;
  return ref;
}

SharedSets::Seen& SharedSets::find(std::uint64_t hash) {
  if (2 * (used_ + 1) > table_.size()) grow();
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash & mask;
  while (table_[at].hash != 0 && table_[at].hash != hash) at = (at + 1) & mask;
  if (table_[at].hash == 0) ++used_;
  table_[at].hash = hash;
  return table_[at];
}

void SharedSets::grow() {
  const std::vector<Seen> old = std::move(table_);
  table_.assign(old.empty() ? kFirstTable : 2 * old.size(), Seen{});
  const std::size_t mask = table_.size() - 1;
  for (const Seen& seen : old) {
    if (seen.hash == 0) continue;
    std::size_t at = seen.hash & mask;
    while (table_[at].hash != 0) at = (at + 1) & mask;
    table_[at] = seen;
  }
}

Result<std::uint32_t> SharedSets::append(ByteView packed) {
  const std::size_t octets = aligned(packed.size());
  if (octets > room_) {
    auto ref = transaction_.allocate(kSharedPageBytes);
    if (!ref) return pass(ref);
    auto* page = transaction_.writable(ref->as<SharedPage>());
    *page = {pages_, 0};
    pages_ = ref->units;
    next_ = reinterpret_cast<std::uint8_t*>(page + 1);
    room_ = kSharedPageBytes - sizeof(SharedPage);
  }
  const auto* start =
      reinterpret_cast<const std::uint8_t*>(transaction_.window().at(shm::Ref<SharedPage>{pages_}));
  const auto units = static_cast<std::uint32_t>((next_ - start) / std::ptrdiff_t{shm::kUnit});
  std::memcpy(next_, packed.data(), packed.size());
  next_ += octets;
  room_ -= octets;
  return pages_ + units;
}

Status release_shared(shm::Transaction& transaction, std::uint32_t pages) {
  // More pages than the store can hold: the list is circular.
  for (std::uint64_t left = shm::kReach / kSharedPageBytes; pages != 0; --left) {
    const auto* page = transaction.window().at(shm::Ref<>{pages}, kSharedPageBytes);
    if (page == nullptr || left == 0) return fail(Errc::kCorrupt, "shared RRsets are damaged");
    const std::uint32_t next = transaction.window().at(shm::Ref<SharedPage>{pages})->older;
    transaction.release(shm::Ref<>{pages}, kSharedPageBytes);
    pages = next;
  }
  return {};
}

}  // namespace pando::zone

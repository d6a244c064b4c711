#include "zone/draft/collected.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/pause_point.h"
#include "base/progress.h"

namespace pando::zone {

void append_record(Bytes& out, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
  const std::size_t at = out.size();
  out.resize(at + CollectedRecord::kHeaderOctets + rdata.size());
  store_be16(out.data() + at, static_cast<std::uint16_t>(type));
  store_be32(out.data() + at + 2, ttl.seconds);
  store_be16(out.data() + at + 6, static_cast<std::uint16_t>(rdata.size()));
  std::copy(rdata.begin(), rdata.end(), out.data() + at + CollectedRecord::kHeaderOctets);
}

Result<std::uint32_t> ByteArena::take(std::size_t octets) {
  const std::size_t units = (octets + kUnit - 1) / kUnit;
  if (units > room_) {
    if (blocks_.size() == kMaxBlocks)
      return fail(Errc::kFull, "more than 16 GiB of records in no order");
    const bool is_small = blocks_.empty() && octets <= kFirstBlockBytes;
    const std::size_t size = is_small ? kFirstBlockBytes : kBlockBytes;
    blocks_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(size));
    used_ = 0;
    room_ = size / kUnit;
  }
  const auto number = static_cast<std::uint32_t>((blocks_.size() - 1) * kUnitsPerBlock + used_);
  used_ += units;
  room_ -= units;
  return number;
}

ByteView LateRecords::key_of(const Entry& entry) const noexcept {
  const std::uint8_t* at = arena_.at(entry.owner);
  return {at + 3, load_be16(at)};
}

ByteView LateRecords::labels(const Entry& entry) const noexcept {
  const std::uint8_t* at = arena_.at(entry.owner);
  return {at + 3 + load_be16(at), at[2]};
}

bool LateRecords::ends_with(ByteView labels) const noexcept {
  return has_last_ && same_octets(this->labels(last_), labels);
}

Status LateRecords::add(ByteView labels, const TrieKey& key, ByteView record) {
  if (ends_with(labels)) return add_to_last(record);
  auto owner = arena_.take(3 + key.length() + labels.size());
  if (!owner) return pass(owner);
  std::uint8_t* at = arena_.at(*owner);
  store_be16(at, static_cast<std::uint16_t>(key.length()));
  at[2] = static_cast<std::uint8_t>(labels.size());
  std::copy_n(key.data(), key.length(), at + 3);
  std::copy(labels.begin(), labels.end(), at + 3 + key.length());
  std::uint8_t start[8] = {};
  std::copy_n(key.data(), std::min(key.length(), sizeof start), start);
  last_ = {load_be64(start), *owner, 0};
  has_last_ = true;
  return add_to_last(record);
}

Status LateRecords::add_to_last(ByteView record) {
  auto place = arena_.take(record.size());
  if (!place) return pass(place);
  std::copy(record.begin(), record.end(), arena_.at(*place));
  last_.record = *place;
  push(last_);
  return {};
}

void LateRecords::push(const Entry& entry) {
  const std::size_t index = size_++;
  if (index < kFirstEntries) return first_.push_back(entry);
  const std::size_t at = (index - kFirstEntries) % kEntriesPerBlock;
  if (at == 0) blocks_.push_back(std::make_unique_for_overwrite<Entry[]>(kEntriesPerBlock));
  blocks_.back()[at] = entry;
}

const LateRecords::Entry& LateRecords::entry_at(std::size_t index) const noexcept {
  if (index < kFirstEntries) return first_[index];
  const std::size_t at = index - kFirstEntries;
  return blocks_[at / kEntriesPerBlock][at % kEntriesPerBlock];
}

std::vector<LateRecords::Entry> LateRecords::take_from(std::size_t first) {
  std::vector<Entry> taken;
  for (std::size_t i = first; i < size_; ++i) taken.push_back(entry_at(i));
  size_ = first;
  first_.resize(std::min(first, kFirstEntries));
  const std::size_t in_blocks = first - first_.size();
  blocks_.resize((in_blocks + kEntriesPerBlock - 1) / kEntriesPerBlock);
  has_last_ = false;
  return taken;
}

int LateRecords::compare_names(const Entry& a, const Entry& b) const noexcept {
  if (a.key_start != b.key_start) return a.key_start < b.key_start ? -1 : 1;
  if (a.owner == b.owner) return 0;
  const ByteView key_a = key_of(a);
  const ByteView key_b = key_of(b);
  const int order = std::memcmp(key_a.data(), key_b.data(), std::min(key_a.size(), key_b.size()));
  return order != 0 ? order : static_cast<int>(key_a.size()) - static_cast<int>(key_b.size());
}

namespace {

/// About the number of comparisons of std::sort(), for the display of progress.
std::uint64_t comparisons_for(std::size_t count) {
  return count * static_cast<std::uint64_t>(std::bit_width(count)) * 6 / 5;
}

/// Thrown by a comparison: std::sort() has no other way to end early.
struct GivenUp {};

}  // namespace

Status LateRecords::sort() {
  ProgressCount compared(Progress::Phase::kSorting, size_, comparisons_for(size_));
  pause_point("zone-sort");
  sorted_.reserve(size_);
  sorted_.assign(first_.begin(), first_.end());
  // each block goes once it is copied, so that the entries are in memory only once
  for (auto& block : blocks_) {
    const std::size_t count = std::min(kEntriesPerBlock, size_ - sorted_.size());
    sorted_.insert(sorted_.end(), block.get(), block.get() + count);
    block.reset();
  }
  const auto is_before = [this, &compared](const Entry& a, const Entry& b) {
    compared.add();
    if (compared.is_given_up()) throw GivenUp{};
    const int order = compare_names(a, b);
    return order != 0 ? order < 0 : a.record < b.record;
  };
  try {
    std::sort(sorted_.begin(), sorted_.end(), is_before);
  } catch (const GivenUp&) {
    return fail(Errc::kExists, kGivenUp);
  }
  return {};
}

std::optional<LateRecords::Group> LateRecords::next() {
  if (next_ == sorted_.size()) return std::nullopt;
  const std::size_t begin = next_;
  const Entry& first = sorted_[begin];
  while (next_ < sorted_.size() && compare_names(first, sorted_[next_]) == 0) ++next_;
  return Group{key_of(first), labels(first), {&first, next_ - begin}};
}

}  // namespace pando::zone

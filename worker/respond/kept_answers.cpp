#include "worker/respond/kept_answers.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "worker/answer/render.h"

namespace pando::worker {

KeptAnswers::Place KeptAnswers::place_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t flags = (key.dnssec_ok ? 1U : 0U) | (key.minimal_responses ? 2U : 0U);
  const std::uint64_t asked = std::uint64_t{key.zone} << 32 |
                              std::uint64_t{static_cast<std::uint16_t>(key.type)} << 2 | flags;
  const std::uint64_t seed = (key.data_version * kOdd) ^ asked;
  const std::uint64_t hash = XXH3_64bits_withSeed(key.name.data(), key.name.size(), seed);
  return {static_cast<std::uint32_t>(hash >> 32 & (kSets - 1)),
          static_cast<std::uint32_t>(hash) | 1U};
}

const KeptAnswers::Kept* KeptAnswers::find(const Key& key, Place place) const noexcept {
  if (sets_.empty()) return nullptr;
  const Set& set = sets_[place.set];
  unsigned same = 0;
  for (std::size_t way = 0; way < kWays; ++way)
    same |= static_cast<unsigned>(set.tags[way] == place.tag) << way;
  for (; same != 0; same &= same - 1) {
    const Entry& entry = *set.entries[static_cast<std::size_t>(std::countr_zero(same))];
    if (entry.type == key.type && entry.zone == key.zone &&
        entry.data_version == key.data_version && entry.dnssec_ok == key.dnssec_ok &&
        entry.minimal_responses == key.minimal_responses &&
        std::ranges::equal(entry.name, key.name.bytes()))
      return &entry.kept;
  }
  return nullptr;
}

bool KeptAnswers::wants(Place place) noexcept {
  if (sets_.empty()) sets_.resize(kSets);
  Set& set = sets_[place.set];
  // The answer is kept but did not fit, or is too large to be kept.
  if (std::ranges::find(set.tags, place.tag) != set.tags.end()) return false;
  return std::exchange(set.missed, place.tag) == place.tag;
}

void KeptAnswers::keep(const Key& key, Place place, const Answer& answer,
                       const dns::Question& question, const ResponseKind& kind) {
  space_.resize(kMaxOctets);
  dns::MessageWriter writer(space_, space_.size());
  writer.put_header({});
  std::vector<dns::RRsetEnd> ends;
  if (!writer.put_question(question.name, question.type, question.rr_class)) return;
  const std::size_t start = writer.size();
  // Optional RRsets are left out silently when they do not fit.
  if (render(answer, question, writer, &ends) || ends.size() != answer.additional.size() + 1)
    return;
  const ByteView records = writer.finish().subspan(start);
  auto entry = std::make_unique<Entry>();
  entry->name.assign(key.name.data(), key.name.data() + key.name.size());
  entry->type = key.type;
  entry->zone = key.zone;
  entry->data_version = key.data_version;
  entry->dnssec_ok = key.dnssec_ok;
  entry->minimal_responses = key.minimal_responses;
  Kept& kept = entry->kept;
  kept.records.assign(records.begin(), records.end());
  kept.counts = {writer.count(dns::Section::kAnswer), writer.count(dns::Section::kAuthority),
                 writer.count(dns::Section::kAdditional)};
  kept.aa = answer.aa;
  kept.kind = kind;
  kept.owner.assign(kind.owner.begin(), kind.owner.end());
  kept.kind.owner = kept.owner;
  store(place, std::move(entry));
}

std::size_t KeptAnswers::size_of(const Entry& entry) noexcept {
  return sizeof(Entry) + entry.name.capacity() + entry.kept.records.capacity() +
         entry.kept.owner.capacity();
}

void KeptAnswers::store(Place place, std::unique_ptr<Entry> entry) {
  if (sets_.empty() || bytes_ + size_of(*entry) > kMaxBytes) {
    sets_.clear();
    sets_.resize(kSets);
    bytes_ = 0;
  }
  Set& set = sets_[place.set];
  // An empty way, else one of the zone's former state, else any.
  std::size_t victim = place.tag / 2 % kWays;
  for (std::size_t way = 0; way < kWays; ++way) {
    const Entry* old = set.entries[way].get();
    const bool is_current = old != nullptr && (old->zone != entry->zone ||
                                               old->data_version == entry->data_version);
    if (is_current) continue;
    victim = way;
    if (old == nullptr) break;
  }
  if (set.entries[victim]) bytes_ -= size_of(*set.entries[victim]);
  bytes_ += size_of(*entry);
  set.tags[victim] = place.tag;
  set.entries[victim] = std::move(entry);
}

}  // namespace pando::worker

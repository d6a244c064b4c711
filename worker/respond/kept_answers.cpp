#include "worker/respond/kept_answers.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "worker/answer/render.h"

namespace pando::worker {

AnswerPlace KeptAnswers::place_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t flags = (key.dnssec_ok ? 1U : 0U) | (key.minimal_responses ? 2U : 0U);
  const std::uint64_t asked = std::uint64_t{key.zone} << 32 |
                              std::uint64_t{static_cast<std::uint16_t>(key.type)} << 2 | flags;
  const std::uint64_t seed = (key.data_version * kOdd) ^ asked;
  const std::uint64_t hash = XXH3_64bits_withSeed(key.name.data(), key.name.size(), seed);
  return AnswerPlace::of_hash(hash);
}

const KeptAnswers::Kept* KeptAnswers::find(const Key& key, AnswerPlace place) const noexcept {
  const Entry* found = table_.find(place, [&](const Entry& entry) {
    return entry.type == key.type && entry.zone == key.zone &&
           entry.data_version == key.data_version && entry.dnssec_ok == key.dnssec_ok &&
           entry.minimal_responses == key.minimal_responses &&
           std::ranges::equal(entry.name, key.name.bytes());
  });
  return found == nullptr ? nullptr : &found->kept;
}

void KeptAnswers::keep(const Key& key, AnswerPlace place, const Answer& answer,
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
  table_.store(place, std::move(entry));
}

}  // namespace pando::worker

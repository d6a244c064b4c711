#include "worker/respond/kept_answers.h"

#include <xxhash.h>

#include <algorithm>
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

std::optional<KeptAnswers::Kept> KeptAnswers::find(const Key& key,
                                                   AnswerPlace place) const noexcept {
  const Head* found = table_.find(place, [&](const Head& head) {
    return head.type == key.type && head.zone == key.zone &&
           head.data_version == key.data_version && head.dnssec_ok == key.dnssec_ok &&
           head.minimal_responses == key.minimal_responses &&
           std::ranges::equal(ByteView(Table::behind(head), head.name_octets), key.name.bytes());
  });
  if (found == nullptr) return std::nullopt;
  const std::uint8_t* const owner = Table::behind(*found) + found->name_octets;
  Kept kept;
  kept.records = {owner + found->owner_octets, found->records_octets};
  kept.counts = found->counts;
  kept.aa = found->aa;
  kept.kind = {found->kind_class, found->zone, {owner, found->owner_octets}, found->kind_type};
  return kept;
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
  const Head head{
      .data_version = key.data_version,
      .zone = key.zone,
      .type = key.type,
      .records_octets = static_cast<std::uint16_t>(records.size()),
      .counts = {writer.count(dns::Section::kAnswer), writer.count(dns::Section::kAuthority),
                 writer.count(dns::Section::kAdditional)},
      .kind_type = kind.type,
      .kind_class = kind.response_class,
      .name_octets = static_cast<std::uint8_t>(key.name.size()),
      .owner_octets = static_cast<std::uint8_t>(kind.owner.size()),
      .dnssec_ok = key.dnssec_ok,
      .minimal_responses = key.minimal_responses,
      .aa = answer.aa};
  table_.store(place, head, {key.name.bytes(), kind.owner, records});
}

}  // namespace pando::worker

#include "worker/respond/referral_cache.h"

#include "worker/answer/render.h"

namespace pando::worker {

std::uint64_t ReferralCache::tag_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t state = (key.data_version << 1 | (key.dnssec_ok ? 1U : 0U)) * kOdd;
  const std::uint64_t tag = ((dns::hash_name(key.cut) ^ key.zone) + state) * kOdd;
  return tag >> 32 | std::uint64_t{1} << 32;  // never 0, which marks an empty place
}

dns::MessageTemplate::Put ReferralCache::put(const Key& key,
                                             dns::MessageWriter& writer) const noexcept {
  using Put = dns::MessageTemplate::Put;
  const std::uint64_t tag = tag_of(key);
  const Place* place = places_.empty() ? nullptr : &places_[tag % kPlaces];
  if (place == nullptr || place->tag != tag) return Put::kNothing;
  const Entry& entry = *place->entry;
  const bool same = entry.zone == key.zone && entry.data_version == key.data_version &&
                    dns::NameView(entry.cut.data(), entry.cut.size()) == key.cut;
  return same ? entry.referral.put(writer) : Put::kNothing;
}

bool ReferralCache::wants(const Key& key) noexcept {
  if (places_.empty()) places_.resize(kPlaces);
  const std::uint64_t tag = tag_of(key);
  Place& place = places_[tag % kPlaces];
  if (place.tag == tag) return false;  // the entry is cached, but did not fit
  return std::exchange(place.missed, tag) == tag;
}

void ReferralCache::keep(const Key& key, const Answer& answer, const dns::Question& question) {
  space_.resize(dns::MessageTemplate::kMaxOctets + 1);
  dns::MessageWriter writer(space_, space_.size());
  writer.put_header({});
  std::vector<dns::RRsetEnd> ends;
  if (!writer.put_question(question.name, question.type, question.rr_class) ||
      render(answer, question, writer, &ends))
    return;
  std::size_t required = 0;
  for (const worker::Entry& entry : answer.additional)
    if (entry.need == Need::kRequired) ++required;
  // Optional RRsets are left out silently when they do not fit. An incomplete referral is not
  // cached.
  if (ends.size() != answer.additional.size() + 1) return;
  auto referral = dns::MessageTemplate::from(writer.finish(), ends, required);
  if (!referral) return;
  const std::uint64_t tag = tag_of(key);
  Place& place = places_[tag % kPlaces];
  const dns::Name cut = dns::Name(key.cut).folded();
  place.entry = std::make_unique<Entry>(Entry{Bytes(cut.data(), cut.data() + cut.size()), key.zone,
                                              key.data_version, std::move(*referral)});
  place.tag = tag;
}

}  // namespace pando::worker

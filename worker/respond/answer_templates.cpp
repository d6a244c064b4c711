#include "worker/respond/answer_templates.h"

#include <algorithm>
#include <utility>

#include "worker/answer/render.h"

namespace pando::worker {

AnswerTemplates::Place AnswerTemplates::place_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t kind = static_cast<std::uint64_t>(key.kind) << 1 | (key.dnssec_ok ? 1U : 0U);
  const std::uint64_t state = (key.data_version << 2 | kind) * kOdd;
  const std::uint64_t hash = ((dns::hash_name(key.name) ^ key.zone) + state) * kOdd;
  return {hash >> 32 & (kSets - 1), static_cast<std::uint32_t>(hash >> 43) | 1U};
}

const AnswerTemplates::Kept* AnswerTemplates::find(const Key& key) const noexcept {
  if (sets_.empty()) return nullptr;
  const Place place = place_of(key);
  const Set& set = sets_[place.set];
  for (std::size_t way = 0; way < kWays; ++way) {
    if (set.tags[way] != place.tag) continue;
    const Entry& entry = *set.entries[way];
    if (entry.kind == key.kind && entry.zone == key.zone && entry.dnssec_ok == key.dnssec_ok &&
        entry.data_version == key.data_version &&
        dns::NameView(entry.name.data(), entry.name.size()) == key.name)
      return &entry.kept;
  }
  return nullptr;
}

bool AnswerTemplates::wants(const Key& key) noexcept {
  if (sets_.empty()) sets_.resize(kSets);
  const Place place = place_of(key);
  Set& set = sets_[place.set];
  // The template exists but did not fit, or there is none.
  if (std::ranges::find(set.tags, place.tag) != set.tags.end()) return false;
  return std::exchange(set.missed, place.tag) == place.tag;
}

void AnswerTemplates::keep(const Key& key, const Answer& answer, const dns::Question& question) {
  Kept kept{write(answer, question), {}};
  if (key.kind == Kind::kNameError && answer.covering) {
    const ByteView owner = answer.covering.relative_owner();
    kept.proof_owner.assign(owner.begin(), owner.end());
  }
  store(key, std::move(kept));
}

std::optional<dns::MessageTemplate> AnswerTemplates::write(const Answer& answer,
                                                           const dns::Question& question) {
  space_.resize(dns::MessageTemplate::kMaxOctets + 1);
  dns::MessageWriter writer(space_, space_.size());
  writer.put_header({});
  std::vector<dns::RRsetEnd> ends;
  if (!writer.put_question(question.name, question.type, question.rr_class) ||
      render(answer, question, writer, &ends))
    return std::nullopt;
  std::size_t required = 0;
  for (const worker::Entry& entry : answer.additional)
    if (entry.need == Need::kRequired) ++required;
  // Optional RRsets are left out silently when they do not fit. An incomplete referral is no
  // template.
  if (ends.size() != answer.additional.size() + 1) return std::nullopt;
  return dns::MessageTemplate::from(writer.finish(), ends, required);
}

std::size_t AnswerTemplates::size_of(const Entry& entry) noexcept {
  const Kept& kept = entry.kept;
  return sizeof(Entry) + entry.name.capacity() + kept.proof_owner.capacity() +
         (kept.records ? kept.records->heap_bytes() : 0);
}

void AnswerTemplates::store(const Key& key, Kept kept) {
  const dns::Name name = dns::Name(key.name).folded();
  auto entry = std::make_unique<Entry>(Entry{Bytes(name.data(), name.data() + name.size()), key.kind,
                                             key.zone, key.dnssec_ok, key.data_version,
                                             std::move(kept)});
  if (sets_.empty() || bytes_ + size_of(*entry) > kMaxBytes) {
    sets_.clear();
    sets_.resize(kSets);
    bytes_ = 0;
  }
  const Place place = place_of(key);
  Set& set = sets_[place.set];
  // An empty way, else one of the zone's former state, else any.
  std::size_t victim = place.tag / 2 % kWays;
  for (std::size_t way = 0; way < kWays; ++way) {
    const Entry* old = set.entries[way].get();
    if (old != nullptr && (old->zone != key.zone || old->data_version == key.data_version)) continue;
    victim = way;
    if (old == nullptr) break;
  }
  if (set.entries[victim]) bytes_ -= size_of(*set.entries[victim]);
  bytes_ += size_of(*entry);
  set.tags[victim] = place.tag;
  set.entries[victim] = std::move(entry);
}

}  // namespace pando::worker

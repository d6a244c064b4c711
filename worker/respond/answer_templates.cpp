#include "worker/respond/answer_templates.h"

#include <memory>
#include <utility>
#include <vector>

#include "worker/answer/render.h"

namespace pando::worker {

AnswerPlace AnswerTemplates::place_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t kind = static_cast<std::uint64_t>(key.kind) << 1 | (key.dnssec_ok ? 1U : 0U);
  const std::uint64_t state = (key.data_version << 2 | kind) * kOdd;
  const std::uint64_t hash = ((dns::hash_name(key.name) ^ key.zone) + state) * kOdd;
  return AnswerPlace::of_hash(hash);
}

const AnswerTemplates::Kept* AnswerTemplates::find(const Key& key) const noexcept {
  const Entry* found = table_.find(place_of(key), [&](const Entry& entry) {
    return entry.kind == key.kind && entry.zone == key.zone && entry.dnssec_ok == key.dnssec_ok &&
           entry.data_version == key.data_version &&
           dns::NameView(entry.name.data(), entry.name.size()) == key.name;
  });
  return found == nullptr ? nullptr : &found->kept;
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

void AnswerTemplates::store(const Key& key, Kept kept) {
  const dns::Name name = dns::Name(key.name).folded();
  auto entry = std::make_unique<Entry>(Entry{Bytes(name.data(), name.data() + name.size()), key.kind,
                                             key.zone, key.dnssec_ok, key.data_version,
                                             std::move(kept)});
  table_.store(place_of(key), std::move(entry));
}

}  // namespace pando::worker

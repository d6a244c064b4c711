#include "worker/respond/answer_templates.h"

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

std::optional<AnswerTemplates::Kept> AnswerTemplates::find(const Key& key,
                                                           AnswerPlace place) const noexcept {
  const Head* found = table_.find(place, [&](const Head& head) {
    return head.kind == key.kind && head.zone == key.zone && head.dnssec_ok == key.dnssec_ok &&
           head.data_version == key.data_version &&
           dns::NameView(Table::behind(head), head.name_octets) == key.name;
  });
  if (found == nullptr) return std::nullopt;
  const std::uint8_t* const octets = Table::behind(*found) + found->template_at();
  Kept kept;
  if (found->template_octets > 0) kept.records.emplace(octets);
  kept.proof_owner = {octets + found->template_octets, found->proof_octets};
  return kept;
}

void AnswerTemplates::keep(const Key& key, const Answer& answer, const dns::Question& question) {
  const std::optional<Bytes> records = write(answer, question);
  const bool has_proof = key.kind == Kind::kNameError && answer.covering;
  store(key, records ? ByteView(*records) : ByteView(),
        has_proof ? answer.covering.relative_owner() : ByteView());
}

std::optional<Bytes> AnswerTemplates::write(const Answer& answer, const dns::Question& question) {
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
  return dns::MessageTemplate::make(writer.finish(), ends, required);
}

void AnswerTemplates::store(const Key& key, ByteView records, ByteView proof_owner) {
  const dns::Name name = dns::Name(key.name).folded();
  const Head head{.data_version = key.data_version,
                  .zone = key.zone,
                  .template_octets = static_cast<std::uint16_t>(records.size()),
                  .name_octets = static_cast<std::uint8_t>(name.size()),
                  .proof_octets = static_cast<std::uint8_t>(proof_owner.size()),
                  .kind = key.kind,
                  .dnssec_ok = key.dnssec_ok};
  static constexpr std::uint8_t kEven[1] = {0};
  const ByteView between = ByteView(kEven).first(head.template_at() - name.size());
  table_.store(place_of(key), head, {{name.data(), name.size()}, between, records, proof_owner});
}

}  // namespace pando::worker

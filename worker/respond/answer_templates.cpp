#include "worker/respond/answer_templates.h"

#include <vector>

#include "worker/answer/render.h"

namespace pando::worker {

namespace {

/// Labels right below `cut` that lead to the referral's servers.
LabelSet labels_to_servers(const Answer& answer, dns::NameView cut) {
  LabelSet labels;
  if (answer.authority.empty()) return labels;
  answer.authority[0].rrset.for_each_rdata([&](ByteView rdata) {
    if (!dns::is_wire_name(rdata)) return;
    const dns::NameView server(rdata.data(), rdata.size());
    if (server.size() == cut.size() || !server.is_at_or_below(cut)) return;
    labels.add(server.ancestor(server.label_count() - cut.label_count() - 1).data());
  });
  return labels;
}

}  // namespace

std::uint64_t LabelSet::bit_of(const std::uint8_t* label) noexcept {
  std::uint32_t hash = label[0];
  for (std::size_t i = 1; i <= label[0]; ++i) hash = hash * 31 + dns::kFoldCase[label[i]];
  return std::uint64_t{1} << (hash * 0x9E3779B9U >> 26);
}

AnswerPlace AnswerTemplates::place_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t kind = static_cast<std::uint64_t>(key.kind) << 1 | (key.dnssec_ok ? 1U : 0U);
  const std::uint64_t state = (key.data_version << 2 | kind) * kOdd;
  const std::uint64_t hash = ((dns::hash_name(key.name) ^ key.zone) + state) * kOdd;
  return AnswerPlace::of_hash(hash);
}

std::optional<AnswerTemplates::Template> AnswerTemplates::find(const Key& key,
                                                               AnswerPlace place) const noexcept {
  const Head* found = table_.find(place, [&](const Head& head) {
    return head.kind == key.kind && head.zone == key.zone && head.dnssec_ok == key.dnssec_ok &&
           head.data_version == key.data_version &&
           dns::NameView(Table::behind(head), head.name_octets) == key.name;
  });
  std::optional<Template> views;  // filled in place: a copy right after small writes waits for them
  if (found == nullptr) return views;
  const std::uint8_t* const octets = Table::behind(*found) + found->template_at();
  views.emplace();
  if (found->template_octets > 0) views->records.emplace(octets);
  views->proof_owner = {octets + found->template_octets, found->proof_octets};
  views->server_labels = found->server_labels;
  return views;
}

void AnswerTemplates::insert(const Key& key, const Answer& answer, const dns::Question& question) {
  const std::optional<Bytes> records = write(answer, question);
  const bool has_proof = key.kind == Kind::kNameError && answer.authority.size() > 1;  // SOA, NSEC
  store(key, records ? ByteView(*records) : ByteView(),
        has_proof ? answer.authority[1].owner.relative() : ByteView(),
        key.kind == Kind::kReferral ? labels_to_servers(answer, key.name) : LabelSet());
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

void AnswerTemplates::store(const Key& key, ByteView records, ByteView proof_owner,
                            LabelSet server_labels) {
  const dns::Name name = dns::Name(key.name).folded();
  const Head head{.data_version = key.data_version,
                  .server_labels = server_labels,
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

#include "worker/answer/render.h"

#include <array>
#include <functional>
#include <optional>
#include <span>

namespace pando::worker {

namespace {

using dns::MessageWriter;
using dns::NameView;
using dns::RRClass;
using dns::RRType;
using dns::Section;

/// Places of a referral's NS targets in the message: glue has these names as owners. Other answers
/// have none, and pay nothing for them.
using NsTargets = std::optional<std::array<dns::NamePlace, kMaxNsTargets>>;

/// Destination of one section of one message.
struct Target {
  MessageWriter& writer;
  Section section;
  NameView question_name;  ///< as resolve() saw it
  NsTargets& ns_targets;
};

/// Replaces a part of the question name by the same part of the writer's own copy. The writer then
/// writes a pointer without a search.
NameView in_message(NameView name, const Target& target) noexcept {
  const auto offset = name.data() - target.question_name.data();
  const bool inside =
      std::less_equal<>()(target.question_name.data(), name.data()) &&
      std::less<>()(name.data(), target.question_name.data() + target.question_name.size());
  if (!inside) return name;
  return {target.writer.question_name().data() + offset, name.size()};
}

/// The place of the entry's owner, if the message has it as an NS target.
dns::NamePlace place_of(const Entry& entry, const NsTargets& targets) noexcept {
  if (!targets || entry.ns_target == kNoNsTarget) return {};
  return (*targets)[entry.ns_target];
}

bool is_referral(const Entry& entry, const Target& target) noexcept {
  return target.section == Section::kAuthority && entry.rrset.type() == RRType::kNS;
}

bool put_data(const Entry& entry, NameView owner, const Target& target) noexcept {
  if (entry.synthesized)
    return target.writer.put_record(target.section, owner, RRType::kCNAME, RRClass::kIN, entry.ttl,
                                    entry.cname_target.bytes());
  dns::RRsetHead head{.owner = owner, .type = entry.rrset.type(), .ttl = dns::Ttl{entry.ttl}};
  head.owner_place = place_of(entry, target.ns_targets);
  std::span<dns::NamePlace> targets;
  if (is_referral(entry, target)) targets = target.ns_targets.emplace();
  return target.writer.put_rrset(
      target.section, head, [&](auto&& visit) { entry.rrset.for_each_rdata(visit); }, targets);
}

bool put_signatures(const Entry& entry, NameView owner, const Target& target) noexcept {
  std::array<std::uint8_t, 2> covered;  // RFC 4034 §3.1.1; the store leaves it out
  store_be16(covered.data(), static_cast<std::uint16_t>(entry.rrset.type()));
  return target.writer.put_rrset(
      target.section, owner, RRType::kRRSIG, RRClass::kIN, dns::Ttl{entry.ttl},
      [&](auto&& visit) { entry.rrset.for_each_signature(visit); }, covered);
}

bool has_part(const Entry& entry, Parts part) noexcept {
  return (static_cast<unsigned>(entry.parts) & static_cast<unsigned>(part)) != 0;
}

/// One RRset with its signatures; the message is unchanged when it does not fit.
bool put_entry(const Entry& entry, const Target& target) noexcept {
  const auto mark = target.writer.mark();
  dns::Name scratch;
  NameView owner;
  // A known place in the message replaces the owner name, except for signatures.
  if (!place_of(entry, target.ns_targets) || entry.rrset.signature_count() > 0)
    owner = in_message(entry.owner.name(scratch), target);
  const bool fits = (!has_part(entry, Parts::kData) || put_data(entry, owner, target)) &&
                    (!has_part(entry, Parts::kSignatures) || put_signatures(entry, owner, target));
  if (!fits) target.writer.roll_back(mark);
  return fits;
}

/// Writes the answer or authority section. Returns false at the first required RRset that does not
/// fit.
template <std::size_t kCapacity>
bool put_section(const EntryList<kCapacity>& entries, const Target& target) noexcept {
  for (const Entry& entry : entries)
    if (!put_entry(entry, target) && entry.need == Need::kRequired) return false;
  return true;
}

/// Writes the additional section, required RRsets first. The first RRset that does not fit ends the
/// section: a search for smaller ones would cost more than it gives. Returns false when that RRset
/// was required.
bool put_additional(const Answer& answer, const Target& target, std::vector<dns::RRsetEnd>* ends) {
  const auto note_end = [&] {
    if (ends != nullptr)
      ends->push_back({static_cast<std::uint16_t>(target.writer.size()),
                       target.writer.count(Section::kAdditional)});
  };
  note_end();
  for (const Entry& entry : answer.additional) {
    if (!put_entry(entry, target)) return entry.need == Need::kOptional;
    note_end();
  }
  return true;
}

/// An owner as labels in front of a name that the message has.
struct SplitOwner {
  ByteView labels;
  NameView rest;
};

/// Splits `owner` (relative to `apex`) at the longest of `encloser` and its ancestors that it ends
/// with: a name before the question's name in canonical order shares no more labels with it.
SplitOwner split_owner(ByteView owner, NameView apex, NameView encloser) noexcept {
  for (; encloser.size() > apex.size(); encloser = encloser.parent()) {
    const std::size_t octets = encloser.size() - apex.size();
    for (std::size_t at = 0; at < owner.size(); at += owner[at] + std::size_t{1})
      if (owner.size() - at == octets &&
          dns::same_octets<dns::NameCase::kIgnored>(owner.data() + at, encloser.data(), octets))
        return {owner.first(at), encloser};
  }
  return {owner, encloser};
}

}  // namespace

bool render(const Answer& answer, const dns::Question& question, MessageWriter& writer,
            std::vector<dns::RRsetEnd>* ends) {
  writer.set_rcode(answer.rcode);
  writer.set_aa(answer.aa);
  NsTargets targets;
  Target target{writer, Section::kAnswer, question.name.view(), targets};
  bool complete = put_section(answer.answer, target);
  target.section = Section::kAuthority;
  complete = complete && put_section(answer.authority, target);
  target.section = Section::kAdditional;
  complete = complete && put_additional(answer, target, ends);
  const bool truncated = !complete || answer.overflow;
  if (truncated) writer.set_tc();
  return truncated;
}

bool render_authority(const Answer& answer, const dns::Question& question, MessageWriter& writer) {
  NsTargets unused;
  return put_section(answer.authority,
                     {writer, Section::kAuthority, question.name.view(), unused}) &&
         !answer.overflow;
}

bool render_covering_nsec(const zone::RecordView& record, NameView apex, NameView encloser,
                          const dns::Question& question, MessageWriter& writer) {
  const zone::RRsetView rrset = record.find(RRType::kNSEC);
  if (!rrset) return true;  // the store is damaged
  NsTargets unused;
  const Target target{writer, Section::kAuthority, question.name.view(), unused};
  const auto [labels, rest] = split_owner(record.relative_owner(), apex, encloser);
  const auto mark = writer.mark();
  dns::RRsetHead data{.owner = in_message(rest, target), .type = rrset.type(), .ttl = rrset.ttl()};
  data.labels = labels;
  if (!writer.put_rrset(target.section, data,
                        [&](auto&& visit) { rrset.for_each_rdata(visit); }))
    return false;
  std::array<std::uint8_t, 2> covered;  // RFC 4034 §3.1.1; the store leaves it out
  store_be16(covered.data(), static_cast<std::uint16_t>(rrset.type()));
  dns::RRsetHead signatures{.owner = data.owner, .type = RRType::kRRSIG, .ttl = rrset.ttl()};
  signatures.prefix = covered;
  signatures.owner_place = data.owner_place;
  signatures.labels = labels;
  if (writer.put_rrset(target.section, signatures,
                       [&](auto&& visit) { rrset.for_each_signature(visit); }))
    return true;
  writer.roll_back(mark);
  return false;
}

}  // namespace pando::worker

#include "worker/respond/whole_answers.h"

#include <xxhash.h>

#include <algorithm>

namespace pando::worker {

ByteView WholeAnswers::Entry::records() const noexcept {
  return {Table::behind(*this) + name_octets + owner_octets, records_octets};
}

ResponseKind WholeAnswers::Entry::kind() const noexcept {
  return {kind_class, zone, {Table::behind(*this) + name_octets, owner_octets}, kind_type};
}

AnswerPlace WholeAnswers::place_of(const Key& key) noexcept {
  const std::uint64_t flags = (key.dnssec_ok ? 1U : 0U) | (key.minimal_responses ? 2U : 0U);
  const std::uint64_t seed = std::uint64_t{key.limit} << 32 |
                             std::uint64_t{static_cast<std::uint16_t>(key.type)} << 2 | flags;
  return AnswerPlace::of_hash(XXH3_64bits_withSeed(key.name.data(), key.name.size(), seed));
}

WholeAnswers::Entry* WholeAnswers::find(const Key& key, AnswerPlace place) noexcept {
  return table_.find(place, [&](const Entry& entry) {
    return entry.type == key.type && entry.limit == key.limit && entry.dnssec_ok == key.dnssec_ok &&
           entry.minimal_responses == key.minimal_responses &&
           std::ranges::equal(ByteView(Table::behind(entry), entry.name_octets), key.name.bytes());
  });
}

bool WholeAnswers::renew(Entry& entry, AnswerPlace place, const zone::ZoneView& zone,
                         std::uint64_t version) noexcept {
  if (!zone || entry.zone != zone.side_index() || entry.data_version != zone.data_version()) {
    table_.drop(place, entry);
    return false;
  }
  entry.version = version;
  entry.bookmark = zone::Bookmark(zone);
  return true;
}

void WholeAnswers::insert(const Key& key, AnswerPlace place, const Answered& answered) {
  if (answered.records.size() > kMaxOctets) return;
  const Entry entry{.version = answered.version,
                    .data_version = answered.zone.data_version(),
                    .bookmark = zone::Bookmark(answered.zone),
                    .zone = answered.zone.side_index(),
                    .counts = answered.counts,
                    .type = key.type,
                    .kind_type = answered.kind.type,
                    .limit = key.limit,
                    .only_room = answered.only_room,
                    .records_octets = static_cast<std::uint16_t>(answered.records.size()),
                    .name_octets = static_cast<std::uint8_t>(key.name.size()),
                    .owner_octets = static_cast<std::uint8_t>(answered.kind.owner.size()),
                    .rcode = static_cast<std::uint8_t>(answered.rcode),
                    .kind_class = answered.kind.response_class,
                    .dnssec_ok = key.dnssec_ok,
                    .minimal_responses = key.minimal_responses,
                    .aa = answered.aa};
  table_.store(place, entry, {key.name.bytes(), answered.kind.owner, answered.records});
}

}  // namespace pando::worker

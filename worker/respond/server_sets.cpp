#include "worker/respond/server_sets.h"

#include <utility>

#include "worker/answer/render.h"

namespace pando::worker {

namespace {

/// Whether a name in the NS RRset of `answer` is at or below the apex, the question's name.
bool has_names_in(const Answer& answer, dns::NameView apex) {
  return answer.authority[0].rrset.has_name_at_or_below(apex);
}

}  // namespace

std::size_t ServerSets::place_of(const Key& key) noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  const std::uint64_t zone = std::uint64_t{key.zone} << 33 | (key.dnssec_ok ? 1U : 0U);
  return ((zone ^ key.set ^ key.data_version << 40) * kOdd >> 40) % kPlaces;
}

const ServerSets::Template* ServerSets::find(const Key& key) const noexcept {
  if (places_.empty()) return nullptr;
  const Entry* const entry = places_[place_of(key)].entry.get();
  return entry != nullptr && entry->key == key ? &entry->made : nullptr;
}

bool ServerSets::wants(const Key& key) noexcept {
  if (places_.empty()) places_.resize(kPlaces);
  Place& place = places_[place_of(key)];
  return !place.entry || std::exchange(place.missed, key.set) == key.set;
}

const ServerSets::Template* ServerSets::insert(const Key& key, const Answer& answer,
                                               const dns::Question& question) {
  auto entry = std::make_unique<Entry>(Entry{key, {}});
  space_.resize(dns::MessageTemplate::kMaxOctets + 1);
  dns::MessageWriter writer(space_, space_.size());
  writer.put_header({});
  std::vector<dns::RRsetEnd> ends;
  const bool whole = writer.put_question(question.name, question.type, question.rr_class) &&
                     !render(answer, question, writer, &ends) &&
                     ends.size() == answer.additional.size() + 1;
  if (whole) entry->made.records = dns::ServerSetTemplate::from(writer.finish(), ends);
  entry->made.has_servers_in_zone = has_names_in(answer, question.name);
  if (places_.empty() || bytes_ + size_of(*entry) > kMaxBytes) {
    places_.clear();
    places_.resize(kPlaces);
    bytes_ = 0;
  }
  Place& place = places_[place_of(key)];
  if (place.entry) bytes_ -= size_of(*place.entry);
  bytes_ += size_of(*entry);
  place.entry = std::move(entry);
  return &place.entry->made;
}

std::size_t ServerSets::size_of(const Entry& entry) noexcept {
  return sizeof(Entry) + (entry.made.records ? entry.made.records->heap_bytes() : 0);
}

}  // namespace pando::worker

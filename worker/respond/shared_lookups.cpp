#include "worker/respond/shared_lookups.h"

#include <algorithm>
#include <utility>

#include "zone/read/fetch.h"

namespace pando::worker {

bool SharedLookups::begin(std::size_t names) noexcept {
  // A name that is found saves about ten times what seeking costs.
  constexpr std::size_t kRound = 256;
  constexpr std::size_t kFewest = kRound / 8;
  constexpr std::size_t kPause = 4096;
  if (pause_ > 0) {
    pause_ -= std::min(pause_, names);
    return false;
  }
  asked_ += names;
  if (asked_ >= kRound) {
    if (found_ < kFewest) pause_ = kPause;
    asked_ = found_ = 0;
  }
  return true;
}

void SharedLookups::fetch(const Sought& sought) const noexcept {
  if (!entries_.empty()) zone::fetch(&entries_[sought.place]);
}

const SharedLookups::Result* SharedLookups::find(const Sought& sought,
                                                 std::uint64_t version) noexcept {
  if (entries_.empty()) return nullptr;
  const Entry& entry = entries_[sought.place];
  const Key& key = sought.key;
  if (entry.version != version || entry.octets != key.name.size() ||
      entry.is_whole != key.is_whole || entry.dnssec_ok != key.dnssec_ok ||
      dns::NameView(entry.name.data(), entry.octets) != key.name)
    return nullptr;
  ++found_;
  return &entry.result;
}

bool SharedLookups::wants(const Sought& sought, AnswerTemplates::Kind kind) {
  if (sought.key.name.size() > kMaxOctets) return false;
  if (entries_.empty()) entries_.resize(kPlaces);
  std::uint16_t& missed = entries_[sought.place].missed;
  return kind == AnswerTemplates::Kind::kReferral ||
         std::exchange(missed, sought.tag) == sought.tag;
}

void SharedLookups::insert(const Sought& sought, std::uint64_t version,
                           const Result& result) noexcept {
  const Key& key = sought.key;
  Entry& entry = entries_[sought.place];
  labels_ = key.name.label_count();
  entry.version = version;
  entry.result = result;
  entry.octets = static_cast<std::uint8_t>(key.name.size());
  entry.is_whole = key.is_whole;
  entry.dnssec_ok = key.dnssec_ok;
  std::copy_n(key.name.data(), key.name.size(), entry.name.data());
}

}  // namespace pando::worker

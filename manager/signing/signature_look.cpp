#include "manager/signing/signature_look.h"

#include <algorithm>
#include <utility>

#include "dns/dnssec/derived_types.h"
#include "dns/dnssec/rrsig.h"

namespace pando::manager {

namespace {

using dns::RRType;

/// Whether the signatures of one set are those that the keys are to make: one by each key that signs
/// it. Of data, one by an old key of the same algorithm does until it is to be renewed.
class SetCheck {
 public:
  explicit SetCheck(const zone::SigningKeys& keys) {
    for (const dns::SigningKey& key : keys.all())
      keys_.push_back({key.algorithm(), key.tag(), keys.use_of(key)});
  }

  void begin(bool is_key_set) {
    is_key_set_ = is_key_set;
    for (Key& key : keys_) key.is_met = false;
    is_right_ = true;
  }
  void take(std::uint8_t algorithm, std::uint16_t tag) {
    const auto key = std::ranges::find_if(keys_, [&](const Key& one) {
      return one.algorithm == algorithm && one.tag == tag;
    });
    is_right_ = is_right_ && key != keys_.end() && (signs(*key) || may_stay(*key));
    if (!is_right_) return;
    key->is_met = true;
    has_old_ = has_old_ || !signs(*key);
  }
  [[nodiscard]] bool is_right() const {
    return is_right_ && std::ranges::all_of(keys_, [this](const Key& key) {
      return !signs(key) || key.is_met || std::ranges::any_of(keys_, [&](const Key& old) {
        return old.is_met && may_stay(old) && old.algorithm == key.algorithm;
      });
    });
  }
  [[nodiscard]] bool has_old() const noexcept { return has_old_; }

 private:
  struct Key {
    std::uint8_t algorithm;
    std::uint16_t tag;
    zone::KeyUse use;
    bool is_met = false;
  };
  [[nodiscard]] bool signs(const Key& key) const noexcept {
    return is_key_set_ ? key.use.signs_keys : key.use.signs_data;
  }
  [[nodiscard]] bool may_stay(const Key& key) const noexcept {
    return !is_key_set_ && key.use.keeps_signatures;
  }

  std::vector<Key> keys_;
  bool is_key_set_ = false;
  bool is_right_ = true;
  bool has_old_ = false;
};

class Walk {
 public:
  Walk(const zone::ZoneView& zone, const ZoneSigner& signer, const SignatureLookOptions& options)
      : zone_(zone),
        options_(options),
        denial_ttl_(denial_ttl_of(zone)),
        check_(signer.keys()) {
    if (signer.has_key_sets(zone)) return;
    look_.due.emplace_back(zone.apex());
    look_.shows_keys = false;
  }

  SignatureLook run() {
    auto cursor = zone_.begin();
    bool is_apex = true;  // the first record
    while (const zone::RecordView record = cursor.next()) take(record, std::exchange(is_apex, false));
    look_.has_old_signatures = check_.has_old();
    return std::move(look_);
  }

 private:
  void take(const zone::RecordView& record, bool is_apex) {
    bool is_due = false;
    record.for_each_rrset(
        [&](const zone::RRsetView& set) { is_due = take_set(set, is_apex) || is_due; });
    if (!is_due || look_.due.size() >= options_.max_due) return;
    dns::Name owner = zone_.owner_of(record);
    const bool is_there = !look_.due.empty() && look_.due.front() == owner;  // the apex
    if (!is_there) look_.due.push_back(std::move(owner));
  }

  /// Whether the set is to be signed anew.
  bool take_set(const zone::RRsetView& set, bool is_apex) {
    const bool is_denial = set.type() == RRType::kNSEC || set.type() == RRType::kNSEC3;
    if (set.count() != 0 && !dns::is_derived(set.type(), false))
      look_.max_ttl = std::max<std::uint64_t>(look_.max_ttl, set.ttl().seconds);
    bool is_due = is_denial && set.count() != 0 && !(set.ttl() == denial_ttl_);
    std::uint64_t last_end = 0;
    check_.begin(is_apex && zone::is_key_set(set.type()));
    set.for_each_signature([&](ByteView rest) {
      // behind the covered type
      constexpr std::size_t kExpirationAt = 6, kInceptionAt = 10, kTagAt = 14;
      if (rest.size() < kTagAt + 2) return;
      const auto end = dns::whole_time(load_be32(rest.data() + kExpirationAt), options_.now);
      const auto start = dns::whole_time(load_be32(rest.data() + kInceptionAt), options_.now);
      is_due = is_due || end < options_.due_before || start > options_.now;
      check_.take(rest[0], load_be16(rest.data() + kTagAt));
      last_end = std::max(last_end, end);
    });
    if (last_end == 0) return is_due;
    look_.first_end = look_.first_end == 0 ? last_end : std::min(look_.first_end, last_end);
    if (check_.is_right()) return is_due;
    look_.shows_keys = false;
    return true;
  }

  const zone::ZoneView& zone_;
  const SignatureLookOptions& options_;
  dns::Ttl denial_ttl_;
  SetCheck check_;
  SignatureLook look_;
};

}  // namespace

dns::Ttl denial_ttl_of(const zone::ZoneView& zone) {
  constexpr std::size_t kNumberOctets = 4;  // MINIMUM, at the end
  const zone::RRsetView soa = zone.soa();
  const ByteView rdata = soa.first_rdata();
  if (rdata.size() < kNumberOctets) return soa.ttl();
  return std::min(soa.ttl(), dns::Ttl{load_be32(rdata.data() + rdata.size() - kNumberOctets)});
}

SignatureLook look_at_signatures(const zone::ZoneView& zone, const ZoneSigner& signer,
                                 const SignatureLookOptions& options) {
  return Walk(zone, signer, options).run();
}

}  // namespace pando::manager

#include <algorithm>
#include <cstring>
#include <memory>

#include "dns/rdata.h"
#include "zone/built.h"
#include "zone/draft.h"
#include "zone/layout.h"
#include "zone/name_rules.h"
#include "zone/record_codec.h"
#include "zone/shared_sets.h"
#include "zone/trie_edit.h"

namespace pando::zone {

namespace {

/// Bump allocation for octets that live as long as the builder.
class OctetArena {
 public:
  std::uint8_t* take(std::size_t octets) {
    if (octets > room_) {
      const std::size_t size = std::max(octets, kBlockOctets);
      blocks_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(size));
      next_ = blocks_.back().get();
      room_ = size;
    }
    std::uint8_t* taken = next_;
    next_ += octets;
    room_ -= octets;
    return taken;
  }

 private:
  static constexpr std::size_t kBlockOctets = std::size_t{1} << 20;
  std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
  std::uint8_t* next_ = nullptr;
  std::size_t room_ = 0;
};

/// An owner name as collected: | u16 key length | u8 label octets | key … | labels … |.
struct Owner {
  const std::uint8_t* at = nullptr;
  [[nodiscard]] ByteView key() const { return {at + 3, load_be16(at)}; }
  [[nodiscard]] ByteView labels() const { return {at + 3 + load_be16(at), at[2]}; }
};

/// A record as collected: | u16 type | u32 ttl | u16 length | rdata |.
struct Collected {
  std::uint64_t key_start;  // first eight symbols, for a comparison without a cache miss
  Owner owner;
  const std::uint8_t* record;

  [[nodiscard]] dns::RRType type() const { return static_cast<dns::RRType>(load_be16(record)); }
  [[nodiscard]] dns::Ttl ttl() const { return {load_be32(record + 2)}; }
  [[nodiscard]] ByteView rdata() const { return {record + 8, load_be16(record + 6)}; }
};

int compare_keys(const Collected& a, const Collected& b) {
  if (a.key_start != b.key_start) return a.key_start < b.key_start ? -1 : 1;
  if (a.owner.at == b.owner.at) return 0;
  const ByteView key_a = a.owner.key();
  const ByteView key_b = b.owner.key();
  const int order = std::memcmp(key_a.data(), key_b.data(), std::min(key_a.size(), key_b.size()));
  return order != 0 ? order : static_cast<int>(key_a.size()) - static_cast<int>(key_b.size());
}

std::size_t common_prefix(ByteView a, ByteView b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < shorter && a[at] == b[at]) ++at;
  return at;
}

std::uint8_t symbol_at(ByteView key, std::size_t at) {
  return at < key.size() ? key[at] : kLabelEnd;
}

/// Canonical order; within a name the order of arrival, so that the first TTL of a set wins.
void sort_canonically(std::vector<Collected>& list) {
  const auto before = [](const Collected& a, const Collected& b) { return compare_keys(a, b) < 0; };
  if (!std::is_sorted(list.begin(), list.end(), before))
    std::stable_sort(list.begin(), list.end(), before);
}

}  // namespace

struct ZoneBuilder::Impl {
  dns::Name apex;
  OctetArena arena;
  dns::Name last_owner;
  Owner last;
  std::vector<Collected> names;
  std::vector<Collected> nsec3;

  Owner intern(dns::NameView owner);
  Status gather(std::span<const Collected> group, NameDraft& name) const;
  Status build_name(shm::Transaction& transaction, std::span<const Collected> group,
                    SharedSets& shared, Built& built, std::uint32_t& ref);
  Result<std::uint32_t> build_trie(shm::Transaction& transaction, std::vector<Collected>& list,
                                   SharedSets& shared, Built& built);
  Status share(const shm::Transaction& transaction, SharedSets& shared);
  NameDraft scratch;
  Bytes packed;
  std::uint64_t worth_sharing = kWorthSharing;
  DataLimits limits = DataLimits::none();
};

ZoneBuilder::ZoneBuilder(dns::NameView apex) : impl_(std::make_unique<Impl>()) {
  impl_->apex = dns::Name(apex);
}
ZoneBuilder::~ZoneBuilder() = default;
ZoneBuilder::ZoneBuilder(ZoneBuilder&&) noexcept = default;
ZoneBuilder& ZoneBuilder::operator=(ZoneBuilder&&) noexcept = default;

std::uint64_t ZoneBuilder::record_count() const noexcept {
  return impl_->names.size() + impl_->nsec3.size();
}

void ZoneBuilder::share_from(std::uint64_t octets) noexcept { impl_->worth_sharing = octets; }

Owner ZoneBuilder::Impl::intern(dns::NameView owner) {
  // Records of one name mostly follow each other, written the same way.
  if (last.at != nullptr && last_owner.size() == owner.size() &&
      std::memcmp(last_owner.data(), owner.data(), owner.size()) == 0)
    return last;
  const ByteView labels = relative_labels(owner, apex);
  const TrieKey key(labels);
  std::uint8_t* at = arena.take(3 + key.length() + labels.size());
  store_be16(at, static_cast<std::uint16_t>(key.length()));
  at[2] = static_cast<std::uint8_t>(labels.size());
  std::memcpy(at + 3, key.data(), key.length());
  if (!labels.empty()) std::memcpy(at + 3 + key.length(), labels.data(), labels.size());
  last_owner = dns::Name(owner);
  last = {at};
  return last;
}

Status ZoneBuilder::add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
  if (!owner.is_at_or_below(impl_->apex))
    return fail(Errc::kInvalid, "{} is outside the zone {}", dns::to_text(owner),
                dns::to_text(impl_->apex));
  if (dns::is_meta_type(type))
    return fail(Errc::kInvalid, "type {} cannot be in a zone", dns::to_text(type));
  if (rdata.size() > dns::kMaxRdataOctets)
    return fail(Errc::kInvalid, "RDATA above {} octets", dns::kMaxRdataOctets);
  Collected entry;
  entry.owner = impl_->intern(owner);
  std::uint8_t start[8] = {};
  const ByteView key = entry.owner.key();
  std::memcpy(start, key.data(), std::min<std::size_t>(key.size(), sizeof start));
  entry.key_start = load_be64(start);
  std::uint8_t* at = impl_->arena.take(8 + rdata.size());
  store_be16(at, static_cast<std::uint16_t>(type));
  store_be32(at + 2, ttl.seconds);
  store_be16(at + 6, static_cast<std::uint16_t>(rdata.size()));
  if (!rdata.empty()) std::memcpy(at + 8, rdata.data(), rdata.size());
  entry.record = at;
  (belongs_to_nsec3(type, rdata) ? impl_->nsec3 : impl_->names).push_back(entry);
  return {};
}

Status ZoneBuilder::Impl::gather(std::span<const Collected> group, NameDraft& name) const {
  name.labels = group.front().owner.labels();
  name.rrsets.clear();
  for (const Collected& entry : group) {
    const Placed placed = place(entry.type(), entry.rdata());
    RRsetDraft& rrset = name.at(placed.set);
    // RFC 2181 §5.2: one TTL per RRset; the first record says which. RFC 4034 §3: the RRSIG's TTL
    // is the set's, so it counts only while the set has no record.
    const bool first = placed.is_signature ? rrset.rdatas.empty() && rrset.signatures.empty()
                                           : rrset.rdatas.empty();
    if (first) rrset.ttl = entry.ttl();
    (placed.is_signature ? rrset.signatures : rrset.rdatas).push_back(placed.octets);
  }
  for (RRsetDraft& rrset : name.rrsets) normalise(rrset);
  if (auto ok = check_name(name, apex); !ok) return ok;
  return check_limits(NameDraft{}, name, limits, apex);
}

/// A delegation's name servers go where other delegations have the same.
Status ZoneBuilder::Impl::share(const shm::Transaction& transaction, SharedSets& shared) {
  RRsetDraft* rrset = scratch.labels.empty() ? nullptr : scratch.find(kSharedType);
  if (rrset == nullptr || rrset->rdatas.empty() || !rrset->signatures.empty()) return {};
  pack_data(*rrset, packed);
  auto ref = shared.place(packed);
  if (!ref) return pass(ref);
  if (*ref != 0) refer_to_shared(transaction.window(), *rrset, *ref);
  return {};
}

Status ZoneBuilder::Impl::build_name(shm::Transaction& transaction,
                                     std::span<const Collected> group, SharedSets& shared,
                                     Built& built, std::uint32_t& ref) {
  if (auto gathered = gather(group, scratch); !gathered) return gathered;
  if (auto placed = share(transaction, shared); !placed) return placed;
  auto written = write_record(transaction, scratch);
  if (!written) return pass(written);
  ref = *written;
  built.record_count += scratch.record_count();
  ++built.name_count;
  if (!scratch.labels.empty()) return {};
  built.note_apex(scratch, ref);
  return {};
}

Result<std::uint32_t> ZoneBuilder::Impl::build_trie(shm::Transaction& transaction,
                                                    std::vector<Collected>& list,
                                                    SharedSets& shared, Built& built) {
  sort_canonically(list);
  TrieBuilder trie(transaction);
  Owner before;
  for (auto group = list.begin(); group != list.end();) {
    const auto end = std::find_if(group, list.end(), [&](const Collected& entry) {
      return compare_keys(*group, entry) != 0;
    });
    std::uint32_t ref = 0;
    if (auto made = build_name(transaction, {group, end}, shared, built, ref); !made)
      return pass(made);
    if (!group->owner.labels().empty()) {  // the apex's record hangs on the zone entry itself
      const ByteView here = group->owner.key();
      const ByteView previous = before.at == nullptr ? ByteView{} : before.key();
      const std::size_t common = common_prefix(previous, here);
      auto added = trie.add(ref, common, symbol_at(previous, common), symbol_at(here, common));
      if (!added) return pass(added);
      before = group->owner;
    }
    group = end;
  }
  return trie.finish();
}

Result<std::shared_ptr<ZoneBuilder::Built>> ZoneBuilder::finish(shm::Transaction& transaction,
                                                                const DataLimits& limits) {
  impl_->limits = limits;
  auto built = std::make_shared<Built>();
  SharedSets shared(transaction, impl_->worth_sharing);
  auto names = impl_->build_trie(transaction, impl_->names, shared, *built);
  if (!names) return pass(names);
  if (built->apex == 0) return fail(Errc::kInvalid, "{}: no SOA record", dns::to_text(impl_->apex));
  auto nsec3 = impl_->build_trie(transaction, impl_->nsec3, shared, *built);
  if (!nsec3) return pass(nsec3);
  built->names = *names;
  built->nsec3 = *nsec3;
  built->shared = shared.pages();
  return built;
}

}  // namespace pando::zone

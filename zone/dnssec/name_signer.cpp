#include "zone/dnssec/name_signer.h"

#include <algorithm>

#include "dns/dnssec/denial_fields.h"
#include "zone/draft/collected.h"

namespace pando::zone {

using dns::RRType;

bool NameSigner::sign(const SourceName& name, Bytes& out) {
  if (name.place == Place::kOccluded) return true;
  types_.clear();
  bool done = true;
  for_each_source_set(name.record, name.is_apex,
                      [&](const RRsetView& set) { done = done && sign_set(name, set, out); });
  if (name.is_apex) done = done && put_apex_sets(name, out);
  if (!done) return false;
  return denial_.is_nsec3 ? add_link(name) : put_nsec(name, out);
}

/// RFC 4035 §2.2, §2.3: at a delegation only DS belongs to this zone, and is signed. The bitmap has
/// NS as well, and none of the other types that may stand there.
bool NameSigner::sign_set(const SourceName& name, const RRsetView& set, Bytes& out) {
  const bool is_ours = name.place == Place::kAuthoritative || set.type() == RRType::kDS;
  if (is_ours || set.type() == RRType::kNS) types_.push_back(set.type());
  if (!is_ours) return true;
  std::size_t count = 0;
  set.for_each_rdata([&](ByteView rdata) {
    if (count == rdatas_.size()) rdatas_.emplace_back();
    rdatas_[count++].assign(rdata.begin(), rdata.end());
  });
  rdatas_.resize(count);
  return sign_rdatas(name.owner, set.type(), set.ttl(), out);
}

bool NameSigner::sign_rdatas(dns::NameView owner, RRType type, dns::Ttl ttl, Bytes& out) {
  return signer_.sign(owner, type, ttl, rdatas_,
                      [&](ByteView rrsig) { append_record(out, RRType::kRRSIG, ttl, rrsig); });
}

bool NameSigner::put_apex_sets(const SourceName& name, Bytes& out) {
  return std::all_of(apex_sets_.begin(), apex_sets_.end(), [&](const MadeSet& set) {
    types_.push_back(set.type);
    rdatas_ = set.rdatas;
    for (const Bytes& rdata : rdatas_) append_record(out, set.type, set.ttl, rdata);
    return sign_rdatas(name.owner, set.type, set.ttl, out);
  });
}

/// RFC 4034 §4: the next name, and all types of this one with NSEC and its signature.
bool NameSigner::put_nsec(const SourceName& name, Bytes& out) {
  types_.push_back(RRType::kRRSIG);
  types_.push_back(RRType::kNSEC);
  std::sort(types_.begin(), types_.end());
  rdatas_.resize(1);
  Bytes& rdata = rdatas_.front();
  rdata.assign(name.next.view().bytes().begin(), name.next.view().bytes().end());
  dns::append_type_bitmap(types_, rdata);
  append_record(out, RRType::kNSEC, denial_ttl_, rdata);
  return sign_rdatas(name.owner, RRType::kNSEC, denial_ttl_, out);
}

/// RFC 5155 §7.1: the bitmap has RRSIG if a set of the name is signed, which is at a delegation DS
/// alone.
bool NameSigner::add_link(const SourceName& name) {
  const bool is_cut = name.place == Place::kCut;
  const bool has_ds = std::ranges::find(types_, RRType::kDS) != types_.end();
  if (is_cut && !has_ds && denial_.is_opt_out) return true;
  if (is_cut ? has_ds : !types_.empty()) types_.push_back(RRType::kRRSIG);
  std::sort(types_.begin(), types_.end());
  bitmap_.clear();
  dns::append_type_bitmap(types_, bitmap_);
  dns::Nsec3Hash hash{};
  if (!hasher_.hash(name.owner, denial_.iterations, denial_.salt, hash)) return false;
  links_.add(hash, bitmap_);
  return true;
}

bool NameSigner::sign_link(const Nsec3Chain& chain, std::size_t index, dns::NameView apex,
                           Bytes& out) {
  rdatas_.resize(1);
  rdatas_.front() = nsec3_rdata(denial_, chain.next(index), chain.type_bitmap(index));
  append_record(out, RRType::kNSEC3, denial_ttl_, rdatas_.front());
  return sign_rdatas(nsec3_owner(chain.hash(index), apex), RRType::kNSEC3, denial_ttl_, out);
}

}  // namespace pando::zone

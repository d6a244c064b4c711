#include "zone/dnssec/zonemd_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "dns/dnssec/zone_digest.h"
#include "dns/rdata/rdata.h"

namespace pando::zone {

using dns::RRType;

namespace {

/// The ZONEMD records of an apex that say something about its data here.
struct Digests {
  struct Promised {
    std::uint8_t hash = 0;
    Bytes digest;
  };
  std::vector<Promised> usable;
  std::string problem;  // why others are not usable, for the case that none is
};

Digests read_digests(const ZoneView& zone) {
  Digests found;
  std::map<std::uint8_t, int> uses;
  zone.apex_record().find(RRType::kZONEMD).for_each_rdata([&](ByteView rdata) {
    const auto fields = dns::parse_zonemd(rdata);
    if (!fields) return static_cast<void>(found.problem = "is cut short");
    // RFC 8976 §4 step 4: the serial must be the SOA's.
    if (fields->serial != zone.serial().value)
      return static_cast<void>(found.problem = fmt::format("is of serial {}", fields->serial));
    if (fields->scheme != dns::kZonemdSimple || !dns::ZoneDigest::make(fields->hash)) return;
    ++uses[fields->hash];
    found.usable.push_back({fields->hash, Bytes(fields->digest.begin(), fields->digest.end())});
  });
  // §2.2: several with one scheme and one hash algorithm must not be used.
  const auto before = found.usable.size();
  std::erase_if(found.usable, [&](const auto& one) { return uses[one.hash] > 1; });
  if (found.usable.size() != before) found.problem = "has two records of one scheme and hash";
  return found;
}

/// Writes records in the order and form of RFC 8976 §3.3: canonical order of the names (RFC 4034
/// §6.1), then types by number, then RDATA in canonical order. All of a zone's records count but
/// the digest itself and its signatures (§3.3.1).
class RecordStream {
 public:
  RecordStream(const ZoneView& zone, std::vector<dns::ZoneDigest>& digests)
      : zone_(zone), digests_(digests) {}

  /// False: given up.
  bool run() {
    ProgressCount progress(Progress::Phase::kChecking, zone_.name_count());
    auto names = zone_.begin();
    RecordView hashed = zone_.record_after(ZoneView::Tree::kNsec3, zone_.apex());
    dns::Name hashed_owner = owner_of(hashed);
    while (const RecordView record = names.next()) {
      progress.add();
      if (progress.is_given_up()) return false;
      const dns::Name owner = zone_.owner_of(record);
      if (record.find(RRType::kNSEC3).count() != 0) break;  // their own tree is merged in
      while (hashed && compare_canonical(hashed_owner, owner) < 0) put_hashed(hashed, hashed_owner);
      if (hashed && hashed_owner == owner) {  // an ordinary record at a hash's name
        put(owner, {record, hashed});
        next_hashed(hashed, hashed_owner);
      } else {
        put(owner, {record});
      }
    }
    while (hashed && !progress.is_given_up()) {
      progress.add();
      put_hashed(hashed, hashed_owner);
    }
    return !progress.is_given_up();
  }

 private:
  struct OneRecord {
    std::uint32_t ttl = 0;
    Bytes rdata;  // canonical
  };

  [[nodiscard]] dns::Name owner_of(const RecordView& record) const {
    return record ? zone_.owner_of(record) : dns::Name();
  }
  void next_hashed(RecordView& hashed, dns::Name& owner) {
    hashed = zone_.record_after(ZoneView::Tree::kNsec3, owner);
    owner = owner_of(hashed);
  }
  void put_hashed(RecordView& hashed, dns::Name& owner) {
    put(owner, {hashed});
    next_hashed(hashed, owner);
  }

  void put(const dns::Name& owner, std::initializer_list<RecordView> records) {
    std::map<RRType, std::vector<OneRecord>> types;
    const bool is_apex = owner == zone_.apex();
    for (const RecordView& record : records)
      record.for_each_rrset([&](const RRsetView& set) {
        if (is_apex && set.type() == RRType::kZONEMD) return;  // and its RRSIG
        collect(set, types);
      });
    const dns::Name folded = owner.folded();
    for (auto& [type, list] : types) put(folded, type, list);
  }
  static void collect(const RRsetView& set, std::map<RRType, std::vector<OneRecord>>& types) {
    const auto add = [&](RRType type, ByteView rdata) {
      OneRecord& one = types[type].emplace_back();
      one.ttl = set.ttl().seconds;
      dns::append_rdata_canonical(type, rdata, one.rdata);
    };
    set.for_each_rdata([&](ByteView rdata) { add(set.type(), rdata); });
    Bytes signature;
    set.for_each_signature([&](ByteView rest) {
      signature.clear();
      append_be16(signature, static_cast<std::uint16_t>(set.type()));
      append(signature, rest);
      add(RRType::kRRSIG, signature);
    });
  }
  void put(const dns::Name& folded, RRType type, std::vector<OneRecord>& list) {
    // RFC 4034 §6.3: RDATA in canonical form compares as octets.
    std::sort(list.begin(), list.end(),
              [](const OneRecord& a, const OneRecord& b) { return a.rdata < b.rdata; });
    for (const OneRecord& one : list) {
      octets_.clear();
      append(octets_, folded.view().bytes());
      append_be16(octets_, static_cast<std::uint16_t>(type));
      append_be16(octets_, static_cast<std::uint16_t>(dns::RRClass::kIN));
      append_be32(octets_, one.ttl);
      append_be16(octets_, static_cast<std::uint16_t>(one.rdata.size()));
      append(octets_, one.rdata);
      for (dns::ZoneDigest& digest : digests_) digest.update(octets_);
    }
  }

  ZoneView zone_;
  std::vector<dns::ZoneDigest>& digests_;
  Bytes octets_;
};

}  // namespace

bool has_zonemd(const ZoneView& zone) {
  return zone.apex_record().find(RRType::kZONEMD).count() != 0;
}

std::string check_zonemd(const ZoneView& zone) {
  const Digests promised = read_digests(zone);
  const std::string apex = to_text(zone.apex());
  if (promised.usable.empty())
    return promised.problem.empty() ? std::string()
                                    : fmt::format("{} ZONEMD {}", apex, promised.problem);
  std::vector<dns::ZoneDigest> digests;
  for (const auto& one : promised.usable) digests.push_back(std::move(*dns::ZoneDigest::make(one.hash)));
  if (!RecordStream(zone, digests).run()) return {};
  // RFC 8976 §4 step 4: one that agrees is enough.
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (digests[i].finish() == promised.usable[i].digest) return {};
  return fmt::format("{} ZONEMD is not the digest of the zone's data", apex);
}

}  // namespace pando::zone

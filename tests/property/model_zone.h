#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "dns/dnssec/nsec3_hash.h"
#include "zone/draft/draft.h"

/// A zone as a plain map, its signed form, and answers by reading RFC 1034 §4.3.2 word by word:
/// slow, without trie, store or shortcuts, so that it shares no mistake with the server.
namespace model {

using pando::Bytes;
using pando::ByteView;
using pando::dns::Name;
using pando::dns::NameView;
using pando::dns::RRType;

struct CanonicalLess {
  bool operator()(const Name& a, const Name& b) const { return compare_canonical(a, b) < 0; }
};
using Types = std::map<RRType, std::vector<Bytes>>;
using Random = std::mt19937;

inline Name child(const std::string& label, NameView parent) {
  Bytes wire{static_cast<std::uint8_t>(label.size())};
  wire.insert(wire.end(), label.begin(), label.end());
  return *Name::join(wire, parent);
}
inline Name star(NameView parent) { return child("*", parent); }
inline Bytes wire(NameView name) { return {name.data(), name.data() + name.size()}; }
inline bool is_below(NameView name, NameView other) {
  return !(name == other) && name.is_at_or_below(other);
}

struct Zone {
  Name apex;
  std::map<Name, Types, CanonicalLess> nodes;

  [[nodiscard]] bool has(NameView name, RRType type) const {
    const auto node = nodes.find(Name(name));
    return node != nodes.end() && node->second.contains(type);
  }
  [[nodiscard]] bool is_cut(NameView name) const {
    return !(name == apex.view()) && has(name, RRType::kNS);
  }
  /// Owns records, or something below does.
  [[nodiscard]] bool exists(NameView name) const {
    for (const auto& [owner, types] : nodes)
      if (owner.view().is_at_or_below(name)) return true;
    return false;
  }
  /// The topmost proper ancestor that is a cut or owns DNAME.
  [[nodiscard]] std::optional<Name> barrier(NameView name) const {
    std::optional<Name> found;
    for (NameView n = name; !(n == apex.view());) {
      n = n.parent();
      if (is_cut(n) || has(n, RRType::kDNAME)) found = Name(n);
    }
    return found;
  }
  [[nodiscard]] Name closest_encloser(NameView name) const {
    while (!exists(name)) name = name.parent();
    return Name(name);
  }
};

enum class End { kData, kNoData, kNameError, kReferral, kOutside, kStopped, kTooLong };

struct Outcome {
  End end = End::kStopped;
  Name last;              ///< the name that it ended with
  Name cut;               ///< of a referral
  bool wildcard = false;  ///< `last` does not exist and the wildcard below `encloser` was looked at
  Name encloser;
  std::vector<std::pair<Name, Name>> synthesized;  ///< names that wildcards answered, enclosers
};

/// Answers with at most `max_names` names of a chain.
inline Outcome answer(const Zone& zone, const Name& question, RRType type, std::size_t max_names) {
  Outcome out;
  std::set<Name, CanonicalLess> visited;
  out.last = question;
  for (std::size_t names = 0; names < max_names; ++names) {
    visited.insert(out.last);
    Name target;
    out.wildcard = false;
    if (const auto barrier = zone.barrier(out.last)) {
      if (zone.is_cut(*barrier)) return out.end = End::kReferral, out.cut = *barrier, out;
      const Bytes& rdata = zone.nodes.at(*barrier).at(RRType::kDNAME)[0];
      const auto made = Name::join({out.last.data(), out.last.size() - barrier->size()},
                                   NameView(rdata.data(), rdata.size()));
      if (!made) return out.end = End::kTooLong, out;
      if (type == RRType::kCNAME) return out.end = End::kData, out;
      target = *made;
    } else {
      Name source = out.last;
      if (!zone.exists(source)) {
        out.encloser = zone.closest_encloser(source);
        source = star(out.encloser);
        if (!zone.exists(source)) return out.end = End::kNameError, out;
        out.wildcard = true;
      } else if (zone.is_cut(source) && type != RRType::kDS) {
        return out.end = End::kReferral, out.cut = source, out;
      }
      const bool data = zone.has(source, type);
      if (!data && !zone.has(source, RRType::kCNAME)) return out.end = End::kNoData, out;
      if (out.wildcard) out.synthesized.emplace_back(out.last, out.encloser);
      if (data) return out.end = End::kData, out;
      const Bytes& rdata = zone.nodes.at(source).at(RRType::kCNAME)[0];
      target = Name(NameView(rdata.data(), rdata.size()));
    }
    if (!target.view().is_at_or_below(zone.apex)) return out.end = End::kOutside, out;
    out.last = target;
    if (visited.contains(target)) break;
  }
  out.end = End::kStopped;
  return out;
}

/// Small zones in which everything meets: cuts, aliases, wildcards, odd octets, names below
/// barriers.
class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  Zone make() {
    Zone zone;
    zone.apex = *Name::from_text("z.");
    Types& apex = zone.nodes[zone.apex];
    apex[RRType::kSOA] = {soa()};
    apex[RRType::kNS] = {wire(*Name::from_text("ns.elsewhere."))};
    if (pick(20) == 0) apex[RRType::kDNAME] = {wire(target(zone.apex))};
    const unsigned names = 2 + pick(12);
    for (unsigned i = 0; i < names; ++i) add_node(zone);
    return zone;
  }

  /// A name in the zone that may or may not exist.
  Name name(NameView apex, unsigned max_depth) {
    static const std::vector<std::string> kLabels = {
        "a", "b", "c", "*", std::string(1, '\0'), std::string("a\0", 2), "B", "zz"};
    Name made(apex);
    for (unsigned depth = 1 + pick(max_depth); depth > 0; --depth)
      made = child(kLabels[pick(static_cast<unsigned>(kLabels.size()))], made);
    return made;
  }
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

 private:
  static Bytes soa() {
    Bytes rdata = wire(*Name::from_text("ns.elsewhere."));
    const Bytes mail = wire(*Name::from_text("h.elsewhere."));
    rdata.insert(rdata.end(), mail.begin(), mail.end());
    for (const std::uint32_t value : {1U, 3600U, 600U, 86400U, 300U})
      pando::append_be32(rdata, value);
    return rdata;
  }

  static Bytes ds() {  // tag 1, ECDSA, SHA-256
    Bytes rdata{0, 1, 13, 2};
    rdata.resize(4 + 32);
    return rdata;
  }

  Name target(NameView apex) {
    return pick(8) == 0 ? *Name::from_text("x.elsewhere.") : name(apex, 2);
  }

  void add_node(Zone& zone) {
    const Name owner = name(zone.apex, 3);
    if (zone.nodes.contains(owner)) return;
    Types& types = zone.nodes[owner];
    switch (pick(10)) {
      case 0:
      case 1:
        if (owner.view().is_wildcard()) return add_data(types);  // undefined: RFC 4592 §4.2
        types[RRType::kNS] = {wire(child("ns", owner))};
        if (pick(2) == 0) types[RRType::kDS] = {ds()};
        return;
      case 2:
      case 3:
        types[RRType::kCNAME] = {wire(target(zone.apex))};
        return;
      case 4:
        types[RRType::kDNAME] = {wire(target(zone.apex))};
        return;
      default:
        add_data(types);
    }
  }

  void add_data(Types& types) {
    types[RRType::kTXT] = {Bytes{1, 'x'}};
    if (pick(2) == 0) types[RRType::kA] = {Bytes{192, 0, 2, 1}, Bytes{192, 0, 2, 2}};
  }

  Random& random_;
};

}  // namespace model

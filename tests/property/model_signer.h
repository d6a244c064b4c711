#pragma once

#include "tests/property/model_zone.h"
#include "zone/builder/zone_builder.h"

namespace model {

/// How a zone is signed.
struct Signing {
  bool nsec3 = false;
  bool opt_out = false;
  std::uint16_t iterations = 0;
  Bytes salt;
  unsigned foreign = 0;  ///< NSEC3 records of another chain that stand between this one's
};

inline std::string base32hex(const pando::dns::Nsec3Hash& hash) {
  std::string text;
  for (std::size_t bit = 0; bit < hash.size() * 8; bit += 5) {
    unsigned value = 0;
    for (std::size_t i = bit; i < bit + 5; ++i)
      value = value << 1 | (hash[i / 8] >> (7 - i % 8) & 1U);
    text += "0123456789abcdefghijklmnopqrstuv"[value];
  }
  return text;
}

inline pando::dns::Nsec3Hash hash_of(NameView name, const Signing& signing) {
  static pando::dns::Nsec3Hasher hasher;
  pando::dns::Nsec3Hash hash{};
  if (!hasher.hash(name, signing.iterations, signing.salt, hash)) std::abort();
  return hash;
}

/// Adds the zone's records with signatures (of no value) and the denial chain to a builder.
class Signer {
 public:
  Signer(const Zone& zone, const Signing& signing) : zone_(zone), signing_(signing) {}

  pando::Status fill(pando::zone::ZoneBuilder& builder) {
    for (const auto& [owner, types] : zone_.nodes) {
      for (const auto& [type, rdatas] : types)
        put(builder, owner, type, rdatas, is_authoritative(owner, type));
    }
    signing_.nsec3 ? put_nsec3(builder) : put_nsec(builder);
    return status_;
  }

 private:
  [[nodiscard]] bool is_authoritative(const Name& owner, RRType type) const {
    return !zone_.barrier(owner) && (!zone_.is_cut(owner) || type == RRType::kDS);
  }

  void put(pando::zone::ZoneBuilder& builder, const Name& owner, RRType type,
           const std::vector<Bytes>& rdatas, bool sign) {
    for (const Bytes& rdata : rdatas) add(builder, owner, type, rdata);
    if (sign) add(builder, owner, RRType::kRRSIG, signature(owner, type));
  }

  void add(pando::zone::ZoneBuilder& builder, const Name& owner, RRType type, const Bytes& rdata) {
    const auto status = builder.add(owner, type, {3600}, rdata);
    if (!status) status_ = status;
  }

  /// RFC 4034 §3.1; labels do not count the asterisk (§3.1.3).
  [[nodiscard]] Bytes signature(const Name& owner, RRType type) const {
    Bytes rdata;
    pando::append_be16(rdata, static_cast<std::uint16_t>(type));
    rdata.push_back(13);
    const bool wildcard = owner.view().is_wildcard();
    rdata.push_back(static_cast<std::uint8_t>(owner.view().label_count() - (wildcard ? 1 : 0)));
    for (const std::uint32_t value : {3600U, 2000000000U, 1000000000U})
      pando::append_be32(rdata, value);
    pando::append_be16(rdata, 1);
    const Bytes signer = wire(zone_.apex);
    rdata.insert(rdata.end(), signer.begin(), signer.end());
    rdata.insert(rdata.end(), {1, 2, 3});
    return rdata;
  }

  /// Types at a name as a bitmap of window 0 (RFC 4034 §4.1.2).
  [[nodiscard]] static Bytes bitmap(const std::set<RRType>& types) {
    Bytes bits;
    for (const RRType type : types) {
      const auto value = static_cast<std::size_t>(type);
      if (bits.size() < value / 8 + 1) bits.resize(value / 8 + 1);
      bits[value / 8] |= static_cast<std::uint8_t>(0x80 >> value % 8);
    }
    if (bits.empty()) return {};
    Bytes out{0, static_cast<std::uint8_t>(bits.size())};
    out.insert(out.end(), bits.begin(), bits.end());
    return out;
  }

  [[nodiscard]] std::set<RRType> types_at(const Name& owner) const {
    std::set<RRType> types;
    const auto node = zone_.nodes.find(owner);
    if (node == zone_.nodes.end()) return types;  // empty non-terminal
    for (const auto& [type, rdatas] : node->second) {
      types.insert(type);
      if (is_authoritative(owner, type)) types.insert(RRType::kRRSIG);
    }
    if (signing_.nsec3 && owner.view() == zone_.apex.view()) types.insert(RRType::kNSEC3PARAM);
    return types;
  }

  void put_nsec(pando::zone::ZoneBuilder& builder) {
    std::vector<Name> owners;
    for (const auto& [owner, types] : zone_.nodes)
      if (!zone_.barrier(owner)) owners.push_back(owner);
    for (std::size_t i = 0; i < owners.size(); ++i) {
      auto types = types_at(owners[i]);
      types.insert({RRType::kRRSIG, RRType::kNSEC});
      Bytes rdata = wire(owners[(i + 1) % owners.size()]);
      const Bytes bits = bitmap(types);
      rdata.insert(rdata.end(), bits.begin(), bits.end());
      put(builder, owners[i], RRType::kNSEC, {rdata}, true);
    }
  }

  /// Names that get an NSEC3 (RFC 5155 §7.1): authoritative names and cuts, but no insecure ones
  /// under opt-out, and the empty non-terminals above those that do.
  [[nodiscard]] std::set<Name, CanonicalLess> hashed_names() const {
    std::set<Name, CanonicalLess> names;
    for (const auto& [owner, types] : zone_.nodes) {
      const bool insecure = zone_.is_cut(owner) && !types.contains(RRType::kDS);
      if (zone_.barrier(owner) || (signing_.opt_out && insecure)) continue;
      for (NameView name = owner; is_below(name, zone_.apex); name = name.parent())
        names.insert(Name(name));
    }
    names.insert(zone_.apex);
    return names;
  }

  void put_nsec3(pando::zone::ZoneBuilder& builder) {
    std::map<pando::dns::Nsec3Hash, Name> chain;
    for (const Name& name : hashed_names()) chain[hash_of(name, signing_)] = name;
    for (auto link = chain.begin(); link != chain.end(); ++link) {
      const auto next = std::next(link) == chain.end() ? chain.begin() : std::next(link);
      Bytes rdata = parameters(signing_.opt_out ? 1 : 0);
      rdata.push_back(static_cast<std::uint8_t>(next->first.size()));
      rdata.insert(rdata.end(), next->first.begin(), next->first.end());
      const Bytes bits = bitmap(types_at(link->second));
      rdata.insert(rdata.end(), bits.begin(), bits.end());
      put(builder, child(base32hex(link->first), zone_.apex), RRType::kNSEC3, {rdata}, true);
    }
    put(builder, zone_.apex, RRType::kNSEC3PARAM, {parameters(0)}, true);
    put_foreign_nsec3(builder);
  }

  /// A chain that is being built with other parameters, and that no NSEC3PARAM speaks of yet
  /// (RFC 5155 §10.4).
  void put_foreign_nsec3(pando::zone::ZoneBuilder& builder) {
    const Signing other{true, false, static_cast<std::uint16_t>(signing_.iterations + 1), {7}, 0};
    for (unsigned i = 0; i < signing_.foreign; ++i) {
      const auto hash = hash_of(child("foreign" + std::to_string(i), zone_.apex), other);
      Bytes rdata{1, 0, 0, static_cast<std::uint8_t>(other.iterations), 1, 7, 20};
      rdata.insert(rdata.end(), hash.begin(), hash.end());
      put(builder, child(base32hex(hash), zone_.apex), RRType::kNSEC3, {rdata}, true);
    }
  }

  [[nodiscard]] Bytes parameters(std::uint8_t flags) const {
    Bytes rdata{1, flags};
    pando::append_be16(rdata, signing_.iterations);
    rdata.push_back(static_cast<std::uint8_t>(signing_.salt.size()));
    rdata.insert(rdata.end(), signing_.salt.begin(), signing_.salt.end());
    return rdata;
  }

  const Zone& zone_;
  const Signing& signing_;
  pando::Status status_;
};

}  // namespace model

#pragma once

#include <algorithm>

#include "tests/property/model_signer.h"

/// What a validator concludes from NSEC and NSEC3 records (RFC 4035 §5.4, RFC 5155 §8, RFC 6840
/// §4.1). It knows only the records of a response, not the zone.
namespace model {

inline std::set<RRType> read_bitmap(ByteView bits) {
  std::set<RRType> types;
  if (bits.size() < 2) return types;
  for (std::size_t i = 0; i < bits[1] * 8U; ++i)
    if (bits[2 + i / 8] & (0x80 >> i % 8)) types.insert(static_cast<RRType>(i));
  return types;
}

/// NSEC of a cut, or of a DNAME: says nothing about names below (RFC 6840 §4.1).
inline bool hides_below(const std::set<RRType>& types) {
  return types.contains(RRType::kDNAME) ||
         (types.contains(RRType::kNS) && !types.contains(RRType::kSOA));
}
inline bool lacks(const std::set<RRType>& types, RRType type) {
  const bool cut = types.contains(RRType::kNS) && !types.contains(RRType::kSOA);
  return !types.contains(type) && !types.contains(RRType::kCNAME) && (!cut || type == RRType::kDS);
}

class Proof {
 public:
  virtual ~Proof() = default;
  [[nodiscard]] virtual bool no_data(NameView name, RRType type) const = 0;
  [[nodiscard]] virtual bool name_error(NameView name) const = 0;
  [[nodiscard]] virtual bool wildcard_no_data(NameView name, RRType type) const = 0;
  /// No name between `encloser` and `name` exists.
  [[nodiscard]] virtual bool no_closer_match(NameView name, NameView encloser) const = 0;
};

class NsecProof : public Proof {
 public:
  explicit NsecProof(Name apex) : apex_(apex) {}

  void add(const Name& owner, ByteView rdata) {
    const std::size_t size = pando::dns::wire_name_length(rdata);
    records_.push_back(
        {owner, Name(NameView(rdata.data(), size)), read_bitmap(rdata.subspan(size))});
  }

  [[nodiscard]] bool no_data(NameView name, RRType type) const override {
    return any([&](const Nsec& nsec) {
      if (nsec.owner == name) return lacks(nsec.types, type);
      return covers(nsec, name) && is_below(nsec.next, name);  // an empty non-terminal
    });
  }
  [[nodiscard]] bool name_error(NameView name) const override {
    return any([&](const Nsec& nsec) {
      return denies(nsec, name) && denied(star(encloser_by(nsec, name)));
    });
  }
  [[nodiscard]] bool wildcard_no_data(NameView name, RRType type) const override {
    return any([&](const Nsec& nsec) {
      return denies(nsec, name) && no_data(star(encloser_by(nsec, name)), type);
    });
  }
  [[nodiscard]] bool no_closer_match(NameView name, NameView encloser) const override {
    return any([&](const Nsec& nsec) {
      return denies(nsec, name) && encloser_by(nsec, name) == encloser;
    });
  }

 private:
  struct Nsec {
    Name owner, next;
    std::set<RRType> types;
  };
  template <class Test>
  [[nodiscard]] bool any(Test&& test) const {
    return std::any_of(records_.begin(), records_.end(), test);
  }
  [[nodiscard]] bool covers(const Nsec& nsec, NameView name) const {
    if (compare_canonical(nsec.owner, name) >= 0) return false;
    if (is_below(name, nsec.owner) && hides_below(nsec.types)) return false;
    return nsec.next == apex_ || compare_canonical(name, nsec.next) < 0;
  }
  [[nodiscard]] bool denies(const Nsec& nsec, NameView name) const {
    return covers(nsec, name) && !is_below(nsec.next, name);
  }
  [[nodiscard]] bool denied(const Name& name) const {
    return any([&](const Nsec& nsec) { return denies(nsec, name); });
  }
  /// The longest ancestor of `name` that owner or next show to exist.
  [[nodiscard]] static Name encloser_by(const Nsec& nsec, NameView name) {
    NameView n = name.parent();
    while (!nsec.owner.view().is_at_or_below(n) && !nsec.next.view().is_at_or_below(n))
      n = n.parent();
    return Name(n);
  }

  Name apex_;
  std::vector<Nsec> records_;
};

class Nsec3Proof : public Proof {
 public:
  Nsec3Proof(Name apex, const Signing& signing) : apex_(apex), signing_(signing) {}

  void add(const Name& owner, ByteView rdata) {
    Nsec3 nsec3;
    nsec3.owner.assign(reinterpret_cast<const char*>(owner.data()) + 1, owner.data()[0]);
    nsec3.opt_out = (rdata[1] & 1) != 0;
    const std::size_t at = 5U + rdata[4];
    pando::dns::Nsec3Hash next{};
    std::copy_n(rdata.begin() + static_cast<std::ptrdiff_t>(at + 1), next.size(), next.begin());
    nsec3.next = base32hex(next);
    nsec3.types = read_bitmap(rdata.subspan(at + 1 + next.size()));
    records_.push_back(nsec3);
  }

  [[nodiscard]] bool no_data(NameView name, RRType type) const override {
    if (const Nsec3* nsec3 = match(name)) return lacks(nsec3->types, type);
    const auto encloser = closest_encloser(name);
    return encloser &&
           encloser->opt_out;  // RFC 5155 §8.6, and empty non-terminals (RFC 5155 errata)
  }
  [[nodiscard]] bool name_error(NameView name) const override {
    const auto encloser = closest_encloser(name);
    if (!encloser) return false;
    const Name wildcard = star(encloser->name);
    // In an opt-out span the encloser may be further up than the zone's, where a wildcard may
    // stand.
    return cover(wildcard) != nullptr || (encloser->opt_out && match(wildcard) != nullptr);
  }
  [[nodiscard]] bool wildcard_no_data(NameView name, RRType type) const override {
    const auto encloser = closest_encloser(name);
    if (!encloser) return false;
    const Name wildcard = star(encloser->name);
    if (const Nsec3* nsec3 = match(wildcard)) return lacks(nsec3->types, type);
    return encloser->opt_out;  // the span may hide the wildcard, or a closer encloser with its own
  }
  [[nodiscard]] bool no_closer_match(NameView name, NameView encloser) const override {
    return cover(name.ancestor(name.label_count() - encloser.label_count() - 1)) != nullptr;
  }

 private:
  struct Nsec3 {
    std::string owner, next;  // base32hex sorts as the hashes do
    bool opt_out = false;
    std::set<RRType> types;
  };
  struct Encloser {
    Name name;
    bool opt_out;
  };

  [[nodiscard]] const Nsec3* match(NameView name) const {
    const std::string hash = base32hex(hash_of(name, signing_));
    for (const Nsec3& nsec3 : records_)
      if (nsec3.owner == hash) return &nsec3;
    return nullptr;
  }
  [[nodiscard]] const Nsec3* cover(NameView name) const {
    const std::string hash = base32hex(hash_of(name, signing_));
    for (const Nsec3& nsec3 : records_) {
      const bool last = nsec3.next <= nsec3.owner;
      const bool after = nsec3.owner < hash, before = hash < nsec3.next;
      if (last ? after || before : after && before) return &nsec3;
    }
    return nullptr;
  }
  /// RFC 5155 §8.3.
  [[nodiscard]] std::optional<Encloser> closest_encloser(NameView name) const {
    for (NameView next_closer = name; is_below(next_closer, apex_);
         next_closer = next_closer.parent()) {
      const Nsec3* encloser = match(next_closer.parent());
      if (encloser == nullptr) continue;
      const Nsec3* covering = cover(next_closer);
      if (covering == nullptr || hides_below(encloser->types)) return std::nullopt;
      return Encloser{Name(next_closer.parent()), covering->opt_out};
    }
    return std::nullopt;
  }

  Name apex_;
  Signing signing_;
  std::vector<Nsec3> records_;
};

}  // namespace model

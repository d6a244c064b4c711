#include <algorithm>

#include "worker/answer/denial.h"

namespace pando::worker::nsec3 {

namespace {

using dns::NameView;

/// The NSEC3 that proves something about a name: by the name's own hash (`matches`), or by covering
/// that hash.
struct Finding {
  zone::RecordView record;
  bool matches = false;
};

/// Hashes of existing names, and of wildcards directly below them, are needed repeatedly and are
/// remembered. Other names may be a client's random labels, whose hashes are not worth remembering.
enum class Asked { kOfZone, kMadeUp };

/// Finds and adds the NSEC3 records of one answer.
class Prover {
 public:
  explicit Prover(Walk& walk) noexcept : walk_(walk), parameters_(walk.zone.nsec3_parameters()) {}

  [[nodiscard]] Finding find(NameView name, Asked asked) noexcept {
    dns::Nsec3Hash hash;
    const auto& [algorithm, iterations, salt] = parameters_;
    const bool hashed = asked == Asked::kOfZone
                            ? walk_.hasher.hash_and_remember(name, iterations, salt, hash)
                            : walk_.hasher.hash(name, iterations, salt, hash);
    Finding finding;
    if (!hashed) return finding;
    finding.record = walk_.zone.nsec3_match_or_cover(hash, finding.matches);
    if (!finding.record) finding.record = cover_by_links(hash);
    return finding;
  }

  void add(const Finding& finding) noexcept {
    add_denial(walk_, finding.record, dns::RRType::kNSEC3);
  }

  /// The name one label longer than `encloser` on the way to the walk's name (RFC 5155 §1.3).
  [[nodiscard]] NameView next_closer_name(NameView encloser) const noexcept {
    return walk_.name.ancestor(walk_.name.label_count() - encloser.label_count() - 1);
  }

  /// The closest encloser proof (RFC 5155 §7.2.1) for the `encloser` that the lookup found. Returns
  /// the provable encloser.
  NameView prove_closest_encloser(NameView encloser) noexcept {
    const NameView next_closer = next_closer_name(encloser);
    return prove_closest_encloser_above(next_closer, find(next_closer, Asked::kMadeUp));
  }

  /// Proves the closest *provable* encloser of `next_closer`, and that next_closer, one label
  /// longer, does not exist. `covering` is the finding for next_closer.
  /// Under opt-out an existing name may have no NSEC3: an insecure delegation, or an empty
  /// non-terminal that leads only to such delegations. Then the walk goes up: the unprovable name
  /// becomes the next closer name, covered by an opt-out span. At most one step a label.
  NameView prove_closest_encloser_above(NameView next_closer, Finding covering) noexcept {
    NameView encloser = next_closer.parent();
    Finding finding = find(encloser, Asked::kOfZone);
    while (!finding.matches && encloser.size() > walk_.apex.size()) {
      covering = finding;
      encloser = encloser.parent();
      finding = find(encloser, Asked::kOfZone);
    }
    add(finding);
    add(covering);
    return encloser;
  }

 private:
  /// While parameters change, two chains are mixed in one zone (RFC 5155 §10.4). The records of the
  /// chain in use may then be too sparse for the zone's own search. This search follows the chain's
  /// links from the apex, which is part of every chain.
  [[nodiscard]] zone::RecordView cover_by_links(const dns::Nsec3Hash& hash) noexcept {
    dns::Nsec3Hash at;
    const auto& [algorithm, iterations, salt] = parameters_;
    if (!walk_.hasher.hash_and_remember(walk_.apex, iterations, salt, at)) return {};
    for (unsigned link = 0; link < kMaxLinks; ++link) {
      const zone::RecordView record = walk_.zone.nsec3_at(at);
      dns::Nsec3Hash next;
      if (!record || !read_next_hash(record, next)) return {};
      const bool last = next <= at;
      if (last ? hash > at || hash < next : hash > at && hash < next) return record;
      at = next;
    }
    return {};
  }

  /// Next Hashed Owner Name (RFC 5155 §3.1.7).
  static bool read_next_hash(const zone::RecordView& record, dns::Nsec3Hash& next) noexcept {
    const ByteView rdata = find_data(record, dns::RRType::kNSEC3).first_rdata();
    const std::size_t at = rdata.size() > 4 ? 5U + rdata[4] : rdata.size();
    if (rdata.size() < at + 1 + next.size() || rdata[at] != next.size()) return false;
    std::copy_n(rdata.begin() + static_cast<std::ptrdiff_t>(at) + 1, next.size(), next.begin());
    return true;
  }

  static constexpr unsigned kMaxLinks = 1024;
  Walk& walk_;
  const zone::Nsec3Parameters parameters_;
};

}  // namespace

// RFC 5155 §7.2.2: the closest encloser proof, and an NSEC3 that covers the wildcard below it.
void prove_name_error(Walk& walk, NameView closest_encloser) noexcept {
  Prover prover(walk);
  const NameView provable = prover.prove_closest_encloser(closest_encloser);
  prover.add(prover.find(wildcard_of(provable), Asked::kOfZone));
}

// RFC 5155 §7.2.3: the NSEC3 of the name. §7.2.4, §7.2.7: without one, the closest provable
// encloser proof, whose covering NSEC3 has Opt-Out set.
void prove_nodata(Walk& walk, NameView name) noexcept {
  Prover prover(walk);
  const Finding finding = prover.find(name, Asked::kOfZone);
  if (finding.matches || name.size() <= walk.apex.size())
    prover.add(finding);
  else
    prover.prove_closest_encloser_above(name, finding);
}

// RFC 5155 §7.2.5: the closest encloser proof, and the NSEC3 of the wildcard. When opt-out hides
// the encloser, the span is the proof and the wildcard's NSEC3 is left out. A validator would
// expect the wildcard below the provable encloser, which is a different name.
void prove_wildcard_nodata(Walk& walk, NameView closest_encloser) noexcept {
  Prover prover(walk);
  const NameView provable = prover.prove_closest_encloser(closest_encloser);
  if (provable.size() == closest_encloser.size())
    prover.add(prover.find(wildcard_of(closest_encloser), Asked::kOfZone));
}

// RFC 5155 §7.2.6: only the next closer name, since the signature's label count implies the
// encloser.
void prove_wildcard_answer(Walk& walk, NameView closest_encloser) noexcept {
  Prover prover(walk);
  prover.add(prover.find(prover.next_closer_name(closest_encloser), Asked::kMadeUp));
}

}  // namespace pando::worker::nsec3

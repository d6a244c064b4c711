#include "worker/answer/denial.h"

namespace pando::worker::nsec3 {

namespace {

/// The NSEC3 that says something about a name: by its own hash (`matches`), or by covering it.
struct Finding {
  zone::RecordView record;
  bool matches = false;
};

enum class Asked { kOfZone, kMadeUp };

/// `kind`: names that exist, and wildcards below them, are asked about again and again; the rest
/// may be a client's random label, which is not worth remembering.
Finding find_nsec3(Walk& walk, dns::NameView name, Asked kind) noexcept {
  const zone::Nsec3Parameters parameters = walk.zone.nsec3_parameters();
  dns::Nsec3Hash hash;
  const bool hashed =
      kind == Asked::kOfZone
          ? walk.hasher.hash_and_remember(name, parameters.iterations, parameters.salt, hash)
          : walk.hasher.hash(name, parameters.iterations, parameters.salt, hash);
  Finding finding;
  if (hashed) finding.record = walk.zone.nsec3_match_or_cover(hash, finding.matches);
  return finding;
}

void add(Walk& walk, const Finding& finding) noexcept {
  add_denial(walk, finding.record, dns::RRType::kNSEC3);
}

/// RFC 5155 §7.2.1: proves the closest *provable* encloser of `next_closer` and that next_closer,
/// one label longer, does not exist. Under opt-out an existing name may have no NSEC3 (an insecure
/// delegation, or an empty non-terminal that leads only to such): then the walk goes up, and what
/// was not provable becomes the next closer name, covered by an opt-out span. `covering` says what
/// is known of next_closer. Returns the provable encloser. At most one step a label.
dns::NameView prove_closest_encloser_above(Walk& walk, dns::NameView next_closer,
                                           Finding covering) noexcept {
  dns::NameView encloser = next_closer.parent();
  Finding finding = find_nsec3(walk, encloser, Asked::kOfZone);
  while (!finding.matches && encloser.size() > walk.apex.size()) {
    covering = finding;
    encloser = encloser.parent();
    finding = find_nsec3(walk, encloser, Asked::kOfZone);
  }
  add(walk, finding);
  add(walk, covering);
  return encloser;
}

/// The name one label longer than `encloser` on the way to the walk's name (RFC 5155 §1.3).
dns::NameView next_closer_name(const Walk& walk, dns::NameView encloser) noexcept {
  return walk.name.ancestor(walk.name.label_count() - encloser.label_count() - 1);
}

/// The closest encloser proof, where the lookup found `encloser`.
dns::NameView prove_closest_encloser(Walk& walk, dns::NameView encloser) noexcept {
  const dns::NameView next_closer = next_closer_name(walk, encloser);
  return prove_closest_encloser_above(walk, next_closer,
                                      find_nsec3(walk, next_closer, Asked::kMadeUp));
}

}  // namespace

// RFC 5155 §7.2.2: the closest encloser proof, and an NSEC3 that covers the wildcard below it.
void prove_name_error(Walk& walk, dns::NameView closest_encloser) noexcept {
  const dns::NameView provable = prove_closest_encloser(walk, closest_encloser);
  add(walk, find_nsec3(walk, wildcard_of(provable), Asked::kOfZone));
}

// RFC 5155 §7.2.3: the NSEC3 of the name. §7.2.4, §7.2.7: without one, the closest
// provable encloser proof, whose covering NSEC3 has Opt-Out set.
void prove_nodata(Walk& walk, dns::NameView name) noexcept {
  const Finding finding = find_nsec3(walk, name, Asked::kOfZone);
  if (finding.matches || name.size() <= walk.apex.size())
    add(walk, finding);
  else
    prove_closest_encloser_above(walk, name, finding);
}

// RFC 5155 §7.2.5: the closest encloser proof, and the NSEC3 of the wildcard. When opt-out hides
// the encloser, the span is the proof, and no wildcard is spoken of: to a validator it would have
// to be the one below the provable encloser, which is another.
void prove_wildcard_nodata(Walk& walk, dns::NameView closest_encloser) noexcept {
  const dns::NameView provable = prove_closest_encloser(walk, closest_encloser);
  if (provable.size() == closest_encloser.size())
    add(walk, find_nsec3(walk, wildcard_of(closest_encloser), Asked::kOfZone));
}

// RFC 5155 §7.2.6: only the next closer name: the encloser follows from the signature's labels.
void prove_wildcard_answer(Walk& walk, dns::NameView closest_encloser) noexcept {
  add(walk, find_nsec3(walk, next_closer_name(walk, closest_encloser), Asked::kMadeUp));
}

}  // namespace pando::worker::nsec3

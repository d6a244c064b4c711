#include "worker/answer/denial.h"

namespace pando::worker::nsec {

namespace {

/// Adds the NSEC at `name` or, when `name` has none, the NSEC whose span covers `name`.
void add_match_or_cover(Walk& walk, dns::NameView name) noexcept {
  add_denial(walk, walk.zone.nsec_at_or_before(name), dns::RRType::kNSEC);
}

/// The walk's name does not exist: adds the NSEC that its lookup found.
void add_cover_of_name(Walk& walk) noexcept {
  add_denial(walk, walk.covering, dns::RRType::kNSEC);
}

}  // namespace

// RFC 4035 §3.1.3.2: one NSEC covers the name, another the wildcard that could have synthesized the
// name. Often both are the same record.
void prove_name_error(Walk& walk, const zone::Match& wildcard) noexcept {
  add_cover_of_name(walk);
  add_denial(walk, wildcard.nsec, dns::RRType::kNSEC);
}

// RFC 4035 §3.1.3.1: the name's own NSEC. An empty non-terminal has none (RFC 4034 §4.1.1). The
// preceding span then ends below the name, which proves that the name exists and owns no data.
void prove_nodata(Walk& walk, dns::NameView name, const zone::RecordView& record) noexcept {
  if (record && record.has_nsec())
    add_denial(walk, record, dns::RRType::kNSEC, name);  // in the question: a pointer at once
  else
    add_match_or_cover(walk, name);
}

// RFC 4035 §3.1.3.4: the name does not exist, and the wildcard's NSEC lacks the type. A wildcard
// that is an empty non-terminal (RFC 4592 §2.2.2) is covered instead, like any such name.
void prove_wildcard_nodata(Walk& walk, dns::NameView closest_encloser) noexcept {
  add_match_or_cover(walk, wildcard_of(closest_encloser));
  add_cover_of_name(walk);
}

// RFC 4035 §3.1.3.3: no closer match exists than the wildcard.
void prove_wildcard_answer(Walk& walk) noexcept { add_cover_of_name(walk); }

}  // namespace pando::worker::nsec

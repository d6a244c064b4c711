#pragma once

#include "worker/answer/resolve.h"
#include "worker/answer/resolve_trace.h"

/// Shared by the files of this folder: the state of one walk through a zone, and the functions that
/// add RRsets to the answer.
namespace pando::worker {

/// Progress of answering one question. Only `name` and `out` change.
struct Walk {
  const zone::ZoneView& zone;
  dns::NameView apex;
  std::size_t apex_labels;
  dns::NameView name;  ///< SNAME of RFC 1034 §4.3.2: QNAME, then each CNAME's target
  dns::RRType type;
  const ResolveOptions& options;
  dns::Nsec3Hasher& hasher;
  Answer& out;
  zone::RecordView covering = {};  ///< NSEC at or before `name`, if its lookup found it

  /// True when the client asks for proofs and the zone can give them.
  [[nodiscard]] bool proves() const noexcept {
    return options.dnssec_ok && zone.denial() != zone::Denial::kUnsigned;
  }
  /// Looks a name up, with its covering NSEC when a denial may need it.
  [[nodiscard]] zone::Match look_up(dns::NameView of) const noexcept {
    return zone.lookup(of, wanted());
  }
  /// look_up() of `name`, into `room` unless the caller of resolve() has the result.
  [[nodiscard]] const zone::Match& look_up_current(zone::Match& room) const noexcept {
    const bool is_qname = options.key != nullptr && name.data() == options.key->name().data();
    if (is_qname && options.match != nullptr) return *options.match;
    return room = is_qname ? zone.lookup(*options.key, wanted()) : zone.lookup(name, wanted());
  }
  [[nodiscard]] zone::ZoneView::Wanted wanted() const noexcept {
    return zone::wanted_in(zone, options.dnssec_ok);
  }
  /// Notes a step for an explanation of the answer.
  void note(ResolveTrace::Event event, dns::NameView other = {}) const noexcept {
    if (options.trace != nullptr) [[unlikely]]
      options.trace->add(event, name, other);
  }
};

/// The RRset if it has data, else null: the store also keeps signatures that have lost their RRset.
[[nodiscard]] zone::RRsetView find_data(const zone::RecordView& record, dns::RRType type) noexcept;

/// An entry for the RRset, with signatures when the client asked for them (RFC 4035 §3.1.1).
[[nodiscard]] Entry make_entry(const Walk& walk, const Owner& owner, const zone::RRsetView& rrset,
                               Need need = Need::kRequired) noexcept;

void add_answer(Walk& walk, const Entry& entry) noexcept;
void add_authority(Walk& walk, const Entry& entry) noexcept;
void add_additional(Walk& walk, const Entry& entry) noexcept;

/// True when the list has this very RRset.
template <std::size_t kCapacity>
[[nodiscard]] bool has_rrset(const EntryList<kCapacity>& list,
                             const zone::RRsetView& rrset) noexcept {
  for (const Entry& entry : list)
    if (!entry.synthesized && entry.rrset.is_same(rrset)) return true;
  return false;
}

/// Adds the NSEC or NSEC3 RRset of `record` to the authority section unless it is there already.
/// `owner`: its owner name, which lasts as long as the answer, if the caller has it.
void add_denial(Walk& walk, const zone::RecordView& record, dns::RRType type,
                std::optional<dns::NameView> owner = std::nullopt) noexcept;

/// "*." + encloser (RFC 4592 §2.1.1). The encloser is a proper ancestor of a legal name, so the
/// result is never too long.
[[nodiscard]] dns::Name wildcard_of(dns::NameView encloser) noexcept;

}  // namespace pando::worker

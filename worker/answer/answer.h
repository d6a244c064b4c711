#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/read/store_view.h"

/// The answer to one question as a value: references into the pinned version, no copies.
/// An Answer is as valid as the version that it came from is pinned and as the question's name is
/// in place; both end with the batch.
namespace pando::worker {

/// Extended DNS errors given here (RFC 8914 §4).
enum class Ede : std::uint16_t {
  kNotReady = 14,          ///< zone configured, nothing loaded yet
  kProhibited = 18,        ///< an access rule says no
  kNotAuthoritative = 20,  ///< no zone of ours
  kNotSupported = 21,      ///< an opcode or a question of another service
  kInvalidData = 24,       ///< the zone has expired
  kInvalidQueryType = 30,  ///< a type that is never asked for (RFC 9824 §3.2)
};

/// The owner name of an entry: one name in place, or a stored relative name and its zone's apex,
/// which are joined only while rendering.
class Owner {
 public:
  Owner() = default;
  Owner(dns::NameView whole) noexcept : tail_(whole) {}  // NOLINT: a name is an owner
  /// `relative`: labels without root octet, as RecordView::relative_owner() gives them.
  Owner(ByteView relative, dns::NameView apex) noexcept : head_(relative), tail_(apex) {}

  /// The full name; `scratch` holds it when it had to be joined.
  [[nodiscard]] dns::NameView name(dns::Name& scratch) const noexcept;

 private:
  ByteView head_;
  dns::NameView tail_;
};

/// Which records of an RRset go out.
enum class Parts : std::uint8_t { kData = 1, kSignatures = 2, kBoth = 3 };

/// What rendering does with an entry that does not fit.
enum class Need : std::uint8_t {
  kRequired,  ///< the message gets TC (RFC 2181 §9; in-domain glue: RFC 9471 §3)
  kOptional,  ///< it is left out silently
};

/// RDATAs of a referral's NS RRset that rendering remembers the places of.
inline constexpr std::uint16_t kMaxNsTargets = 64;
inline constexpr std::uint16_t kNoNsTarget = kMaxNsTargets;

/// One RRset of a section, with its signatures: all of it is written, or nothing.
struct Entry {
  Owner owner;
  zone::RRsetView rrset;
  std::uint32_t ttl = 0;
  Parts parts = Parts::kData;
  Need need = Need::kRequired;
  /// Set: not a stored RRset, but the CNAME to `cname_target` that a DNAME makes (RFC 6672 §3.1).
  bool synthesized = false;
  dns::NameView cname_target;
  /// Glue: the owner is what this RDATA of the referral's NS RRset names, which rendering has
  /// written already.
  std::uint16_t ns_target = kNoNsTarget;
};

/// A list of fixed capacity; push() says whether there was room.
template <std::size_t kCapacity>
class EntryList {
 public:
  bool push(const Entry& entry) noexcept {
    if (size_ == kCapacity) return false;
    entries_[size_++] = entry;
    return true;
  }
  void clear() noexcept { size_ = 0; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const Entry& operator[](std::size_t i) const noexcept { return entries_[i]; }
  [[nodiscard]] const Entry* begin() const noexcept { return entries_.data(); }
  [[nodiscard]] const Entry* end() const noexcept { return entries_.data() + size_; }

 private:
  std::size_t size_ = 0;
  std::array<Entry, kCapacity> entries_;
};

/// Names looked up for one question: QNAME and the targets of CNAME and DNAME records within the
/// zone. Longer chains end there with what they gave so far, as loops do.
inline constexpr std::size_t kMaxChain = 17;
/// DNAME and CNAME for each name at most.
inline constexpr std::size_t kMaxAnswerEntries = 2 * kMaxChain;
/// A wildcard proof for each name, then SOA and three NSEC3, or NS, DS and two NSEC3.
inline constexpr std::size_t kMaxAuthorityEntries = kMaxChain + 4;
/// A and AAAA of 128 name servers. More in-domain glue than that makes a truncated answer.
inline constexpr std::size_t kMaxAdditionalEntries = 256;

/// Reused by its worker: clear() costs nothing, so does an unused entry.
struct Answer {
  dns::Rcode rcode = dns::Rcode::kNoError;
  bool aa = false;
  /// A required entry found no room in its list: the message must get TC.
  bool overflow = false;
  std::optional<Ede> ede;
  /// A referral that is put off (ResolveOptions::put_off_referrals): the cut and its owner. Nothing
  /// else is in the answer then.
  zone::RecordView cut;
  dns::NameView cut_name;
  /// What the answer section begins with: QNAME's own record, a wildcard's, or that of a DNAME.
  zone::RecordView first;
  EntryList<kMaxAnswerEntries> answer;
  EntryList<kMaxAuthorityEntries> authority;
  EntryList<kMaxAdditionalEntries> additional;

  void clear() noexcept;
  /// Keeps a name made while answering; its view is valid until clear(). The room suffices for a
  /// synthesized name of greatest length for each name of a chain.
  dns::NameView keep(const dns::Name& name) noexcept;

 private:
  std::array<std::uint8_t, kMaxChain * dns::kMaxNameOctets> names_;
  std::size_t names_used_ = 0;
};

}  // namespace pando::worker

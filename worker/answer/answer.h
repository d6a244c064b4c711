#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/read/store_view.h"

/// The answer to one question as a value: references into the pinned version, no copies. An Answer
/// is valid while its version is pinned and the question's name is in place. Both end with the
/// batch.
namespace pando::worker {

/// Extended DNS errors given here (RFC 8914 §4).
enum class Ede : std::uint16_t {
  kNotReady = 14,          ///< zone configured, nothing loaded yet
  kProhibited = 18,        ///< an access rule refuses
  kNotAuthoritative = 20,  ///< no zone of this server
  kNotSupported = 21,      ///< opcode unknown, or a question of another service
  kInvalidData = 24,       ///< the zone has expired
  kInvalidQueryType = 30,  ///< a type that may never be queried (RFC 9824 §3.2)
};

/// The owner name of an entry: one complete name, or a stored relative name and its zone's apex.
/// Rendering alone joins the two.
class Owner {
 public:
  Owner() = default;
  Owner(dns::NameView whole) noexcept : tail_(whole) {}  // NOLINT: a name is an owner
  /// `relative`: labels without root octet, as RecordView::relative_owner() gives them.
  Owner(ByteView relative, dns::NameView apex) noexcept : head_(relative), tail_(apex) {}

  /// The relative name; empty for an owner that is one complete name.
  [[nodiscard]] ByteView relative() const noexcept { return head_; }
  /// The full name; `scratch` holds it when it had to be joined.
  [[nodiscard]] dns::NameView name(dns::Name& scratch) const noexcept;

 private:
  ByteView head_;
  dns::NameView tail_;
};

/// Which records of an RRset go out.
enum class Parts : std::uint8_t { kData = 1, kSignatures = 2, kBoth = 3 };

/// Effect of an entry that does not fit.
enum class Need : std::uint8_t {
  kRequired,  ///< the message gets TC (RFC 2181 §9; in-domain glue: RFC 9471 §3)
  kOptional,  ///< it is omitted silently
};

/// Number of NS targets in a referral whose places in the message rendering remembers.
inline constexpr std::uint16_t kMaxNsTargets = 64;
inline constexpr std::uint16_t kNoNsTarget = kMaxNsTargets;

/// One RRset of a section, with its signatures. The whole entry is written, or nothing.
struct Entry {
  Owner owner;
  zone::RRsetView rrset;
  std::uint32_t ttl = 0;
  Parts parts = Parts::kData;
  Need need = Need::kRequired;
  /// True for the CNAME to `cname_target` that a DNAME synthesizes; no RRset is stored then (RFC
  /// 6672 §3.1).
  bool synthesized = false;
  dns::NameView cname_target;
  /// Glue only: index of the RDATA in the referral's NS RRset that names this owner. Rendering has
  /// already written that name and refers to its place.
  std::uint16_t ns_target = kNoNsTarget;
};

/// A list of fixed capacity; push() returns false when the list is full.
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

/// Limit of names looked up for one question: QNAME and the targets of CNAME and DNAME records
/// within the zone. A longer chain, or a loop, ends with the records found so far.
inline constexpr std::size_t kMaxChain = 17;
/// At most a DNAME and a CNAME for each name.
inline constexpr std::size_t kMaxAnswerEntries = 2 * kMaxChain;
/// A wildcard proof for each name, then SOA and three NSEC3, or NS, DS and two NSEC3.
inline constexpr std::size_t kMaxAuthorityEntries = kMaxChain + 4;
/// A and AAAA of 128 name servers. More in-domain glue than that makes a truncated answer.
inline constexpr std::size_t kMaxAdditionalEntries = 256;

/// A part of an answer that other questions share, or that completes the answer to one of them.
/// resolve_part() answers with it.
struct AnswerPart {
  enum class Kind : std::uint8_t {
    kNone,
    kReferral,    ///< of the cut: NS, DS or the proof that there is none, and glue
    kServers,     ///< NS and glue of the cut, as if the cut were the zone's apex
    kSecurity,    ///< DS of the cut, or the proof that there is none
    kDenial,      ///< of QNAME, which does not exist: a wildcard answers, or a name error is proven
    kNameErrors,  ///< what all name errors directly below the encloser have in common
  };
  Kind kind = Kind::kNone;
  dns::NameView name;  ///< of the cut, or the closest encloser; mostly a part of QNAME
  /// The cut's record. For kDenial: the NSEC at or before QNAME, if the client asks for proofs and
  /// the zone has NSEC.
  zone::RecordView record;
};

/// Each worker reuses its Answers, so clear() and unused entries must cost nothing.
struct Answer {
  dns::Rcode rcode = dns::Rcode::kNoError;
  bool aa = false;
  /// A required entry found no room in its list: the message must get TC.
  bool overflow = false;
  /// True when another client might get another answer to the same question (client subnet, views).
  /// Nothing caches the answer or a part of it, and no cached part completes it.
  bool depends_on_client = false;
  std::optional<Ede> ede;
  /// What is left of the answer (ResolveOptions::postpone): kReferral or kDenial, else kNone. The
  /// sections are empty while something is left.
  AnswerPart postponed;
  /// Record that gave the first answer RRset: QNAME's own, a wildcard's, or that of a DNAME.
  zone::RecordView first;
  EntryList<kMaxAnswerEntries> answer;
  EntryList<kMaxAuthorityEntries> authority;
  EntryList<kMaxAdditionalEntries> additional;

  void clear() noexcept;
  /// Stores a name made while answering; the returned view is valid until clear(). The space
  /// suffices for a synthesized name of greatest length for each name of a chain.
  dns::NameView keep(const dns::Name& name) noexcept;

 private:
  std::array<std::uint8_t, kMaxChain * dns::kMaxNameOctets> names_;
  std::size_t names_used_ = 0;
};

}  // namespace pando::worker

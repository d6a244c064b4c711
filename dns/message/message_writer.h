#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "dns/message/compression_table.h"
#include "dns/message/message_header.h"
#include "dns/name.h"
#include "dns/rdata/rdata.h"
#include "dns/types.h"

namespace pando::dns {

enum class Section : std::uint8_t { kAnswer, kAuthority, kAdditional };

/// Numbers of records.
struct SectionCounts {
  std::uint16_t answer = 0;
  std::uint16_t authority = 0;
  std::uint16_t additional = 0;
};

/// Compression pointers in rendered records (RFC 1035 §4.1.4): where they stand, ascending, and the
/// two octets of each as a number.
struct PointersInRecords {
  std::span<const std::uint16_t> places;
  const std::uint16_t* values = nullptr;

  /// The pointers in the first `octets` octets.
  [[nodiscard]] PointersInRecords within(std::size_t octets) const noexcept {
    std::size_t count = places.size();
    if (count > 0 && places.back() >= octets)
      count = static_cast<std::size_t>(std::ranges::lower_bound(places, octets) - places.begin());
    return {places.first(count), values};
  }
};

/// Place of a name in a message being written, for writing the name again without a search. A place
/// belongs to one writer and ends when the writer rolls back to before the name. Unset when no
/// pointer reaches the name.
class NamePlace {
 public:
  [[nodiscard]] explicit operator bool() const noexcept { return pointer_ != 0; }

 private:
  friend class MessageWriter;
  std::uint16_t pointer_ = 0;
  std::uint8_t pointers_ = 0;  // that a reader follows from there; known to place_of() alone
};

/// The common fields of one RRset's records.
struct RRsetHead {
  NameView owner;
  RRType type{};
  RRClass rr_class = RRClass::kIN;
  Ttl ttl{};
  /// Written before each RDATA, which is then not searched for names (the store keeps RRSIGs
  /// without "type covered").
  ByteView prefix{};
  /// A set place replaces `owner`, which is then not read.
  NamePlace owner_place{};
  /// Labels in front of `owner`, which is then a part of question_name(). The writer does not search
  /// for the whole name, and later names are not compressed against it.
  ByteView labels{};
  /// Place of the last `rest_octets` octets of `owner`, if set: the search ends there.
  NamePlace rest{};
  std::size_t rest_octets = 1;
};

/// Builds one message in caller's memory: no heap, no exceptions. Every name is compressed wherever
/// RFC 3597 §4 permits: owners, and RDATA of the RFC 1035 types. A name compressed against an
/// earlier one shows the earlier one's case (RFC 4343 §4.1), unless keep_case() was called.
/// The writer is independent of the store: its inputs are names and uncompressed, checked RDATA,
/// none of them inside `space`.
class MessageWriter {
 public:
  /// `space` is at least 12 octets; `limit` ≤ space.size() is the largest message to build.
  /// reserve() may lower the limit for the OPT and TSIG records to come.
  MessageWriter(std::span<std::uint8_t> space, std::size_t limit) noexcept;

  /// The first call; counts come from finish().
  void put_header(const Header& header) noexcept { write_header(header, space_.data()); }
  /// Compresses later names only against names of the same spelling (RFC 5936 §3.4).
  void keep_case() noexcept { name_case_ = NameCase::kKept; }
  [[nodiscard]] bool put_question(NameView name, RRType type, RRClass rr_class) noexcept;

  /// The first question's name inside the message. As an owner, this view or an ancestor() of it
  /// costs no search: the writer recognises its address. The root without a question.
  [[nodiscard]] NameView question_name() const noexcept {
    return question_size_ == 0 ? NameView()
                               : NameView(space_.data() + kHeaderOctets, question_size_);
  }

  /// A point to roll back to; taken before an RRset, so that truncation falls on RRset borders.
  struct Mark {
    std::size_t size;
    std::array<std::uint16_t, 4> counts;
  };
  [[nodiscard]] Mark mark() const noexcept { return {size_, counts_}; }
  /// Restores message and compression table to their state at `mark`.
  void roll_back(const Mark& mark) noexcept;

  /// Appends one record; false when it does not fit (the message is then unchanged). For `prefix`
  /// see RRsetHead.
  [[nodiscard]] bool put_record(Section section, NameView owner, RRType type, RRClass rr_class,
                                std::uint32_t ttl, ByteView rdata, ByteView prefix = {}) noexcept;

  /// Appends all records of one RRset or none (false). `each_rdata(visit)` calls `visit(rdata)` for
  /// each RDATA.
  /// The owner is searched once at most: from the second record on it is a pointer.
  /// head.owner_place is then set for further RRsets of the owner.
  /// `targets[i]` gets the place of the name at the end of the i-th RDATA, if its type compresses
  /// one (NS, MX, CNAME, PTR). Those names are the owners in the additional section.
  template <class EachRdata>
  [[nodiscard]] bool put_rrset(Section section, RRsetHead& head, EachRdata&& each_rdata,
                               std::span<NamePlace> targets = {}) noexcept {
    const Mark start = mark();
    Record record(*this, section, head);
    bool fitted = true;
    std::size_t i = 0;
    std::forward<EachRdata>(each_rdata)([&](ByteView rdata) {
      fitted = fitted && append_record(record, rdata);
      if (i < targets.size()) targets[i++] = record.target;
    });
    if (fitted)
      head.owner_place = record.place;
    else
      roll_back(start);
    return fitted;
  }

  /// Appends one record for each of `targets`, all or none: its RDATA is that name (NS).
  [[nodiscard]] bool put_pointing_rrset(Section section, RRsetHead& head,
                                        std::span<const NamePlace> targets) noexcept;

  /// Place of a name that the message has, with the spelling that later names need; unset when it
  /// has not. A head's `rest` may be such a place.
  [[nodiscard]] NamePlace place_of(NameView name) noexcept;

  /// put_rrset() for callers that need no places.
  template <class EachRdata>
  [[nodiscard]] bool put_rrset(Section section, NameView owner, RRType type, RRClass rr_class,
                               Ttl ttl, EachRdata&& each_rdata, ByteView prefix = {}) noexcept {
    RRsetHead head{.owner = owner, .type = type, .rr_class = rr_class, .ttl = ttl};
    head.prefix = prefix;
    return put_rrset(section, head, std::forward<EachRdata>(each_rdata));
  }

  /// Appends octets unchanged (OPT, TSIG) and counts one additional record.
  [[nodiscard]] bool put_raw_additional(ByteView record) noexcept;

  /// Appends the records of all sections, rendered after the same question, unchanged; false when
  /// they do not fit. No names may be written after them: the table lacks their names.
  [[nodiscard]] bool put_rendered(ByteView records, const SectionCounts& counts) noexcept;

  /// Appends authority and additional records unchanged, except for their compression pointers, to
  /// which `shift` is added. `pointers` may continue past the end of `records`. False when the
  /// records do not fit. No names may be written after them: the table lacks their names.
  [[nodiscard]] bool put_sections(ByteView records, const PointersInRecords& pointers,
                                  std::size_t shift, std::uint16_t authority,
                                  std::uint16_t additional) noexcept;

  /// put_sections() for authority records that have one owner, `owner`, a part of question_name():
  /// at `owners` in `records` stand pointers to it, which are set anew.
  [[nodiscard]] bool put_owned_records(ByteView records, std::span<const std::uint16_t> owners,
                                       NameView owner, const PointersInRecords& pointers,
                                       std::size_t shift) noexcept;

  void reserve(std::size_t octets) noexcept { limit_ -= static_cast<std::ptrdiff_t>(octets); }
  void release(std::size_t octets) noexcept { limit_ += static_cast<std::ptrdiff_t>(octets); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t room() const noexcept {
    const std::ptrdiff_t room = limit_ - static_cast<std::ptrdiff_t>(size_);
    return room > 0 ? static_cast<std::size_t>(room) : 0;
  }
  /// True once something did not fit: with more room the message might have become another one.
  [[nodiscard]] bool is_crowded() const noexcept { return crowded_; }
  /// Whether so many octets fit, as if they were put: is_crowded() is true once they do not.
  [[nodiscard]] bool fits(std::size_t octets) noexcept {
    // The limit may become negative by reserve().
    if (static_cast<std::ptrdiff_t>(size_ + octets) <= limit_) return true;
    crowded_ = true;
    return false;
  }
  [[nodiscard]] std::uint16_t count(Section section) const noexcept {
    return counts_[1 + static_cast<std::size_t>(section)];
  }
  void set_rcode(Rcode rcode) noexcept;  ///< the lower four bits; OptBuilder has the others
  void set_tc() noexcept { space_[2] |= 0x02; }
  void set_aa(bool aa) noexcept {
    space_[2] = static_cast<std::uint8_t>((space_[2] & ~0x04) | (aa ? 0x04 : 0));
  }
  /// Writes the counts; the finished message is space[0, size()).
  ByteView finish() noexcept;

 private:
  /// State of writing one RRset's records.
  struct Record {
    Record(MessageWriter& writer, Section section, const RRsetHead& of) noexcept;
    const RRsetHead& head;
    std::uint16_t* count;  // of the section
    std::uint64_t fixed;   // TYPE, CLASS, TTL
    detail::CompressibleNames names;
    NamePlace place;   // of the owner
    NamePlace target;  // of the name that ended the last RDATA
  };

  bool append_record(Record& record, ByteView rdata) noexcept {
    return record.place && record.names.names == 0 ? append_plain_record(record, rdata)
                                                   : append_searched_record(record, rdata);
  }
  bool append_plain_record(Record& record, ByteView rdata) noexcept;
  bool append_searched_record(Record& record, ByteView rdata) noexcept;
  bool put_owner(Record& record) noexcept;
  bool put_rdata_names(Record& record, ByteView rdata) noexcept;
  bool put_name(NameView name, NamePlace& place, NamePlace rest = {},
                std::size_t rest_octets = 1) noexcept;
  template <NameCase kCase>
  bool put_label(NameView name, NamePlace& place, NamePlace rest) noexcept;
  template <NameCase kCase>
  bool put_searched_name(NameView name, NamePlace& place, NamePlace rest,
                         std::size_t rest_octets) noexcept;
  bool put_octets(ByteView octets) noexcept;
  bool put_pointer(std::uint16_t pointer) noexcept;
  [[nodiscard]] NamePlace place_in_question(NameView name) const noexcept;
  void prepare_table() noexcept;

  std::span<std::uint8_t> space_;
  std::ptrdiff_t limit_;
  std::size_t size_ = kHeaderOctets;
  std::uint16_t question_size_ = 0;  // of the first question's name, which is at offset 12
  NameCase name_case_ = NameCase::kIgnored;
  bool table_ready_ = false;  // an answer that only repeats QNAME needs no table
  bool crowded_ = false;
  std::array<std::uint16_t, 4> counts_{};
  CompressionTable table_;
};

}  // namespace pando::dns

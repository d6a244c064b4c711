#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "dns/message/message_writer.h"
#include "worker/request/rate_limit.h"
#include "worker/respond/answer_table.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// Rendered answers to the questions that are asked again and again. They are found by the question
/// alone, before its zone is, and are right for the version of the store in which they were used
/// last. In another version renew() asks whether the zone's data are the same.
/// Referrals and name errors have templates as well (AnswerTemplates), for questions that differ.
class WholeAnswers {
 public:
  struct Key {
    dns::NameView name;       ///< of the question; another spelling is another key
    dns::RRType type{};       ///< in class IN
    std::uint16_t limit = 0;  ///< of the response's octets, as far as client and server set one
    bool dnssec_ok = false;
    bool minimal_responses = false;
  };
  /// An answer to be cached; RCODE 0 or 3 (NXDOMAIN), without an extended error.
  struct Answered {
    zone::ZoneView zone;        ///< gave the answer
    std::uint64_t version = 0;  ///< StoreView::version()
    ByteView records;           ///< all sections after the question
    dns::SectionCounts counts;
    /// Room that the records had, if with another room they might have been others; else 0.
    std::uint16_t only_room = 0;
    dns::Rcode rcode{};
    bool aa = false;
    ResponseKind kind;
  };
  /// A cached answer. After it stand the key's name, the owner of the kind, and the records.
  struct Entry {
    std::uint64_t version;  ///< of the store, in which `bookmark` is of the zone
    std::uint64_t data_version;
    zone::Bookmark bookmark;
    std::uint32_t zone;  ///< ZoneView::side_index()
    dns::SectionCounts counts;
    dns::RRType type;
    dns::RRType kind_type;
    std::uint16_t limit;
    std::uint16_t only_room;
    std::uint16_t records_octets;
    std::uint8_t name_octets;
    std::uint8_t owner_octets;
    std::uint8_t rcode;
    ResponseClass kind_class;
    bool dnssec_ok;
    bool minimal_responses;
    bool aa;

    [[nodiscard]] ByteView records() const noexcept;
    [[nodiscard]] ResponseKind kind() const noexcept;
    /// Whether the records are those for a message that has this room for them.
    [[nodiscard]] bool suits(std::size_t room) const noexcept {
      return only_room == 0 ? records_octets <= room : only_room == room;
    }
  };

  [[nodiscard]] static AnswerPlace place_of(const Key& key) noexcept;
  /// The answer, of any version, or null; valid until the next insert().
  [[nodiscard]] Entry* find(const Key& key, AnswerPlace place) noexcept;
  /// Whether `entry` is right in `version`, where `zone` answers the question. If not, it is
  /// dropped.
  bool renew(Entry& entry, AnswerPlace place, const zone::ZoneView& zone,
             std::uint64_t version) noexcept;
  /// Before find(), see AnswerTable.
  void fetch(AnswerPlace place) const noexcept { table_.fetch(place); }
  void fetch_entry(AnswerPlace place) const noexcept { table_.fetch_entry(place); }
  /// See AnswerTable.
  [[nodiscard]] bool wants(AnswerPlace place) noexcept { return table_.wants(place); }
  /// Caches an answer, unless it is larger than kMaxOctets.
  void insert(const Key& key, AnswerPlace place, const Answered& answered);

  [[nodiscard]] std::size_t bytes() const noexcept { return table_.bytes(); }  ///< of all answers
  static constexpr std::size_t kMaxBytes = kAnswerTableBytes;
  /// Of the records. Larger answers are not cached: few are asked for often.
  static constexpr std::size_t kMaxOctets = 1400;

 private:
  using Table = AnswerTable<Entry>;

  Table table_;
};

}  // namespace pando::worker

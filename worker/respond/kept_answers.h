#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "dns/message/message_writer.h"
#include "worker/answer/answer.h"
#include "worker/respond/answer_table.h"
#include "worker/respond/rate_limit.h"

namespace pando::worker {

/// Rendered answers to the questions that are asked again and again: most queries to a small zone.
/// Referrals and name errors have templates of their own (AnswerTemplates), since their questions
/// seldom repeat.
class KeptAnswers {
 public:
  struct Key {
    dns::NameView name;  ///< of the question; another spelling is another key
    dns::RRType type{};
    std::uint32_t zone = 0;          ///< ZoneView::side_index()
    std::uint64_t data_version = 0;  ///< ZoneView::data_version()
    bool dnssec_ok = false;
    bool minimal_responses = false;
  };
  /// Views of an entry.
  struct Kept {
    ByteView records;  ///< all sections behind the question
    dns::SectionCounts counts;
    bool aa = false;
    ResponseKind kind;
  };

  [[nodiscard]] static AnswerPlace place_of(const Key& key) noexcept;
  /// The answer, if it is kept; valid until the next keep().
  [[nodiscard]] std::optional<Kept> find(const Key& key, AnswerPlace place) const noexcept;
  /// Before find(), see AnswerTable.
  void fetch(AnswerPlace place) const noexcept { table_.fetch(place); }
  void fetch_entry(AnswerPlace place) const noexcept { table_.fetch_entry(place); }
  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(AnswerPlace place) noexcept { return table_.wants(place); }
  /// Keeps `answer` to `question`, which has RCODE 0 and no extended error, if it fits into
  /// kMaxOctets with nothing left out.
  void keep(const Key& key, AnswerPlace place, const Answer& answer, const dns::Question& question,
            const ResponseKind& kind);

  [[nodiscard]] std::size_t bytes() const noexcept { return table_.bytes(); }  ///< of all answers
  static constexpr std::size_t kMaxBytes = kAnswerTableBytes;
  /// Of a message without OPT and TSIG. Larger answers are not kept: few are asked for often.
  static constexpr std::size_t kMaxOctets = 1400;

 private:
  /// The key's parts, and those of the answer. Behind them stand the key's name, the owner of the
  /// kind, and the records.
  struct Head {
    std::uint64_t data_version;
    std::uint32_t zone;
    dns::RRType type;
    std::uint16_t records_octets;
    dns::SectionCounts counts;
    dns::RRType kind_type;
    ResponseClass kind_class;
    std::uint8_t name_octets;
    std::uint8_t owner_octets;
    bool dnssec_ok;
    bool minimal_responses;
    bool aa;
  };
  using Table = AnswerTable<Head>;

  Table table_;
  Bytes space_;
};

}  // namespace pando::worker

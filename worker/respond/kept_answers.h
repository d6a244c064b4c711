#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_writer.h"
#include "worker/answer/answer.h"
#include "worker/respond/rate_limit.h"

namespace pando::worker {

/// Rendered answers to the questions that are asked again and again: most queries to a small zone.
/// Referrals and name errors have templates of their own (AnswerTemplates), since their questions
/// seldom repeat.
///
/// One table per worker, of bounded size. A question that is rarely asked (`wants`) displaces
/// nothing. An answer belongs to one state of the zone's data, so a change of the zone needs no
/// clean-up.
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
  /// Where a key may be; its hash is taken once per query.
  struct Place {
    std::uint32_t set;
    std::uint32_t tag;
  };
  struct Kept {
    Bytes records;  ///< all sections behind the question
    dns::SectionCounts counts;
    bool aa = false;
    ResponseKind kind;  ///< its owner lies in `owner`
    Bytes owner;
  };

  [[nodiscard]] static Place place_of(const Key& key) noexcept;
  /// The answer, or null; valid until the next keep().
  [[nodiscard]] const Kept* find(const Key& key, Place place) const noexcept;
  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(Place place) noexcept;
  /// Keeps `answer` to `question`, which has RCODE 0 and no extended error, if it fits into
  /// kMaxOctets with nothing left out.
  void keep(const Key& key, Place place, const Answer& answer, const dns::Question& question,
            const ResponseKind& kind);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all answers
  /// When all answers together exceed this size, all are dropped: those in use soon come back.
  static constexpr std::size_t kMaxBytes = std::size_t{2} << 20;
  /// Of a message without OPT and TSIG. Larger answers are not kept: few are asked for often.
  static constexpr std::size_t kMaxOctets = 1400;

 private:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSets = 2048;

  struct Entry {
    Bytes name;
    dns::RRType type;
    std::uint32_t zone;
    std::uint64_t data_version;
    bool dnssec_ok;
    bool minimal_responses;
    Kept kept;
  };
  struct Set {
    std::array<std::uint32_t, kWays> tags{};  // 0 = empty
    std::uint32_t missed = 0;                 // tag of the last miss
    std::array<std::unique_ptr<Entry>, kWays> entries;
  };
  static std::size_t size_of(const Entry& entry) noexcept;
  void store(Place place, std::unique_ptr<Entry> entry);

  std::vector<Set> sets_;  // allocated at the first miss
  std::size_t bytes_ = 0;  // of all entries
  Bytes space_;
};

}  // namespace pando::worker

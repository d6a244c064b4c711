#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"

namespace pando::worker {

/// Rendered parts of answers that can be put behind the next question below the same name:
/// - referrals: the name compression of a large delegation searches for each server's name, and
///   nearly all queries to a root or TLD server ask for the same few delegations;
/// - name errors: their SOA, and the proof that no wildcard exists, are the same for all names
///   without a longer closest encloser.
///
/// One table per worker, of bounded size. A name that is rarely asked for (`wants`) displaces
/// nothing. A template belongs to one state of the zone's data, so a change of the zone needs no
/// clean-up.
class AnswerTemplates {
 public:
  enum class Kind : std::uint8_t { kReferral, kNameError };
  struct Key {
    Kind kind = Kind::kReferral;
    std::uint32_t zone = 0;          ///< ZoneView::side_index()
    std::uint64_t data_version = 0;  ///< ZoneView::data_version()
    bool dnssec_ok = false;
    dns::NameView name;  ///< of the cut, or of the closest encloser
  };
  struct Kept {
    /// None: answers for this name cannot be made from a template, as is known now.
    std::optional<dns::MessageTemplate> records;
    /// Relative owner of the record that proves that no wildcard exists; a name error with proof
    /// only. That record may cover the question's name as well.
    Bytes proof_owner;
  };

  /// The template, or null; valid until the next keep().
  [[nodiscard]] const Kept* find(const Key& key) const noexcept;
  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(const Key& key) noexcept;
  /// Keeps `answer`, which has only authority and additional records, if it is whole and not too
  /// large. `question` asks for the key's name.
  void keep(const Key& key, const Answer& answer, const dns::Question& question);
  /// Keeps that there is no template for the key.
  void keep_none(const Key& key) { store(key, Kept()); }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all templates
  /// When all templates together exceed this size, all are dropped: those in use soon come back.
  static constexpr std::size_t kMaxBytes = std::size_t{2} << 20;

 private:
  // A root server's 1,500 delegations, plain and with DO, fill a third of the places.
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSets = 2048;

  struct Entry {
    Bytes name;  // in lower case
    Kind kind;
    std::uint32_t zone;
    bool dnssec_ok;
    std::uint64_t data_version;
    Kept kept;
  };
  struct Set {
    std::array<std::uint32_t, kWays> tags{};  // 0 = empty
    std::uint32_t missed = 0;                 // tag of the last miss
    std::array<std::unique_ptr<Entry>, kWays> entries;
  };
  /// Set and tag of a key.
  struct Place {
    std::size_t set;
    std::uint32_t tag;
  };
  static Place place_of(const Key& key) noexcept;
  static std::size_t size_of(const Entry& entry) noexcept;
  std::optional<dns::MessageTemplate> write(const Answer& answer, const dns::Question& question);
  void store(const Key& key, Kept kept);

  std::vector<Set> sets_;  // allocated at the first miss
  std::size_t bytes_ = 0;  // of all entries
  Bytes space_;
};

}  // namespace pando::worker

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"
#include "worker/respond/answer_table.h"

namespace pando::worker {

/// A set of labels in 64 bits: it may have a label that was never added, and has each that was.
class LabelSet {
 public:
  /// `label`: its length octet, and so many octets after it. Case does not matter.
  void add(const std::uint8_t* label) noexcept { bits_ |= bit_of(label); }
  [[nodiscard]] bool may_have(const std::uint8_t* label) const noexcept {
    return (bits_ & bit_of(label)) != 0;
  }

 private:
  static std::uint64_t bit_of(const std::uint8_t* label) noexcept;
  std::uint64_t bits_ = 0;
};

/// Rendered parts of answers that can be put after the next question below the same name:
/// - referrals: the name compression of a large delegation searches for each server's name, and
///   nearly all queries to a root or TLD server ask for the same few delegations;
/// - name errors: their SOA, and the proof that no wildcard exists, are the same for all names
///   without a longer closest encloser.
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
  /// Views of an entry.
  struct Template {
    /// None: answers for this name cannot be made from a template, as is known now.
    std::optional<dns::MessageTemplate> records;
    /// Relative owner of the record that proves that no wildcard exists; a name error with proof
    /// only. That record may cover the question's name as well.
    ByteView proof_owner;
    /// A referral only: the labels right below the cut that lead to its servers.
    LabelSet server_labels;
  };

  [[nodiscard]] static AnswerPlace place_of(const Key& key) noexcept;
  /// The template, if it is cached; valid until the next insert().
  [[nodiscard]] std::optional<Template> find(const Key& key, AnswerPlace place) const noexcept;
  [[nodiscard]] std::optional<Template> find(const Key& key) const noexcept {
    return find(key, place_of(key));
  }
  /// Whether a template is cached for the key.
  [[nodiscard]] bool has(const Key& key, AnswerPlace place) const noexcept {
    const std::optional<Template> found = find(key, place);
    return found && found->records;
  }
  /// Before find(), see AnswerTable.
  void fetch(AnswerPlace place) const noexcept { table_.fetch(place); }
  void fetch_entry(AnswerPlace place) const noexcept { table_.fetch_entry(place); }
  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(const Key& key) noexcept { return table_.wants(place_of(key)); }
  /// Caches `answer`, which has only authority and additional records, if it is whole and not too
  /// large. `question` asks for the key's name.
  void insert(const Key& key, const Answer& answer, const dns::Question& question);
  /// Caches that there is no template for the key.
  void insert_none(const Key& key) { store(key, {}, {}, {}); }

  [[nodiscard]] std::size_t bytes() const noexcept { return table_.bytes(); }  ///< of all templates
  static constexpr std::size_t kMaxBytes = kAnswerTableBytes;

 private:
  /// The key's parts. After them stand the key's name in lower case and one octet if its size is
  /// odd, then the template, if there is one, and the owner of the proof.
  struct Head {
    std::uint64_t data_version;
    LabelSet server_labels;
    std::uint32_t zone;
    std::uint16_t template_octets;  // 0: no template
    std::uint8_t name_octets;
    std::uint8_t proof_octets;
    Kind kind;
    bool dnssec_ok;

    [[nodiscard]] std::size_t template_at() const noexcept { return (name_octets + 1U) / 2 * 2; }
  };
  using Table = AnswerTable<Head>;

  std::optional<Bytes> write(const Answer& answer, const dns::Question& question);
  void store(const Key& key, ByteView records, ByteView proof_owner, LabelSet server_labels);

  Table table_;
  Bytes space_;
};

}  // namespace pando::worker

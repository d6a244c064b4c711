#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dns/name.h"
#include "worker/respond/answer_table.h"
#include "worker/respond/answer_templates.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// Results of lookups that are the same for all names at or below one name, a child of its zone's
/// apex: a delegation, or a name that does not exist. Most questions to the root or to a TLD are of
/// this kind, and need no lookup of their own then. One table per worker.
///
/// A result is valid for one version of the store only. While few names are found, most names are
/// not sought, because then the search costs more than it saves.
class SharedLookups {
 public:
  struct Key {
    dns::NameView name;      ///< of the child
    bool is_whole = false;   ///< it is the whole name in question
    bool dnssec_ok = false;  ///< the lookup was wanted with a proof (zone::wanted_in())
  };
  struct Result {
    /// The zone, and the delegation or the record that proves that the child does not exist, if
    /// there is one.
    zone::Bookmark record;
    AnswerPlace part;  ///< of the answer's part of this kind, among AnswerTemplates
    AnswerTemplates::Kind kind{};
  };
  /// A key, and where its result may be.
  struct Sought {
    explicit Sought(const Key& of) noexcept : key(of) {
      constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
      const std::uint64_t kind = (key.is_whole ? 1U : 0U) | (key.dnssec_ok ? 2U : 0U);
      const std::uint64_t hash = (dns::hash_name(key.name) + kind) * kOdd;
      place = static_cast<std::uint32_t>(hash >> 48 & (kPlaces - 1));
      tag = static_cast<std::uint16_t>(hash >> 32 | 1U);
    }
    Key key;
    std::uint32_t place;
    std::uint16_t tag;
  };

  /// Number of labels of the name that was cached last, without the root; 0: none was.
  [[nodiscard]] std::size_t labels() const noexcept { return labels_; }
  /// Begins a search for `names` names. False: the caller looks them up without the table.
  [[nodiscard]] bool begin(std::size_t names) noexcept;

  /// Asks for the memory that find() reads.
  void fetch(const Sought& sought) const noexcept;
  /// The result in this version of the store, or null; valid until the next insert().
  [[nodiscard]] const Result* find(const Sought& sought, std::uint64_t version) noexcept;
  /// Whether a result of this kind is worth caching: a name that does not exist, when it was missed
  /// twice in a row at its place. Names that are asked for once displace nothing.
  [[nodiscard]] bool wants(const Sought& sought, AnswerTemplates::Kind kind);
  /// Caches a result of this version.
  void insert(const Sought& sought, std::uint64_t version, const Result& result) noexcept;

 private:
  static constexpr std::size_t kPlaces = 4096;
  static constexpr std::size_t kMaxOctets = 36;  // of a child's name; few are longer

  /// One line of the processor's caches.
  struct alignas(64) Entry {
    std::uint64_t version = 0;
    Result result;
    std::uint16_t missed = 0;  // tag of the last name that was not cached
    std::uint8_t octets = 0;   // of the name; 0 = empty
    bool is_whole : 1 = false;
    bool dnssec_ok : 1 = false;
    std::array<std::uint8_t, kMaxOctets> name;
  };
  static_assert(sizeof(Entry) == 64);

  std::vector<Entry> entries_;  // allocated for the first name
  std::size_t labels_ = 0;
  std::size_t asked_ = 0;  // names of this round
  std::size_t found_ = 0;  // of them
  std::size_t pause_ = 0;  // names until the next round
};

}  // namespace pando::worker

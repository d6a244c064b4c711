#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"

namespace pando::worker {

/// Rendered NS RRsets that many delegations of a zone share (zone/record/shared_sets.h), with the
/// addresses of their servers: referrals of cuts that are asked for once are put together from
/// these. One table per worker, of bounded size. A template belongs to one state of the zone's
/// data, so a change of the zone needs no clean-up.
class ServerSets {
 public:
  struct Key {
    std::uint32_t zone = 0;          ///< ZoneView::side_index()
    std::uint64_t data_version = 0;  ///< ZoneView::data_version()
    bool dnssec_ok = false;          ///< with the signatures of addresses
    std::uint32_t set = 0;           ///< RecordView::shared_set()
    dns::Ttl ttl{};                  ///< of the NS RRset: a shared set has none
    bool operator==(const Key&) const = default;
  };
  struct Template {
    std::optional<dns::ServerSetTemplate> records;  ///< none: no template can be made
    bool has_servers_in_zone = false;               ///< some server may be at or below a cut
  };

  /// The template, or null; valid until the next insert().
  [[nodiscard]] const Template* find(const Key& key) const noexcept;
  /// Returns true for a key that was missed twice in a row at its place.
  [[nodiscard]] bool wants(const Key& key) noexcept;
  /// Caches `answer`, as resolve_part() gives it for kServers and `question`, which asks for the
  /// apex.
  const Template* insert(const Key& key, const Answer& answer, const dns::Question& question);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< of all templates
  /// When all templates together exceed this size, all are dropped: those in use soon come back.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

 private:
  static constexpr std::size_t kPlaces = 4096;

  struct Entry {
    Key key;
    Template made;
  };
  struct Place {
    std::uint32_t missed = 0;  // set of the last miss
    std::unique_ptr<Entry> entry;
  };
  static std::size_t place_of(const Key& key) noexcept;
  static std::size_t size_of(const Entry& entry) noexcept;

  std::vector<Place> places_;  // allocated at the first miss
  std::size_t bytes_ = 0;      // of all entries
  Bytes space_;
};

}  // namespace pando::worker

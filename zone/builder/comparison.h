#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "zone/builder/seen_marks.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/collected.h"
#include "zone/draft/draft.h"
#include "zone/draft/name_rules.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"
#include "zone/record/record_codec.h"
#include "zone/trie/trie.h"

namespace pando::zone {

/// Compares a whole zone with a served one, while the records come in any order, without building
/// the zone. A record that the served zone has in the same spelling, with the same TTL, is marked
/// there as seen; any other record is kept. A served record that was not seen at the end is gone.
///
///     records ─▶ run of one owner ─▶ the same in the served zone? ─▶ SeenMarks
///                                             └── no ─▶ LateRecords
///
/// The outcome equals that of ZoneBuilder, name by name: the first TTL of a set counts, duplicates
/// are dropped, and changed names are checked by the same rules. An unchanged name stays unchanged.
class Comparison {
 public:
  /// `live` is loaded, and must stay pinned for the lifetime of the comparison. Names beyond
  /// `limits` are an error at the end, as with ZoneBuilder.
  explicit Comparison(const ZoneView& live, const DataLimits& limits = DataLimits::none());

  /// As ZoneBuilder::add().
  Status add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  /// Records added, duplicates too.
  [[nodiscard]] std::uint64_t record_count() const noexcept { return added_; }
  /// Number of added records that are kept.
  [[nodiscard]] std::uint64_t kept_count() const noexcept;
  /// Whether so many records are new that a second zone in the store would take less memory.
  [[nodiscard]] bool is_too_much() const noexcept;

  /// The facts about the new zone's SOA that are known before the changeset is computed.
  struct Soa {
    Record record;
    bool is_signed = false;
  };
  /// Called after the last record, once. Errors are those of ZoneBuilder::finish().
  Result<Soa> finish();
  /// The largest permitted changeset in records, for a resulting zone of `records` records.
  using Most = std::function<std::uint64_t(std::uint64_t records)>;
  /// Called after finish(), once: the changeset from the served zone to the other one, without the
  /// SOA pair. Nullopt: more than `most` records. Errors are those of ZoneBuilder::finish(). `most`
  /// must not fall when `records` grows.
  Result<std::optional<Changeset>> changeset(const Most& most);
  /// Gives the records so far to a builder, owners in canonical order; later records may be added
  /// there. No other call is allowed afterwards. Errors are the builder's.
  Status give_to(ZoneBuilder& builder);
  /// Approximate memory of marks and kept records in bytes.
  [[nodiscard]] std::uint64_t octets() const noexcept;

 private:
  /// The consecutive records of one owner; a separate stream for each of a zone's two tries.
  struct Stream {
    explicit Stream(const Trie& names) : trie(names), walk(names), expected(walk.next()) {}
    Trie trie;
    TrieWalk walk;
    LeafBlock expected;   // the leaf after the last one, if names come in order
    unsigned misses = 0;  // names since the walk last matched
    bool is_open = false;
    Bytes labels;   // of the run's owner
    Bytes records;  // its CollectedRecords
    TrieKey key;    // of the labels, if has_key is true
    bool has_key = false;
    LateRecords late;
  };
  /// One set of the current name: [first, signatures) are RDATAs, [signatures, end) RRSIGs.
  struct LiveSet {
    dns::RRType type;
    dns::Ttl ttl;
    std::uint32_t first;
    std::uint32_t signatures;
    std::uint32_t end;
  };
  using Group = LateRecords::Group;
  class LateNames;
  /// A name in the served zone, and in the other one.
  struct Pair {
    NameDraft before;
    NameDraft after;
  };

  Status close(Stream& stream);
  [[nodiscard]] std::uint32_t find(Stream& stream);
  void use_key(Stream& stream);
  void decode(std::uint32_t ref);
  Status compare_run(Stream& stream, std::uint32_t ref);
  [[nodiscard]] const LiveSet* set_of(dns::RRType type) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> match(const LiveSet& set, const Placed& placed);
  [[nodiscard]] bool was_seen(std::uint32_t ref, std::uint32_t first, std::uint32_t end) const;
  Status keep(Stream& stream, std::uint32_t ref, const LiveSet* set, const CollectedRecord& record);
  Status keep(Stream& stream, ByteView labels, ByteView record);

  Status sort();
  template <class Visit>
  Status walk(Stream& stream, ProgressCount& count, Visit&& visit);
  Status judge(const Stream& stream, std::uint32_t ref, const Group* late);
  [[nodiscard]] bool is_as_it_was(std::uint32_t ref);
  Result<Pair> put_together(const Stream& stream, std::uint32_t ref, const Group* late);
  void add_seen(std::uint32_t ref, Pair& name);
  [[nodiscard]] Status check(const Pair& name) const;
  void add_changes(const Pair& name, std::uint32_t ref);
  Status give(const Pair& name, ZoneBuilder& builder) const;
  [[nodiscard]] bool is_above(std::uint64_t most) const noexcept {
    return changes_.removed.size() + changes_.added.size() > most;
  }

  ZoneView live_;
  dns::Name apex_;
  shm::Window window_;
  DataLimits limits_;
  Stream names_;
  Stream nsec3_;
  SeenMarks marks_;
  std::uint64_t added_ = 0;
  bool is_sorted_ = false;

  // Of the current name.
  RecordView record_;
  std::vector<LiveSet> sets_;
  std::vector<ByteView> rdatas_;  // of all sets, as SeenMarks counts them
  Bytes whole_names_;             // names that the store has in relative form
  std::vector<bool> matched_;
  std::uint32_t next_match_ = 0;
  Bytes kept_;

  Changeset changes_;
  std::uint64_t records_;  // of the zone that the changeset leads to
  std::uint64_t most_at_all_ = UINT64_MAX;
};

}  // namespace pando::zone

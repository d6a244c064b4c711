#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "zone/build/collected.h"
#include "zone/build/draft.h"
#include "zone/build/name_rules.h"
#include "zone/build/seen_marks.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"
#include "zone/record/record_codec.h"
#include "zone/trie/trie.h"

namespace pando::zone {

/// Compares a whole zone with one that is served, while its records come in any order, without
/// building it: a record that the served zone has in the same spelling, with the same TTL, is
/// marked there as seen; any other is kept. What was neither seen nor kept at the end has gone.
///
///     records ─▶ run of one owner ─▶ the same in the served zone? ─▶ SeenMarks
///                                             └── no ─▶ LateRecords
///
/// The outcome is what ZoneBuilder would have built, name by name: the first TTL of a set counts,
/// duplicates are dropped, and names that changed are judged by the same rules. A name that did not
/// change is as it was.
class Comparison {
 public:
  /// `live` is loaded, and stays pinned for as long as this is there. Names beyond `limits` are an
  /// error at the end, as with ZoneBuilder.
  explicit Comparison(const ZoneView& live, const DataLimits& limits = DataLimits::none());

  /// As ZoneBuilder::add().
  Status add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  /// Records added, duplicates too.
  [[nodiscard]] std::uint64_t record_count() const noexcept { return added_; }
  /// Those of them that are kept.
  [[nodiscard]] std::uint64_t kept_count() const noexcept;
  /// So much is new that a second zone in the store would take less memory.
  [[nodiscard]] bool is_too_much() const noexcept;

  /// What there is to know of the zone's SOA before the difference is worked out.
  struct Soa {
    Record record;
    bool is_signed = false;
  };
  /// After the last record, once. Errors are those of ZoneBuilder::finish().
  Result<Soa> finish();
  /// How many records a difference may have that leads to a zone of so many.
  using Most = std::function<std::uint64_t(std::uint64_t records)>;
  /// After finish(), once: what turns the served zone into the other one, without the SOA pair;
  /// nullopt: more than `most` records. Errors are those of ZoneBuilder::finish(). `most` must not
  /// fall when `records` grows.
  Result<std::optional<Changeset>> difference(const Most& most);
  /// Gives the zone, as far as it has come, to a builder, owners in canonical order; what follows
  /// may be added there. Nothing else can be asked for then. Errors are the builder's.
  Status give_to(ZoneBuilder& builder);
  /// Memory that marks and kept records take, about.
  [[nodiscard]] std::uint64_t octets() const noexcept;

 private:
  /// The records of one owner that came one after the other; apart for each of a zone's two tries.
  struct Stream {
    explicit Stream(const Trie& names) : trie(names), walk(names), expected(walk.next()) {}
    Trie trie;
    TrieWalk walk;
    LeafBlock expected;   // the leaf behind the last one, if all goes on in order
    unsigned misses = 0;  // since the walk was there where the records are
    bool is_open = false;
    Bytes labels;   // of the run's owner
    Bytes records;  // its CollectedRecords
    TrieKey key;    // of the labels, if has_key
    bool has_key = false;
    LateRecords late;
  };
  /// One set of the name that is looked at: [first, signatures) are RDATAs, [signatures, end)
  /// RRSIGs.
  struct LiveSet {
    dns::RRType type;
    dns::Ttl ttl;
    std::uint32_t first;
    std::uint32_t signatures;
    std::uint32_t end;
  };
  using Group = LateRecords::Group;
  /// A name as the served zone has it, and as the other one does.
  struct Pair {
    NameDraft before;
    NameDraft after;
  };

  Status close(Stream& stream);
  [[nodiscard]] std::uint32_t find(Stream& stream);
  void use_key(Stream& stream);
  void look_at(std::uint32_t ref);
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
  void note(const Pair& name, std::uint32_t ref);
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

  // Of the name that is looked at.
  RecordView record_;
  std::vector<LiveSet> sets_;
  std::vector<ByteView> rdatas_;  // of all sets, as SeenMarks counts them
  Bytes whole_names_;             // that the store has in relative form
  std::vector<bool> matched_;
  std::uint32_t next_match_ = 0;
  Bytes kept_;

  Changeset changes_;
  std::uint64_t records_;  // of the zone that the difference leads to
  std::uint64_t most_at_all_ = UINT64_MAX;
};

}  // namespace pando::zone

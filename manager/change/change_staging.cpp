#include "manager/change/change_staging.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "manager/change/received_source.h"
#include "manager/dnssec/change_signing.h"
#include "manager/journal/record/journal_format.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/support/withheld_data.h"

namespace pando::manager {

namespace {

/// Largest payload of a journal record, less names and serials.
constexpr std::size_t kMaxJournalled = kMaxRecordBody - 1024;

/// Nearly a chunk, in bytes: even a full store may have a small free block.
constexpr std::size_t kLargeBlock = 60'000;

/// A zone's first record follows its merge base: from that the next host restart sees whether the
/// file was edited.
void journal_base(Stage& stage, const dns::Name& name, dns::Serial from,
                  const ZoneRecords& records) {
  const zone::ZoneView zone = stage.draft.view().zone_at(name);
  const bool has_base =
      (stage.has_merge_base ? *stage.has_merge_base : records.has_merge_base(name)) ||
      (!stage.journal.empty() && stage.journal.back().zone == name);
  if (zone.source().file_mtime_ns != 0 && !has_base)
    stage.journal.push_back(source_entry(name, from, zone.source()));
}

/// Appends the record of an applied changeset.
void journal_changeset(Stage& stage, const zone::Applied& applied, RecordKind kind,
                       const ZoneRecords& records) {
  const dns::Name& name = applied.effective.zone;
  journal_base(stage, name, applied.from, records);
  stage.journal.push_back({name, applied.from, applied.to, zone::encode(applied.effective), kind});
}

/// One change while it is staged.
class Staging {
 public:
  Staging(Stage& stage, const ZoneChange& change, const Committer& committer, ChangeSigner* signer)
      : stage_(stage),
        change_(change),
        committer_(committer),
        signer_(signer),
        first_entry_(stage.journal.size()) {}

  Result<zone::Applied> run() {
    auto computed = compute();
    if (!computed) return pass(computed);
    if (change_.is_acknowledged())
      if (auto whole = check_whole(committer_.journal()); !whole) return pass(whole);
    open_reserve(*computed);
    if (auto applied = apply_all(*computed); !applied) return pass(applied);
    if (!first_)
      if (auto unchanged = leave_unchanged(); !unchanged) return pass(unchanged);
    if (auto noted = note(*computed); !noted) return pass(noted);
    if (is_signed_) mark_signed();
    if (!(last_.to == *first_) || change_.is_whole)
      stage_.changed.push_back({change_.zone, change_.source, change_.is_whole});
    // A change without effect acknowledges the state that is there, so that state must be durable
    // first: a host crash could still take it back.
    if (change_.is_acknowledged() && last_.effective.empty())
      if (auto durable = check_end(committer_.journal()); !durable) return pass(durable);
    return std::move(last_);
  }

 private:
  Result<ComputedChange> compute() {
    if (const auto* received = std::get_if<ReceivedChangesets>(&change_.content))
      return ComputedChange{{}, **received};
    return std::get<ZoneChange::Compute>(change_.content)(stage_.draft.view());
  }

  [[nodiscard]] bool is_transfer() const noexcept {
    return change_.source == ChangeSource::kTransfer;
  }

  void open_reserve(const ComputedChange& computed) {
    std::size_t removed = 0;
    std::size_t added = 0;
    for (const zone::Changeset& changes : computed.changesets()) {
      removed += changes.removed.size();
      added += changes.added.size();
    }
    stage_.use_reserve_for(removed, added);
  }

  Status apply_all(ComputedChange& computed) {
    for (std::size_t i = 0; i < computed.changesets().size(); ++i) {
      const zone::Changeset& changes = computed.changesets()[i];
      if (changes.empty() && change_.renewed.empty()) continue;
      auto completed = complete(changes, computed);
      if (!completed) return pass(completed);
      if (*completed && (*completed)->empty()) continue;
      auto applied = stage_.draft.apply(*completed ? **completed : changes, limits());
      if (!applied) return pass(about(applied.error(), computed));
      if (auto fits = check_fits(*applied); !fits) return fits;
      if (!first_) first_ = applied->from;
      last_ = std::move(*applied);
      if (has_own_serials_)
        if (auto put = stage_.draft.put_primary_serial(change_.zone, primary_serial_); !put)
          return put;
      if (computed.is_made()) computed.made[i] = {};  // `last_` has its content
      if (auto journalled = journal(computed); !journalled) return journalled;
    }
    return {};
  }

  /// The changeset that is applied in place of this one; nullopt: this one is.
  Result<std::optional<zone::Changeset>> complete(const zone::Changeset& asked,
                                                  const ComputedChange& computed) {
    auto received = receive(asked, computed);
    if (!received) return received;
    auto completed = sign(*received ? **received : asked);
    if (!completed || *completed) return completed;
    return received;
  }

  /// The source of a primary's changeset, for a zone that has serials of its own; nullopt: another
  /// zone or change.
  Result<std::optional<zone::Changeset>> receive(const zone::Changeset& asked,
                                                 const ComputedChange& computed) {
    if (!is_transfer()) return std::nullopt;
    has_own_serials_ = computed.primary_serial.has_value();
    primary_serial_ = computed.primary_serial;
    if (computed.is_made() || signer_ == nullptr) return std::nullopt;
    const zone::ZoneView before = stage_.draft.view().zone_at(change_.zone);
    if (!before || !zone::primary_serial(before)) {
      if (before && before.loaded() && signer_->signer && signer_->signer->has_signed(before))
        return fail(Errc::kInvalid, "the serial that the zone has at the primary is not known");
      return std::nullopt;
    }
    auto source = received_source(before, asked, *signer_, change_.checks_digest);
    if (!source) return pass(source);
    has_own_serials_ = true;
    primary_serial_ = source->primary_serial;
    signer_->left_out += source->left_out;
    return std::move(source->changes);
  }

  /// The changeset with the signer's records; nullopt: the zone is not signed here, or not yet.
  Result<std::optional<zone::Changeset>> sign(const zone::Changeset& changes) {
    const zone::ZoneView before = stage_.draft.view().zone_at(change_.zone);
    if (signer_ == nullptr || !signer_->signer) return std::nullopt;
    const ZoneSigner& keys = *signer_->signer;
    auto denial = keys.denial_of(before);
    if (!denial) {
      // Of a zone that validators know as signed, nothing may be served unsigned.
      if (before && before.loaded() && before.denial() != zone::Denial::kUnsigned)
        return fail(Errc::kUnsupported, "the zone is yet to be signed by its keys");
      return std::nullopt;
    }
    is_signed_ = true;
    ChangeSigningOptions options;
    options.now = signer_->now;
    options.max_names = signer_->max_names;
    options.renewed = change_.renewed;
    options.renewed_before = change_.renewed_before;
    options.denial = std::move(denial);
    auto completed = sign_change(before, changes, *signer_->signer, options);
    if (!completed || *completed) return completed;
    signer_->is_too_much = true;
    return fail(Errc::kExists, "more than {} names are to be signed", signer_->max_names);
  }

  /// The limits concern what clients send. A name of a signed zone has an NSEC set as well. The
  /// number of the zone's records, with the signer's, was checked with the update (check_limits()).
  /// It is not checked here, because a client cannot know how many records the signer adds.
  [[nodiscard]] zone::DataLimits limits() const {
    zone::DataLimits limits = change_.limits;
    if (!is_signed_) return limits;
    if (limits.name_types != 0) ++limits.name_types;
    limits.zone_records = 0;
    return limits;
  }

  /// The journal's records of the change tell that a part of it is the signer's.
  void mark_signed() {
    const auto first = stage_.journal.begin() + static_cast<std::ptrdiff_t>(first_entry_);
    std::for_each(first, stage_.journal.end(), [](JournalEntry& entry) {
      if (entry.kind == RecordKind::kChangeset || entry.kind == RecordKind::kFileEdit)
        wrap_signed(entry);
    });
  }

  /// There was nothing to apply.
  Status leave_unchanged() {
    const zone::ZoneView zone = stage_.draft.view().zone_at(change_.zone);
    if (!zone || !zone.loaded()) return fail(Errc::kNotFound, "zone is gone");
    first_ = last_.from = last_.to = zone.serial();
    last_.effective.zone = change_.zone;
    return {};
  }

  /// An error of Draft::apply(), for those who wait for the change. kFull means either a limit or a
  /// full store. A block allocated in the transaction distinguishes the two; the transaction can
  /// only be dropped afterwards, and the block with it.
  [[nodiscard]] Error about(const Error& error, const ComputedChange& computed) {
    if (error.code == Errc::kInvalid && !computed.contradiction.empty())
      return {Errc::kInvalid, computed.contradiction + error.text};
    if (is_transfer() && error.code == Errc::kFull && stage_.transaction.allocate(kLargeBlock))
      return {Errc::kInvalid, error.text};
    return error;
  }

  /// A mismatch means that our zone differs from the primary's version.
  [[nodiscard]] Status check_fits(const zone::Applied& applied) const {
    if (!is_transfer()) return {};
    if (applied.missing_removals > 0)
      return fail(Errc::kInvalid, "{} records to remove are not there", applied.missing_removals);
    if (applied.redundant_additions > 0)
      return fail(Errc::kInvalid, "{} records to add are there already",
                  applied.redundant_additions);
    return {};
  }

  /// Data that come whole replace all earlier ones, updates too, so their changeset is no record.
  Status journal(const ComputedChange& computed) {
    if (computed.notes || change_.is_whole || last_.effective.empty()) return {};
    const RecordKind kind = is_transfer() ? RecordKind::kTransfer : RecordKind::kChangeset;
    journal_changeset(stage_, last_, kind, committer_.zone_records());
    if (primary_serial_) wrap_signed(stage_.journal.back(), primary_serial_);
    // Checked here, because the journal's own error would look like a full disk.
    if (const std::size_t bytes = stage_.journal.back().payload.size();
        is_transfer() && bytes > kMaxJournalled)
      return fail(Errc::kInvalid, "a changeset of {} bytes, too many for the journal", bytes);
    return {};
  }

  Status note(const ComputedChange& computed) {
    if (!computed.notes) return {};
    ChangeNotes notes = computed.notes(last_, stage_.draft.view().zone_at(change_.zone));
    for (JournalEntry& entry : notes.records) stage_.journal.push_back(std::move(entry));
    if (!notes.merge_base) return {};
    return stage_.draft.put_zone_source(change_.zone, *notes.merge_base);
  }

  Stage& stage_;
  const ZoneChange& change_;
  const Committer& committer_;
  ChangeSigner* signer_;
  std::size_t first_entry_;  // in the stage's journal
  bool is_signed_ = false;
  // Of the changeset at hand: what a primary sent for a zone that has serials of its own.
  bool has_own_serials_ = false;
  std::optional<dns::Serial> primary_serial_;
  std::optional<dns::Serial> first_;  // before the first changeset
  zone::Applied last_;
};

}  // namespace

Result<zone::Applied> stage_changesets(Stage& stage, const ZoneChange& change,
                                       const Committer& committer, ChangeSigner* signer) {
  return Staging(stage, change, committer, signer).run();
}

namespace {

Status put(Stage& stage, const FileBatch::Zone& zone, ChangeSource source) {
  const zone::ZoneView before = stage.draft.view().zone_at(zone.apex);
  const bool had_data = before && before.loaded();
  if (auto put = stage.draft.put_zone(zone.apex, *zone.built, zone.source); !put) return put;
  if (auto dropped = drop_withheld_data(stage.draft, zone.apex); !dropped) return dropped;
  stage.changed.push_back({zone.apex, source, true, had_data, zone.verdict});
  return {};
}

/// A zone that was built with serial `source` was signed as a whole, and is served with another
/// serial. `records` from `first` on are its journal records, in which both serials occur.
///
/// kBase and kDynamicChanges describe the zone. A replay compares their serial `to` with that of
/// the zone it finds (RecordReplay), so they get the served one; kBase keeps `source` as the serial
/// of the file. Where no record describes the zone, one of kind kSigned leads from `source` to the
/// served serial, because the next changeset begins there. A purge (kGone) ends the records before
/// it and tells nothing of the new zone, so its serial stays.
void move_to_signed(std::vector<JournalEntry>& records, std::size_t first, dns::Serial source,
                    const zone::ZoneView& zone) {
  const auto is_description = [&](const JournalEntry& entry) {
    return entry.zone.view() == zone.apex() &&
           (entry.kind == RecordKind::kBase || entry.kind == RecordKind::kDynamicChanges);
  };
  const std::span added = std::span(records).subspan(first);
  if (std::ranges::none_of(added, is_description))
    return records.push_back(signed_entry(zone, source));
  for (JournalEntry& entry : added) {
    if (entry.kind == RecordKind::kGone) continue;
    if (entry.kind == RecordKind::kBase) entry.from = source;
    if (entry.to == source) entry.to = zone.serial();
  }
}

}  // namespace

Status stage_whole_zone(Stage& stage, ZoneChange& change, const ZoneRecords& known) {
  auto& data = std::get<WholeZone>(change.content);
  stage.use_reserve(data.built_in.reserve_use());
  stage.transaction.absorb(std::move(data.built_in));
  if (auto done = put(stage, {change.zone, data.built, data.source}, change.source); !done)
    return done;
  if (data.primary_serial)
    if (auto done = stage.draft.put_primary_serial(change.zone, data.primary_serial); !done)
      return done;
  const std::size_t first = stage.journal.size();
  const zone::ZoneView after = stage.draft.view().zone_at(change.zone);
  if (data.notes) data.notes(stage.journal, after);
  if (!data.source_serial) return {};
  // A primary's whole zone is no change of earlier data, and its serials are not ours.
  const bool is_transfer = change.source == ChangeSource::kTransfer;
  const dns::Serial source = is_transfer ? after.serial() : *data.source_serial;
  if (!data.pending.empty()) {
    move_to_signed(data.pending, 0, source, after);
    return {};
  }
  if (stage.journal.size() == first) journal_base(stage, change.zone, source, known);
  move_to_signed(stage.journal, first, source, after);
  return {};
}

Status stage_file_batch(Stage& stage, FileBatch& zones) {
  for (const FileBatch::Zone& zone : zones.zones) {
    const zone::ZoneView before = stage.draft.view().zone_at(zone.apex);
    if (!before || before.loaded())
      return fail(Errc::kExists, "{} is not a zone without data", to_text(zone.apex));
  }
  stage.use_reserve(zones.built_in.reserve_use());
  stage.transaction.absorb(std::move(zones.built_in));
  for (const FileBatch::Zone& zone : zones.zones)
    if (auto done = put(stage, zone, ChangeSource::kFile); !done) return done;
  return {};
}

}  // namespace pando::manager

#include "manager/merge/zone_merge.h"

#include <iterator>
#include <utility>

#include "manager/commit/zone_diff.h"
#include "manager/merge/file_merge.h"
#include "manager/support/soa.h"

namespace pando::manager {

Result<FileZone> file_zone(const zone::ZoneView& live, const zone::ZoneView& fresh) {
  auto soa = soa_record(fresh);
  if (!soa) return fail(Errc::kCorrupt, "zone without a SOA");
  const bool is_resigned = is_signed_here(live);
  const Compared compared = is_resigned ? Compared::kSource : Compared::kAll;
  return FileZone{std::move(*soa), !is_resigned && fresh.soa().signature_count() > 0,
                  [live, fresh, compared](const FileZone::Most& most) {
                    return Result<std::optional<zone::Changeset>>(
                        diff_zones(live, fresh, most(fresh.record_count()), compared));
                  }};
}

namespace {

/// Reduces the capacity to the records and a SOA, to save memory.
void fit(std::vector<zone::Record>& records) {
  std::vector<zone::Record> fitting;
  fitting.reserve(records.size() + 1);
  std::ranges::move(records, std::back_inserter(fitting));
  records = std::move(fitting);
}

}  // namespace

Result<MergePlan> plan_merge(const zone::ZoneView& live, const FileZone& fresh,
                             const zone::ZoneFileInfo& source, MergeBase state) {
  MergePlan plan;
  plan.source = source;
  plan.base_file = live.source();
  if (state.own) {
    plan.with_base_file = state.is_base_file(soa_serial(fresh.soa.rdata), source);
    state.become_primary(*plan.with_base_file);
  }
  plan.zone = dns::Name(live.apex());
  plan.compared = live.serial();
  plan.file_serial = soa_serial(fresh.soa.rdata);
  plan.dynamic_changes_known = state.dynamic_changes.known();
  // Without a recorded file serial, the journal would take the zone's serial for the file's.
  plan.record_file_serial = state.file_serial
                                ? !(*state.file_serial == plan.file_serial)
                                : plan.with_base_file || !(plan.file_serial == live.serial());
  plan.signed_soa = fresh.signed_soa;
  // A replacement would discard updates and needs a serial that secondaries see as newer. A zone
  // signed again under the same serial is replaced, too: another serial would break its signature.
  const bool ahead = plan.file_serial.ahead_of(live.serial());
  const bool signed_again = plan.signed_soa && plan.file_serial == live.serial();
  const bool may_replace = state.dynamic_changes.empty() && (ahead || signed_again);
  const auto live_soa = soa_record(live);
  if (!live_soa) return fail(Errc::kCorrupt, "zone without a SOA");
  auto compared = fresh.changeset([may_replace](std::uint64_t records) {
    return may_replace ? records / 2 + 100 : UINT64_MAX;
  });
  if (!compared) return pass(compared);
  std::optional<zone::Changeset>& changeset = *compared;
  if (!changeset) {
    plan.kind = MergePlan::Kind::kReplace;
    return plan;
  }
  const bool is_plain = state.dynamic_changes.empty();
  if (is_plain && !changeset->empty()) {
    plan.plain = std::exchange(*changeset, {plan.zone, {}, {}});
    fit(plan.plain->removed);
    fit(plan.plain->added);
  }
  changeset->removed.push_back(*live_soa);
  changeset->added.push_back(fresh.soa);
  RecordChanges to_file = record_changes_of(std::move(*changeset));
  plan.equals_zone = to_file.empty() && !state.dynamic_changes.empty();
  if (!plan.dynamic_changes_known && !plan.equals_zone)
    return fail(Errc::kNotFound,
                "the edited file is not merged: the journal no longer tells which of the zone's "
                "records came by update; save the zone as it is served (AXFR) in the file, reload, "
                "and edit then");
  plan.edit = file_changes(std::move(to_file), state.dynamic_changes);
  if (may_replace && signed_again && plan.record_count() > 0) {
    plan.kind = MergePlan::Kind::kReplace;
    plan.plain.reset();
  }
  return plan;
}

namespace {

struct SoaPair {
  zone::Record before;
  zone::Record after;
};

/// Old and new SOA for `changes`, the changeset of the edit; nullopt: nothing changed. The error
/// kInvalid means that a new serial is needed, but the file's SOA is signed.
Result<std::optional<SoaPair>> soa_pair(const zone::ZoneView& live, const zone::Record& soa,
                                        const MergePlan& plan, const zone::Changeset& changes) {
  zone::Record next = merged_soa(soa, plan.edit);
  const bool ahead = plan.file_serial.ahead_of(live.serial());
  if (changes.empty() && !ahead && next.rdata == soa.rdata && next.ttl == soa.ttl)
    return std::nullopt;
  if (plan.signed_soa && !ahead)
    return fail(Errc::kInvalid,
                "the edited file is not merged: its SOA is signed, with serial {}, which is not "
                "ahead of the served zone's {}; raise it, sign again and reload",
                plan.file_serial.value, live.serial().value);
  set_soa_serial(next.rdata, ahead ? plan.file_serial
                                   : next_serial(live.serial(), plan.serial_policy, plan.now));
  return SoaPair{soa, std::move(next)};
}

/// Takes the SOA pair of an earlier try out of the plan.
void drop_soa(MergePlan& plan) {
  if (!std::exchange(plan.plain_has_soa, false)) return;
  plan.plain->removed.pop_back();
  plan.plain->added.pop_back();
}

std::vector<JournalEntry> records_of_merge(const MergePlan& plan, bool equals_zone,
                                           const zone::Applied& applied,
                                           const RecordChanges& held) {
  std::vector<JournalEntry> records;
  if (plan.with_base_file)
    records.push_back(primary_entry(plan.zone, applied.from, *plan.with_base_file));
  if (!applied.effective.empty() || !held.empty() || (plan.record_file_serial && !equals_zone))
    records.push_back(
        {plan.zone, applied.from, applied.to,
         encode_file_edit(plan.file_serial, applied.effective, changeset_of(plan.zone, held)),
         RecordKind::kFileEdit});
  if (equals_zone)
    records.push_back({plan.zone, plan.file_serial, applied.to, {}, RecordKind::kBase});
  if (plan.in_journal || !records.empty())
    records.push_back(source_entry(plan.zone, applied.to, plan.source));
  return records;
}

}  // namespace

std::string overridden_text(const RecordChanges& overridden) {
  constexpr std::size_t kMaxNamed = 10;
  if (overridden.empty()) return {};
  std::string named;
  std::size_t count = 0;
  for (auto at = overridden.begin(); at != overridden.end() && count < kMaxNamed; ++at, ++count)
    named += fmt::format("{}{} {}{}", count == 0 ? "" : ", ", to_text(at->first.owner()),
                         dns::to_text(at->first.type()), at->second.after ? "" : " (removed)");
  return fmt::format(
      "{} records are not served as the file has them, since updates came for them: {}{}",
      overridden.size(), named, count < overridden.size() ? ", ..." : "");
}

Result<ComputedChange> compute_merge(const zone::StoreView& version, MergePlan& plan,
                                     const std::shared_ptr<RecordChanges>& overridden) {
  const zone::ZoneView live = version.zone_at(plan.zone);
  const auto soa = soa_record(live);
  if (!soa) return fail(Errc::kNotFound, "zone is no longer there");
  const bool moved = !(live.serial() == plan.compared);
  // An export since the comparison has replaced the merge base of this edit.
  if (!same_source(live.source(), plan.base_file)) return fail(Errc::kExists, "zone moved");
  if (moved && !plan.dynamic_changes_known) return fail(Errc::kExists, "zone moved");
  drop_soa(plan);
  if (moved && plan.plain)
    plan.edit.merge(record_changes_of(*std::exchange(plan.plain, std::nullopt)));
  ComputedChange computed;
  // The plain changeset serves while the zone is as compared. Else the edit is merged record by
  // record with the present zone.
  if (!plan.plain) computed.made.push_back(merge_edit(live, plan.edit));
  zone::Changeset& changes = plan.plain ? *plan.plain : computed.made.front();
  auto pair = soa_pair(live, *soa, plan, changes);
  if (!pair) return pass(pair);
  if (*pair) {
    changes.removed.push_back(std::move((*pair)->before));
    changes.added.push_back(std::move((*pair)->after));
    plan.plain_has_soa = plan.plain.has_value();
  }
  if (plan.plain) computed.owned = std::span(&*plan.plain, 1);
  computed.contradiction =
      "the edited file is not merged, it contradicts records that came by update: ";
  const bool equals_zone = plan.equals_zone && !moved;
  computed.notes = [&plan, overridden, equals_zone](const zone::Applied& applied,
                                                    const zone::ZoneView& after) {
    const bool follows = equals_zone || plan.plain;  // the zone equals the file
    const RecordChanges held =
        follows ? RecordChanges() : held_back(plan.edit, record_changes_of(applied.effective));
    *overridden = not_followed(after, held);
    return ChangeNotes{records_of_merge(plan, equals_zone, applied, held), plan.source};
  };
  return computed;
}

}  // namespace pando::manager

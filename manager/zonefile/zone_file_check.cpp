#include "manager/zonefile/zone_file_check.h"

#include "base/pause_point.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/commit/zone_diff.h"
#include "manager/merge/file_merge.h"
#include "manager/zonefile/export_file.h"

namespace pando::manager {

namespace {

/// Largest file for check_simple(). A zone with a larger file gets a thread for itself.
constexpr std::uint64_t kSimpleBytes = std::uint64_t{256} << 10;

/// Whether the zone may have records that the history lacks.
bool may_lack_records(const JournalHistory& journal, const zone::ZoneView& zone) {
  const bool may = may_have_updates(zone);
  return !journal.unreadable(zone.apex(), may).empty() ||
         (may && journal.may_have_lost(zone.apex()));
}

}  // namespace

void ZoneFileCheck::run(shm::Store& store) {
  const auto source = job.path.empty() ? std::nullopt : stat_source(job.path);
  const Progress::Scope scope(progress.get());
  progress->begin(Progress::Phase::kPreparing, 0);
  const std::uint64_t refused = older.refusal.empty() ? 0 : judging.shown;
  reset_findings();
  judging.shown = refused;
  served = live() && live().loaded();
  if (!served) return load_new(store, source.has_value());
  // A secondary's data comes from its primary; the file is only a copy.
  if (job.file_optional || is_merged(0)) return unchanged();
  // The zone became secondary after this job was queued, so the file belongs to an older
  // configuration.
  if (is_secondary(live())) return unchanged();
  // Finishes an interrupted export: `FILE.export` is the merge base then. A running export may be
  // just ending, too, so the file is read only afterwards.
  const auto finished = finish_export(native_files(), job.path, live().source());
  if (!finished) return fail_with({fmt::format("{}: {}", job.path, finished.error().text)});
  if (*finished || is_merged()) return unchanged();
  compare(store);
}

/// Opens the file if the file is small and the journal does not know the zone. All other cases, and
/// the reasons of errors, are left to run().
bool ZoneFileCheck::opens_small_new_file(dns::FileSource& file) const {
  if (job.path.empty() || job.file_optional) return false;
  const auto journal = history->any(position);
  if (journal->knows(job.apex) || may_lack_records(*journal, live())) return false;
  return file.open(job.path) && file.size_hint() <= kSimpleBytes;
}

ZoneFileCheck::Simple ZoneFileCheck::check_simple(shm::Transaction& batch) {
  if (!live()) return Simple::kNot;
  served = live().loaded();
  // A secondary's data comes from its primary; the file is only a copy.
  if (served && (job.file_optional || (!job.path.empty() && is_merged(kSimpleBytes)))) {
    unchanged();
    return Simple::kFound;
  }
  dns::FileSource file;
  if (served || job.is_signed_here || !opens_small_new_file(file)) return Simple::kNot;
  ++scanned;
  auto built = build_zone(batch, job.apex, job.path, file);
  if (!built) return Simple::kFailed;
  zone.emplace(std::move(*built));
  return Simple::kFound;
}

std::optional<LoadOutcome> ZoneFileCheck::stale_outcome(const zone::ZoneView& now) const {
  using Kind = LoadOutcome::Kind;
  if (!now) return LoadOutcome{Kind::kAbsent, {}, 0, {}};
  const bool is_secondary_now = is_secondary(now);
  // A reload has made the zone primary. The zone's own file decides its data, and has a job of its
  // own.
  if (job.file_optional && !is_secondary_now) return LoadOutcome{Kind::kAbsent, {}, 0, {}};
  const LoadOutcome as_served = LoadOutcome::of(Kind::kUnchanged, now);
  const bool failed = outcome && outcome->kind == Kind::kFailed;
  // The primary has sent the zone meanwhile, so the unreadable copy does not matter.
  if (job.file_optional && now.loaded() && failed) return as_served;
  // A secondary's data comes from its primary.
  if (!job.file_optional && now.loaded() && is_secondary_now && !outcome) return as_served;
  return std::nullopt;
}

void ZoneFileCheck::reset_findings() {
  zone.reset();
  transaction.reset();
  plan.reset();
  warnings.clear();
  touched.reset();
  in_journal = older.is_known = older.is_taken = check_again = false;
  outcome.reset();
  judging.shown = judging.handed_hash = 0;
  judging.base.reset();
}

bool ZoneFileCheck::is_merged(std::uint64_t most_bytes) {
  const FileCheck check = check_file(job.path, live().source(), most_bytes, read_before_);
  if (check.hashed) ++hashed;
  if (check.hashed) read_before_ = check.now;
  return is_merged(check);
}

bool ZoneFileCheck::is_merged(const FileCheck& check) {
  if (check.kind == FileCheck::Kind::kTouched) touched = {live().source(), check.now};
  return check.kind == FileCheck::Kind::kSame || check.kind == FileCheck::Kind::kTouched;
}

bool ZoneFileCheck::is_judged_already(const zone::ZoneFileInfo& now) {
  const auto judged = judging.before ? judging.before->source() : std::nullopt;
  if (!judged) return false;
  // Without a hash, which is for a file that need not be read, its state has to tell.
  const FileCheck check =
      now.hash == 0 ? check_file(job.path, *judged, 0) : compare_content(now, *judged);
  if (check.kind != FileCheck::Kind::kSame && check.kind != FileCheck::Kind::kTouched) return false;
  judging.handed_hash = judged->hash;
  return true;
}

ZoneFileCheck::Simple ZoneFileCheck::check_content(bool is_alone) {
  served = live() && live().loaded();
  const auto found = stat_source(job.path);
  if (!found) return needs_program({});  // run() reports the reason
  // The state of an unchanged file suffices.
  if (served && is_merged(0)) return found_unchanged();
  if (is_judged_already(*found) || (judging.before_waits && !served)) return judged_already();
  const std::uint64_t most_bytes = is_alone ? UINT64_MAX : kSimpleBytes;
  if (found->file_bytes > most_bytes) return Simple::kNot;
  zone::ZoneFileInfo now = *found;
  add_content(now, read_content(job.path, most_bytes));
  ++hashed;
  if (now.hash == 0 && !is_alone) return Simple::kNot;
  read_before_ = now;
  if (served && is_merged(compare_content(now, live().source()))) return found_unchanged();
  return is_judged_already(now) ? judged_already() : needs_program(now);
}

ZoneFileCheck::Simple ZoneFileCheck::found_unchanged() {
  unchanged();
  judging.base = live().source();
  return Simple::kFound;
}

ZoneFileCheck::Simple ZoneFileCheck::judged_already() {
  outcome = LoadOutcome{LoadOutcome::Kind::kJudging, {}, 0, {}};
  return Simple::kFound;
}

/// A later check compares its file with `now`, even before the zone of this one is built.
ZoneFileCheck::Simple ZoneFileCheck::needs_program(const zone::ZoneFileInfo& now) {
  if (judging.before_waits) return judged_already();
  judging.file = std::make_shared<JudgedFile>();
  if (now.hash != 0) judging.file->set(now);
  return Simple::kNot;
}

void ZoneFileCheck::load_new(shm::Store& store, bool has_file) {
  const auto journal = history->any(position);
  if (auto why = journal->unreadable(job.apex, may_have_updates(live())); !why.empty())
    return wait_for_journal(why);
  if (!has_file && job.file_optional && !journal->has_whole(job.apex)) {
    outcome = LoadOutcome{LoadOutcome::Kind::kAbsent, {}, 0, {}};
    return;
  }
  ZoneHistory before{*journal, position, job.file_optional, may_have_updates(live()),
                     withheld_data(live())};
  if (before.withheld && journal->has_all_since(job.apex, before.withheld->position))
    before.withheld.reset();
  older.is_known = has_file && journal->has_whole(job.apex);
  if (!older.refusal.empty()) return load_old(store, before, std::exchange(older.refusal, {}));
  auto built = build_alone(store, job.path, &before);
  if (!built && built.error().is_journal) return wait_for_journal(built.error().lines.front());
  if (!built && older.is_known && !progress->is_given_up())
    return load_old(store, before, std::move(built.error().lines));
  if (!built) return fail_with(std::move(built.error().lines));
  zone.emplace(std::move(*built));
  note_judged_file();
}

bool ZoneFileCheck::refuses_faults() const noexcept {
  return job.verify == config::SignaturePolicy::kRefuse;
}

Judges ZoneFileCheck::judges() const {
  Judges judges;
  if (!zone || older.is_taken) return judges;
  judges.signatures = refuses_faults();
  const bool is_accepted = zone->source.hash != 0 && zone->source.hash == judging.accepted;
  if (!is_accepted) judges.program = job.verifier;
  return judges;
}

/// Content checks of later loads compare their files with this one.
void ZoneFileCheck::note_judged_file() {
  if (!job.verifier) return;
  judging.shown = zone->source.hash;
  if (judging.file) judging.file->set(zone->source);
}

void ZoneFileCheck::take(const Judgement& judgement) {
  if (judgement.refusal.empty()) {
    judging.accepted = judging.shown;
    return;
  }
  std::vector<std::string> lines = refusal_lines(judgement);
  check_again = older.is_known && !progress->is_given_up();
  if (check_again)
    older.refusal = std::move(lines);
  else
    fail_with(std::move(lines));
}

/// Faults of the signatures, a line each, or the word of the program.
std::vector<std::string> ZoneFileCheck::refusal_lines(const Judgement& judgement) const {
  const auto& verdict = judgement.signatures;
  if (!verdict || verdict->found.ok()) return {about_source(judgement.refusal)};
  const zone::Verification& found = verdict->found;
  std::vector<std::string> lines;
  for (const std::string& fault : found.faults) lines.push_back(about_source(fault));
  if (found.fault_count > found.faults.size())
    lines.push_back(about_source(fmt::format("{} faults in all", found.fault_count)));
  return lines;
}

std::string ZoneFileCheck::about_source(std::string_view text) const {
  return fmt::format("{}: {}", job.path.empty() ? to_text(job.apex) : job.path, text);
}

/// Without the zone's records its file would be older than acknowledged updates, and the journal
/// would record that the file is all there is.
void ZoneFileCheck::wait_for_journal(const std::string& why) {
  fail_with(
      {fmt::format("the zone waits, as it may have updates in the journal, which cannot be "
                   "read: {}",
                   why)});
  outcome->waits_for_journal = true;
}

/// Serves the zone as the journal has it, since the file is unusable. The file waits for a reload.
void ZoneFileCheck::load_old(shm::Store& store, const ZoneHistory& before,
                             std::vector<std::string> problems) {
  const std::string no_file;
  auto built = build_alone(store, no_file, &before);
  if (!built) return fail_with(std::move(problems));
  zone.emplace(std::move(*built));
  older.is_taken = true;
  zone->warnings = std::move(problems);
  zone->warnings.emplace_back("the file is left out: the zone is served as the journal has it");
}

Result<ZoneFromFile, ZoneProblems> ZoneFileCheck::build_alone(shm::Store& store,
                                                              const std::string& path,
                                                              const ZoneHistory* before) {
  transaction.emplace(store.begin_private());
  if (!path.empty()) ++scanned;
  if (!job.file_optional) pause_point("zone-file");
  return build_zone(*transaction, job.apex, path, before, progress.get());
}

/// Compares the file with the served zone while reading. The zone is built, with a second reading,
/// only if the file replaces the zone or very much is new.
void ZoneFileCheck::compare(shm::Store& store) {
  // Judges need the whole zone. A signed zone's file has none of the signer's records, which the
  // comparison while reading would take for removed ones.
  if (!is_judged() && !is_signed_here(live())) {
    ++scanned;
    auto file = compare_file(live(), job.apex, job.path, progress.get());
    if (!file) return fail_with(std::move(file.error().lines));
    if (*file && plan_changeset(**file)) return;
  }
  warnings.clear();
  compare_built(store);
}

/// Plans the merge from a comparison. False: the file's zone has to be built.
bool ZoneFileCheck::plan_changeset(ComparedFile& file) {
  warnings = std::move(file.warnings);
  std::optional<Error> broken;
  const FileZone fresh{std::move(file.soa.record), file.soa.is_signed,
                       [&](const FileZone::Most& most) {
                         auto changeset = file.comparison->changeset(most);
                         file.comparison.reset();  // its records are in the changeset now
                         if (!changeset) broken = changeset.error();
                         return changeset;
                       }};
  make_plan(fresh, file.source);
  const bool is_refused = broken && broken->code == Errc::kInvalid;
  if (is_refused) fail_with(problems_of(job.path, job.apex, *broken).lines);
  const bool replaces = plan && plan->kind == MergePlan::Kind::kReplace;
  if (is_refused || (!broken && !replaces)) return true;
  plan.reset();
  outcome.reset();
  return false;
}

void ZoneFileCheck::compare_built(shm::Store& store) {
  auto built = build_alone(store, job.path, nullptr);
  if (!built) return fail_with(std::move(built.error().lines));
  zone.emplace(std::move(*built));
  // Nobody has asked for a file that came after the verdict: perhaps it is being written.
  if (judging.accepted != 0 && zone->source.hash != judging.accepted) {
    zone.reset();
    outcome = LoadOutcome{LoadOutcome::Kind::kSuperseded, {}, 0, {}};
    return;
  }
  note_judged_file();
  const BuiltView built_view(store, job.apex, *zone->built);
  const auto view = built_view.zone();
  if (!view) return fail_with({view.error().text});
  auto fresh = file_zone(live(), *view);
  if (!fresh) return fail_with({fresh.error().text});
  make_plan(*fresh, zone->source);
}

/// Sets `plan`, `outcome` or `check_again`.
void ZoneFileCheck::make_plan(const FileZone& fresh, const zone::ZoneFileInfo& source) {
  auto state = merge_base();
  if (!state) return fail_with({state.error().text});
  if (check_again) return;
  if (const std::size_t stale = drop_stale(state->dynamic_changes, live()); stale > 0)
    log::error("journal_incomplete", "zone", to_text(job.apex), "records", stale);
  auto planned = plan_merge(live(), fresh, source, std::move(*state));
  if (!planned) return fail_with({fmt::format("{}: {}", job.path, planned.error().text)});
  plan.emplace(std::move(*planned));
  plan->serial_policy = job.serial_policy;
  plan->now = unix_seconds();
  plan->in_journal = in_journal;
  if (plan->kind == MergePlan::Kind::kReplace && plan->file_serial == plan->compared)
    warnings.push_back(
        fmt::format("serial {} is the one that was served before: the file takes its place, as its "
                    "SOA is signed, but secondaries do not see what changed",
                    plan->compared.value));
}

/// Merge base of the zone at the checked version. The journal that was read before is used if its
/// last record of the zone fits that version; else the journal is read again. If the fresh journal
/// does not fit either, the journal was compacted meanwhile, or records are missing.
Result<MergeBase> ZoneFileCheck::merge_base() {
  const auto read = [&](const JournalHistory& journal) -> Result<MergeBase> {
    if (!journal.problem().empty())
      return fail(Errc::kIo, "the edited file is not merged, the journal cannot be read: {}",
                  journal.problem());
    in_journal = journal.knows(job.apex);
    if (!in_journal && !may_have_updates(live())) return MergeBase{};
    return journal.merge_base(job.apex, position);
  };
  const auto fits = [&](const MergeBase& state) { return state.serial == live().serial(); };
  auto state = read(*history->any(position));
  if (state && !fits(*state)) state = read(*history->get(position));
  if (!state || !state->serial || fits(*state)) return state;
  check_again = may_ask_again;
  state->lose();
  return state;
}

}  // namespace pando::manager

#include "manager/change/change_road.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "base/crash_point.h"
#include "manager/change/built_signing.h"
#include "manager/change/change_staging.h"
#include "manager/change/whole_transfer.h"
#include "manager/commit/zone_diff.h"
#include "manager/journal/record/journal_payload.h"
#include "zone/draft/detached_draft.h"

namespace pando::manager {

namespace {

/// Of a change that a builder thread has to sign.
constexpr int kMaxTriesOfSigned = 20;

Status ask(const ZoneChange& change, const Stage& stage) {
  return change.check ? change.check(stage.draft.view()) : Status();
}

Status zone_moves() { return fail(Errc::kExists, "the zone changes again and again"); }

/// Whether somebody has signed the built data.
bool is_source_signed(shm::Store& store, const dns::Name& apex, const WholeZone& data) {
  const BuiltView source(store, apex, *data.built);
  const auto zone = source.zone();
  return zone && has_signers_records(*zone);
}

}  // namespace

/// One change on its way, used by one thread at a time.
struct ChangeRoad::Work final : FirstTransfers::Zone, std::enable_shared_from_this<Work> {
  Work(ChangeRoad& owner, ZoneChange&& what)
      : road(owner), asked(std::move(what)), state{asked.source} {}

  ChangeRoad& road;
  ZoneChange asked;
  ChangeOutcome outcome;
  ChangeUnderWay state;
  int tries = 0;
  bool has_merge_base = false;
  bool has_moved = false;  // the zone has changed since the draft began, or is to be signed there
  ChangeSigner signer;
  std::optional<dns::Serial> served_serial{};  // of the zone that a built one replaces
  bool is_signed_whole = false;                // for that zone
  bool holds_updates = false;
  bool has_policy = false;
  bool is_signed_here = false;                 // it has the signatures of its keys
  bool is_judged = false;
  Judgement judgement;
  // Declared after the pin, so that the draft is destroyed first: the draft reads pinned data.
  shm::SlotTable::OwnPin pin;
  zone::ZoneView served;  // pinned
  std::unique_ptr<zone::DetachedDraft> draft;
  std::vector<JournalEntry> journal;
  std::vector<PublishedZone> changed;
  Status computed;
  shm::Reserve reserve = shm::Reserve::kKept;  // see Stage::reserve

  /// Pins the present version for the other threads that read it.
  void pin_present() {
    const shm::VersionInfo version = road.store_.current();
    pin = road.slots_.pin_own(version.number);
    served =
        zone::StoreView(road.store_.window(), version.root, version.number).zone_at(asked.zone);
    Judges& judges = asked.judges;
    judges.base_is_valid =
        judges.is_verified && served && served.loaded() && judges.is_verified(served);
  }
  void begin_draft() {
    draft = std::make_unique<zone::DetachedDraft>(road.store_, road.store_.current(), asked.zone);
    draft->draft().give_up_when(&road.stopping_);
  }

  /// Frees blocks and perhaps a hundred thousand records, which takes a while: in a builder thread.
  void free_in(asio::thread_pool& pool, Result<ChangeOutcome>&& result) {
    asio::post(pool,
               [content = std::move(asked.content), result = std::move(result),
                draft = std::move(draft), pin = std::move(pin), journal = std::move(journal)] {});
  }

  /// Frees the data of a failed try, since the next try needs as much again. Builder thread.
  void clear() {
    draft.reset();
    pin = {};
    journal = {};
    changed = {};
    outcome.applied = {};
    outcome.left_out = 0;
  }

  /// Builder thread.
  void compute() {
    Stage stage{draft->transaction(), draft->draft(), journal, true, has_merge_base};
    auto applied = stage_changesets(stage, asked, road.committer_, &signer);
    computed = status_of(applied);
    if (applied) outcome.applied = std::move(*applied);
    outcome.left_out += std::exchange(signer.left_out, 0);
    reserve = stage.reserve;
    changed = std::move(stage.changed);
    crash_point("change-worked-out");
  }

  /// Builder thread: signs the built zone as a whole, which then takes the place of its source.
  Status sign_whole() {
    auto& data = std::get<WholeZone>(asked.content);
    if (asked.source == ChangeSource::kTransfer) {
      auto left_out = take_whole_transfer(road.store_, asked,
                                          {served, signer, has_policy, is_signed_here});
      if (!left_out) return pass(left_out);
      outcome.left_out = *left_out;
    } else if (!signer.signer) {
      // The zone was unsigned, and has its policy still.
      return take_source(road.store_, asked.zone, data, dns::Serial{data.built->serial});
    } else {
      auto built =
          sign_built_zone(road.store_, asked.zone, data, signer, served_serial, is_signed_here);
      if (!built) return pass(built);
    }
    crash_point("zone-signed");
    return {};
  }

  /// Whether the zone has moved since this one was signed in its place: renewed signatures have taken
  /// the serial.
  [[nodiscard]] bool is_signed_in_vain(const zone::StoreView& now) const {
    if (!is_signed_whole || asked.source != ChangeSource::kTransfer) return false;
    const zone::ZoneView present = now.zone_at(asked.zone);
    const bool has_data = present && present.loaded();
    return has_data != served_serial.has_value() ||
           (has_data && !(present.serial() == *served_serial));
  }

  /// The thread that run_judges() chooses.
  void judge() {
    const Progress::Scope scope(asked.progress.get());
    is_judged = true;
    if (const zone::BuiltZone* known = asked.known_data())
      judgement = judge_built(road.store_, asked.judges, asked.zone, served, *known);
    else
      judgement =
          judge_zone(asked.judges, served, draft->draft().view().zone_at(asked.zone), changesets());
  }

  /// The changesets that lead from `served` to the draft.
  [[nodiscard]] std::span<const zone::Changeset> changesets() const {
    if (const auto* received = std::get_if<ReceivedChangesets>(&asked.content)) {
      // With serials of its own, and signatures, the zone has changed otherwise.
      if (zone::primary_serial(served)) return {};
      return **received;
    }
    return {&outcome.applied.effective, 1};
  }

  // FirstTransfers::Zone
  ZoneChange& change() noexcept override { return asked; }
  void staged(PublishedZone& zone) override {
    outcome.had_data = zone.had_data;
    if (!asked.judged_data) zone.verdict = judgement.signatures;  // of what is put
    state.reach(ChangeStep::kJournalling);
  }
  void done(const Result<std::uint64_t>& version) override {
    road.finish(shared_from_this(), version);
  }
  void put_alone() override { road.put_alone(shared_from_this()); }
};

ChangeRoad::ChangeRoad(asio::io_context& io, asio::thread_pool& pool, shm::Store& store,
                       shm::SlotTable& slots, Committer& committer, Options options)
    : io_(io),
      pool_(pool),
      store_(store),
      slots_(slots),
      committer_(committer),
      options_(options),
      first_transfers_(committer) {}

ChangeRoad::~ChangeRoad() = default;

// Intake -----------------------------------------------------------------------------------------

void ChangeRoad::submit(ZoneChange change) {
  auto work = std::make_shared<Work>(*this, std::move(change));
  under_way_.add(work->asked.zone, work->state);
  if (signers_ == nullptr || !work->asked.is_built() ||
      work->asked.source == ChangeSource::kSigning)
    return begin(work);
  const dns::Name& zone = work->asked.zone;
  const bool is_signed = signers_->has(zone) &&
                         is_source_signed(store_, zone, std::get<WholeZone>(work->asked.content));
  signers_->when_known(zone, is_signed,
                       [this, work](Result<ZoneSignerPtr> signer) {
                         sign_built(work, std::move(signer));
                       });
}

/// Judges see data that are there already, before anything else is done with them.
void ChangeRoad::begin(const WorkPtr& work) {
  if (work->asked.judges && work->asked.known_data() != nullptr) return judge_known(work);
  advance(work);
}

/// The step after the intake, or after a verdict on known data. Changes with judges that have no
/// verdict yet are computed first.
void ChangeRoad::advance(const WorkPtr& work) {
  const ZoneChange& asked = work->asked;
  if (asked.is_built()) return put(work);
  const bool is_small = asked.records <= options_.max_on_commit_thread && !signs_slowly(asked.zone);
  if (is_small && (!asked.judges || work->is_judged)) return commit_here(work);
  ++counters_.beside;
  work->state.reach(ChangeStep::kWaiting);
  waiting_.push_back(work);
  start_waiting();
}

/// Changes of several zones that become one version.
struct ChangeRoad::JointChanges {
  std::vector<ZoneChange> changes;
  std::vector<ChangeOutcome> outcomes{};
  ChangeUnderWay state{};
};

void ChangeRoad::submit_together(std::vector<ZoneChange> changes, Together done) {
  auto all = std::make_shared<JointChanges>(std::move(changes));
  for (const ZoneChange& change : all->changes) {
    all->state.source = change.source;
    under_way_.add(change.zone, all->state);
  }
  CommitRequest request;
  // An error in one zone drops all of them, so they share no version with other requests.
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, all](Stage& stage) -> Status {
    all->outcomes.clear();
    for (const ZoneChange& change : all->changes) {
      if (auto ok = ask(change, stage); !ok) return ok;
      auto signer = signer_of(change.zone);
      if (!signer) return pass(signer);
      signer->max_names = options_.max_signed_names;
      auto applied = stage_changesets(stage, change, committer_, &*signer);
      if (!applied) return pass(applied);
      all->outcomes.push_back({0, std::move(*applied), true});
    }
    all->state.reach(ChangeStep::kJournalling);
    return {};
  };
  request.done = [this, all, done = std::move(done)](const Result<std::uint64_t>& version) {
    for (const ZoneChange& change : all->changes) under_way_.remove(change.zone, all->state);
    if (!version) return done(pass(version));
    for (ChangeOutcome& outcome : all->outcomes) outcome.version = *version;
    done(std::move(all->outcomes));
  };
  committer_.submit(std::move(request));
}

/// Many new zones on their way, used by one thread at a time.
struct ChangeRoad::FileBatchWork {
  FileBatch asked;
  FileBatchDone done;
  std::vector<dns::Name> refused{};
  ChangeUnderWay state{ChangeSource::kFile};

  [[nodiscard]] bool has_judges() const {
    return std::ranges::any_of(asked.zones, &FileBatch::Zone::verifies);
  }
  /// Beside the commit thread.
  void judge(const ChangeRoad& road) {
    const Judges judges{.signatures = true};
    for (FileBatch::Zone& zone : asked.zones) {
      if (!zone.verifies || road.stopping_) continue;
      const Judgement judgement = judge_built(road.store_, judges, zone.apex, {}, *zone.built);
      zone.verdict = judgement.signatures;
      if (!judgement.refusal.empty()) refused.push_back(zone.apex);
    }
  }
};

void ChangeRoad::submit_file_batch(FileBatch zones, FileBatchDone done) {
  auto work = std::make_shared<FileBatchWork>(std::move(zones), std::move(done));
  for (const FileBatch::Zone& zone : work->asked.zones) under_way_.add(zone.apex, work->state);
  if (!work->has_judges()) return stage_together(work);
  work->state.reach(ChangeStep::kJudging);
  run_judges(
      work->asked.run, pool_, [this, work] { work->judge(*this); },
      [this, work] {
        if (stopping_) return;
        if (work->refused.empty()) return stage_together(work);
        finish_together(*work, fail(Errc::kInvalid, "{} zones are refused", work->refused.size()));
      });
}

void ChangeRoad::stage_together(const std::shared_ptr<FileBatchWork>& work) {
  if (work->state.step != ChangeStep::kStaging) work->state.reach(ChangeStep::kStaging);
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [work](Stage& stage) -> Status {
    work->state.reach(ChangeStep::kJournalling);
    return stage_file_batch(stage, work->asked);
  };
  request.done = [this, work](const Result<std::uint64_t>& version) {
    finish_together(*work, status_of(version));
  };
  committer_.submit(std::move(request));
}

void ChangeRoad::finish_together(FileBatchWork& work, const Status& published) {
  for (const FileBatch::Zone& zone : work.asked.zones) under_way_.remove(zone.apex, work.state);
  work.done(published, work.refused);
}

std::optional<ChangeUnderWay> ChangeRoad::under_way(dns::NameView zone) const {
  if (stopping_) return std::nullopt;  // changes that were given up are in the list still
  return under_way_.oldest(zone);
}

bool ChangeRoad::at_work_on(dns::NameView zone) const noexcept {
  return std::any_of(computing_.begin(), computing_.end(),
                     [&](const auto& work) { return work->asked.zone.view() == zone; });
}

// Compute ----------------------------------------------------------------------------------------

void ChangeRoad::start_waiting() {
  while (!stopping_ && !waiting_.empty() && computing_.size() < options_.max_computed) {
    computing_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    compute(computing_.back());
  }
}

void ChangeRoad::compute(const WorkPtr& work) {
  auto signer = signer_of(work->asked.zone);
  if (!signer) return finish(work, pass(signer));
  work->signer = std::move(*signer);
  ++work->tries;
  work->state.reach(ChangeStep::kComputing);
  work->has_merge_base = committer_.zone_records().has_merge_base(work->asked.zone);
  work->pin_present();
  work->begin_draft();
  asio::post(pool_, [this, work] {
    work->compute();
    asio::post(io_, [this, work] { computed(work); });
  });
}

/// A failed computation goes to the committer's queue, too: an earlier step there may make the
/// change possible.
void ChangeRoad::computed(const WorkPtr& work) {
  if (stopping_) return;
  if (!work->asked.judges || work->is_judged || !work->computed) return commit_computed(work);
  leave_place(work);
  judge(work);
}

void ChangeRoad::leave_place(const WorkPtr& work) {
  if (std::erase(computing_, work) > 0) start_waiting();
}

/// Tries again after the data of the last try have been freed. A built zone is kept, and signed
/// once more.
void ChangeRoad::again(const WorkPtr& work) {
  if (work->asked.is_built()) {
    if (++work->tries >= kMaxTriesOfSigned) return finish(work, pass(zone_moves()));
    return signers_->when_known(
        work->asked.zone,
        signers_->has(work->asked.zone) &&
            is_source_signed(store_, work->asked.zone, std::get<WholeZone>(work->asked.content)),
        [this, work](Result<ZoneSignerPtr> signer) { sign_built(work, std::move(signer)); });
  }
  asio::post(pool_, [this, work] {
    work->clear();
    asio::post(io_, [this, work] {
      if (stopping_) return;
      // A change without a verdict could not be computed so far. Staging it here would serve data
      // that nobody has verified.
      const bool is_unseen = work->asked.judges && !work->is_judged;
      if (work->tries >= options_.tries && is_unseen) return finish(work, pass(work->computed));
      // The commit thread signs no large change. The zone's updates wait by now (finish()), so that
      // it will not move much longer.
      if (work->tries >= options_.tries && !work->signer.signer) return commit_here(work);
      if (work->tries >= kMaxTriesOfSigned)
        return finish(work, pass(zone_moves()));
      // A change that was judged after its computation has left its place.
      if (std::ranges::find(computing_, work) == computing_.end()) computing_.push_back(work);
      compute(work);
    });
  });
}

// Sign -------------------------------------------------------------------------------------------

Result<ChangeSigner> ChangeRoad::signer_of(const dns::Name& zone) const {
  if (signers_ == nullptr) return ChangeSigner();
  auto signer = signers_->signer_of(zone);
  if (!signer) return pass(signer);
  return ChangeSigner{std::move(*signer), signers_->now()};
}

bool ChangeRoad::signs_slowly(dns::NameView zone) const {
  if (signers_ == nullptr) return false;
  const auto signer = signers_->signer_of(zone);
  return signer && *signer && (*signer)->is_slow() &&
         (*signer)->denial_of(committer_.current().zone_at(zone));
}

void ChangeRoad::sign_built(const WorkPtr& work, Result<ZoneSignerPtr> signer) {
  if (stopping_) return;
  if (!signer) return finish(work, pass(signer));
  const zone::ZoneView served = committer_.current().zone_at(work->asked.zone);
  work->has_policy = signers_->has(work->asked.zone);
  const bool has_own_serials = work->asked.source == ChangeSource::kTransfer && served &&
                               zone::primary_serial(served).has_value();
  if (!*signer && !work->has_policy && !has_own_serials) return begin(work);
  work->state.reach(ChangeStep::kSigning);
  work->signer = {std::move(*signer), signers_->now()};
  work->served_serial.reset();
  if (served && served.loaded()) work->served_serial = served.serial();
  work->is_signed_here = work->signer.signer && work->signer.signer->has_signed(served);
  work->pin_present();
  work->is_signed_whole = true;
  asio::post(pool_, [this, work] {
    work->computed = work->sign_whole();
    asio::post(io_, [this, work] {
      if (stopping_) return;
      work->pin = {};
      if (!work->computed) return finish(work, pass(work->computed));
      begin(work);
    });
  });
}

// Judge ------------------------------------------------------------------------------------------

void ChangeRoad::judge_known(const WorkPtr& work) {
  work->pin_present();
  judge(work);
}

/// A verdict stays valid when the zone moves: a program may take minutes, and only the source of
/// the change has other data for its zone.
void ChangeRoad::judge(const WorkPtr& work) {
  work->state.reach(ChangeStep::kJudging);
  const Judges& judges = work->asked.judges;
  run_judges(
      judges.run, judges.program ? judges.program->pool() : pool_, [work] { work->judge(); },
      [this, work] { judged(work); });
}

/// Runs `work` in threads of the change's source, or else in `pool`, and then `then` here.
void ChangeRoad::run_judges(const Judges::Run& run, asio::thread_pool& pool,
                            std::function<void()> work, std::function<void()> then) {
  if (run) return run(std::move(work), std::move(then));
  asio::post(pool, [this, work = std::move(work), then = std::move(then)]() mutable {
    work();
    asio::post(io_, std::move(then));
  });
}

void ChangeRoad::judged(const WorkPtr& work) {
  if (stopping_) return;
  const Judgement& judgement = work->judgement;
  const Status heard = work->asked.judged ? work->asked.judged(judgement) : Status();
  if (!judgement.refusal.empty())
    return finish(work, fail(Errc::kInvalid, "{}", judgement.refusal));
  if (!heard) return finish(work, pass(heard));
  if (work->asked.known_data() == nullptr) return commit_computed(work);
  work->pin = {};
  advance(work);
}

// Stage ------------------------------------------------------------------------------------------

void ChangeRoad::commit_computed(const WorkPtr& work) {
  work->state.reach(ChangeStep::kStaging);
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, work](Stage& stage) { return adopt(*work, stage); };
  request.done = [this, work](const Result<std::uint64_t>& version) { finish(work, version); };
  committer_.submit(std::move(request));
}

/// Exchanges the zone's data, if the draft began with the present ones. A change that did not fit
/// the old zone may fit the present one, so `has_moved` is checked before the error.
Status ChangeRoad::adopt(Work& work, Stage& stage) {
  if (auto ok = ask(work.asked, stage); !ok) return ok;
  work.has_moved = !work.draft->fits(stage.draft.view()) ||
                   work.has_merge_base != committer_.zone_records().has_merge_base(work.asked.zone);
  if (work.has_moved) return fail(Errc::kExists, "zone moved");
  if (!work.computed) return work.computed;
  // The exchange takes a few more blocks. The committer checks the reserve afterwards, since other
  // transactions have taken space meanwhile.
  stage.transaction.use_reserve(shm::Reserve::kHalf);
  stage.reserve = work.reserve;
  if (auto adopted = work.draft->adopt(stage.transaction, stage.draft); !adopted) return adopted;
  stage.journal = std::move(work.journal);
  stage.changed = std::move(work.changed);
  for (PublishedZone& zone : stage.changed) work.staged(zone);
  crash_point("change-adopted");
  return {};
}

void ChangeRoad::commit_here(const WorkPtr& work) {
  PANDO_ASSERT(!work->asked.judges || work->is_judged);
  if (work->state.step != ChangeStep::kStaging) work->state.reach(ChangeStep::kStaging);
  CommitRequest request;
  // A large change that fails half-way must be dropped as a whole, and a group's draft cannot drop
  // the part of one request.
  request.kind =
      work->asked.shares_version ? CommitRequest::Kind::kGroup : CommitRequest::Kind::kAlone;
  request.stage = [this, work](Stage& stage) { return stage_here(*work, stage); };
  request.done = [this, work](const Result<std::uint64_t>& version) { finish(work, version); };
  committer_.submit(std::move(request));
}

/// Few records may affect many names, such as all those below a delegation that comes or goes. A
/// builder thread signs these.
Status ChangeRoad::stage_here(Work& work, Stage& stage) {
  if (auto ok = ask(work.asked, stage); !ok) return ok;
  auto signer = signer_of(work.asked.zone);
  if (!signer) return pass(signer);
  signer->max_names = options_.max_signed_names;
  auto applied = stage_changesets(stage, work.asked, committer_, &*signer);
  work.has_moved = signer->is_too_much;
  if (!applied) return pass(applied);
  work.outcome.applied = std::move(*applied);
  work.outcome.left_out = signer->left_out;
  for (PublishedZone& zone : stage.changed) work.staged(zone);
  return {};
}

void ChangeRoad::put(const WorkPtr& work) {
  work->state.reach(ChangeStep::kStaging);
  if (first_transfers_.may_share_version(work->asked)) return first_transfers_.publish(work);
  put_alone(work);
}

void ChangeRoad::put_alone(const WorkPtr& work) {
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, work](Stage& stage) -> Status {
    if (auto ok = ask(work->asked, stage); !ok) return ok;
    work->has_moved = work->is_signed_in_vain(stage.draft.view());
    if (work->has_moved) return fail(Errc::kExists, "zone moved");
    if (auto put = stage_whole_zone(stage, work->asked, committer_.zone_records()); !put)
      return put;
    work->staged(stage.changed.back());
    return {};
  };
  request.done = [this, work](const Result<std::uint64_t>& version) { finish(work, version); };
  committer_.submit(std::move(request));
}

// Follow up --------------------------------------------------------------------------------------

void ChangeRoad::finish(const WorkPtr& work, const Result<std::uint64_t>& version) {
  if (!version && std::exchange(work->has_moved, false)) {
    ++counters_.again;
    if (work->asked.again)
      work->asked.again();
    else if (work->signer.signer && !work->asked.is_built() && holds_.hold &&
             !std::exchange(work->holds_updates, true))
      holds_.hold(work->asked.zone);
    return again(work);
  }
  under_way_.remove(work->asked.zone, work->state);
  leave_place(work);
  if (version) record_after_version(*work);
  const auto done = std::move(work->asked.done);
  Result<ChangeOutcome> outcome = std::move(work->outcome);
  if (version)
    outcome->version = *version;
  else
    outcome = pass(version);
  done(outcome);
  if (work->holds_updates) holds_.release(work->asked.zone);
  if (work->tries > 0 || work->is_judged) work->free_in(pool_, std::move(outcome));
}

/// Writes the journal records that come after the version of a change.
void ChangeRoad::record_after_version(Work& work) {
  const dns::Name& zone = work.asked.zone;
  ZoneRecords& records = committer_.zone_records();
  if (work.asked.source == ChangeSource::kTransfer && work.asked.is_whole) {
    crash_point("zone-replaced");
    records.forget(zone);
    if (work.outcome.had_data)
      journal_whole_transfer(zone, committer_.current().zone_at(zone).serial());
  }
  if (auto* data = std::get_if<WholeZone>(&work.asked.content); data && !data->pending.empty())
    records.add_pending(zone, std::move(data->pending));
}

/// Appends the records of a whole transfer in a step of their own: a journal that cannot be written
/// does not stop the zone. Without them (disk full, process killed) the next changeset would not
/// follow the last one, and the dynamic changes become unknown.
void ChangeRoad::journal_whole_transfer(const dns::Name& zone, dns::Serial serial) {
  CommitRequest request;
  request.stage = [zone, serial](Stage& stage) -> Status {
    const zone::ZoneView now = stage.draft.view().zone_at(zone);
    if (!now || !now.loaded() || !(now.serial() == serial)) return {};
    stage.journal.push_back(base_entry(now));
    stage.journal.push_back(transfer_entry(now));
    return {};
  };
  committer_.submit(std::move(request));
}

}  // namespace pando::manager

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/progress.h"
#include "manager/change/change_judgement.h"
#include "manager/commit/commit_request.h"
#include "manager/dnssec/zone_signer.h"
#include "zone/draft/built.h"

namespace pando::manager {

/// The journal records of a source for its change, and its new merge base.
struct ChangeNotes {
  std::vector<JournalEntry> records;
  /// The file that the zone agrees with from now on; nullopt: as before.
  std::optional<zone::ZoneFileInfo> merge_base{};
};

/// The changesets of a change, computed for the zone as it is.
struct ComputedChange {
  std::vector<zone::Changeset> made{};       ///< freed as soon as it is applied
  std::span<const zone::Changeset> owned{};  ///< in place of `made`; owned by the source
  /// Begins the error of a changeset that the zone's data contradict; empty: the error as it is.
  std::string contradiction{};
  /// In place of the changesets' own journal records: those of the source, made from what was
  /// applied and the zone after it. May be empty.
  std::function<ChangeNotes(const zone::Applied& applied, const zone::ZoneView& after)> notes{};
  /// Of a whole zone that a primary sent: its serial there (zone::primary_serial()).
  std::optional<dns::Serial> primary_serial{};

  /// One changeset, or the error that there is none.
  [[nodiscard]] static Result<ComputedChange> of(Result<zone::Changeset>&& changeset) {
    if (!changeset) return pass(changeset);
    ComputedChange computed;
    computed.made.push_back(std::move(*changeset));
    return computed;
  }
  [[nodiscard]] bool is_made() const noexcept { return owned.empty(); }
  [[nodiscard]] std::span<const zone::Changeset> changesets() const noexcept {
    return is_made() ? std::span<const zone::Changeset>(made) : owned;
  }
};

/// Changesets as a primary has sent them, to be applied in order.
using ReceivedChangesets = std::shared_ptr<const std::vector<zone::Changeset>>;

/// A zone built in a transaction of its own, to be put in place of all data of the zone, if any.
struct WholeZone {
  std::shared_ptr<zone::BuiltZone> built;
  shm::Transaction built_in;
  zone::ZoneFileInfo source{};  ///< of a file; of a transfer: none
  /// Adds records to the journal from the zone just after it was put; may be empty.
  std::function<void(std::vector<JournalEntry>& journal, const zone::ZoneView& after)> notes{};
  /// Records that the journal did not take when the zone was put before; written later.
  std::vector<JournalEntry> pending{};
  /// The serial of the zone's source, if the zone was signed here after it was built.
  std::optional<dns::Serial> source_serial{};
  /// zone::primary_serial() of the zone with these data.
  std::optional<dns::Serial> primary_serial{};
};

/// Many small zones from files, built in one transaction.
struct FileBatch {
  struct Zone {
    dns::Name apex;
    std::shared_ptr<zone::BuiltZone> built;
    zone::ZoneFileInfo source{};
    bool verifies = false;  ///< `verify: refuse`; programs judge single zones only
    std::shared_ptr<const Verdict> verdict{};  ///< of the judge step
  };
  std::vector<Zone> zones;
  shm::Transaction built_in;
  Judges::Run run{};  ///< threads that verify, see Judges
};

/// The signer of a zone's changes, and its limit in the thread that stages a change.
struct ChangeSigner {
  ZoneSignerPtr signer{};            ///< null: the zone is not signed here
  std::uint64_t now = 0;             ///< seconds since 1970
  std::size_t max_names = SIZE_MAX;  ///< names of a changeset that are signed in this thread
  bool is_too_much = false;          ///< result: the change affects more names than that
  std::uint64_t left_out = 0;        ///< result: see ChangeOutcome
};

/// The result of a published change.
struct ChangeOutcome {
  std::uint64_t version = 0;
  /// Of the last changeset; without a real change `effective` is empty.
  zone::Applied applied{};
  bool had_data = false;  ///< with WholeZone: the zone replaced other data
  /// Records of a transfer that were left out, because this server makes them: those of a signer.
  std::uint64_t left_out = 0;
};

/// One change of one zone's data, from any source. ChangeRoad takes it to the store.
struct ZoneChange {
  /// Computes the changesets for a version. May be called again, see `again`, and in a builder
  /// thread: it reads this zone alone, and nothing of the commit thread.
  using Compute = std::function<Result<ComputedChange>(const zone::StoreView& version)>;

  dns::Name zone;
  ChangeSource source = ChangeSource::kUpdate;
  std::variant<Compute, ReceivedChangesets, WholeZone> content{};
  std::uint64_t records = 0;  ///< approximate number of records that are removed and added
  zone::DataLimits limits = zone::DataLimits::none();  ///< for changesets
  /// All data of the zone come anew, even if as a changeset.
  bool is_whole = false;
  bool shares_version = false;  ///< a small change may share its version with others
  /// Of a transfer: ZONEMD of the primary's data is checked before this server signs these.
  bool checks_digest = false;
  /// Of a transfer with a WholeZone: where this server signs the zone, little that is new becomes a
  /// changeset.
  bool may_be_changeset = false;
  Judges judges{};              ///< judge the zone as the change would leave it
  /// Judged in place of that zone, and before the changesets are computed: a file's own data, which
  /// are merged with updates afterwards. The source owns its blocks until `done`. Null: that zone.
  std::shared_ptr<const zone::BuiltZone> judged_data{};
  /// Called on the commit thread with the verdicts. An error ends the change in place of the next
  /// step. May be empty.
  std::function<Status(const Judgement& judgement)> judged{};
  /// Gives the judgement up; null: nobody does.
  std::shared_ptr<Progress> progress{};
  /// Asked on the commit thread, with the version that receives the change; may be empty.
  std::function<Status(const zone::StoreView& now)> check{};
  /// Called on the commit thread each time that a try was in vain and the changesets are computed
  /// anew: the zone has changed meanwhile, or has more names to sign than the commit thread may.
  /// May be empty.
  std::function<void()> again{};
  /// Called once, on the commit thread, after the publication. `content` is freed afterwards, in a
  /// builder thread. Errors: those of `content` and `check`; kInvalid: refused by a judge; kFull
  /// and kIo as for CommitRequest.
  std::function<void(const Result<ChangeOutcome>& outcome)> done = [](const auto&) {};
  /// Of a signed zone: names whose signatures that end before `renewed_before` are made anew.
  std::vector<dns::Name> renewed{};
  std::uint64_t renewed_before = 0;  ///< seconds since 1970

  [[nodiscard]] bool is_built() const noexcept {
    return std::holds_alternative<WholeZone>(content);
  }
  /// The data that the judges see without computing the change; null: it has to be computed first.
  [[nodiscard]] const zone::BuiltZone* known_data() const noexcept {
    const auto* data = std::get_if<WholeZone>(&content);
    return data != nullptr ? data->built.get() : judged_data.get();
  }
  /// A client or an operator relies on the change after the answer, so the journal has to have it.
  [[nodiscard]] bool is_acknowledged() const noexcept {
    return source == ChangeSource::kUpdate || source == ChangeSource::kEdit ||
           source == ChangeSource::kRollback;
  }
};

/// Steps of a change on its way to the store.
enum class ChangeStep : std::uint8_t {
  kWaiting,     ///< for a place among the changes that are computed
  kComputing,   ///< beside the commit thread
  kSigning,     ///< all of a built zone; the signatures of a changeset are part of its computing
  kJudging,     ///< signatures, then the zone's program
  kStaging,     ///< in the committer's queue
  kJournalling  ///< staged; published as soon as the journal is synced
};

[[nodiscard]] std::string_view to_text(ChangeSource source) noexcept;
[[nodiscard]] std::string_view to_text(ChangeStep step) noexcept;

}  // namespace pando::manager

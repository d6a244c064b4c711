#include "manager/secondary/attempt_runner.h"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "ipc/log.h"
#include "manager/secondary/primary_state.h"

namespace pando::manager {

namespace {

/// Limits of an IXFR, whose changesets stay in memory until complete. An IXFR may have kFewRecords
/// records or twice the zone's, but at most kMaxRecords records and kMaxChangesetBytes bytes.
/// Above a limit, the whole zone is requested instead.
constexpr std::uint64_t kFewRecords = 100'000;
constexpr std::uint64_t kMaxRecords = 1'000'000;
constexpr std::uint64_t kMaxChangesetBytes = std::uint64_t{256} << 20;

/// The served zone that an incoming whole zone is compared with, on the commit loop. A nearly equal
/// zone is applied as a changeset: equal data stays in place, and our own secondaries get an IXFR.
asio::awaitable<std::optional<ServedZone>> served(const AttemptRunner::Parts parts, dns::Name name,
                                                  std::shared_ptr<bool> alive) {
  if (!*alive) co_return std::nullopt;
  const zone::StoreView version = parts.committer.current();
  const zone::ZoneView zone = version.zone_at(name);
  if (!zone || !zone.loaded() || parts.has_expired(zone)) co_return std::nullopt;
  // The signer's records would count as removed: the road of changes compares the source.
  if (zone::primary_serial(zone) || is_signed_here(zone)) co_return std::nullopt;
  co_return ServedZone{zone, parts.slots.pin_own(version.version())};
}

/// The job of an attempt, but for its key and its calls.
TransferJob make_job(const RefreshAttempt& attempt, const RefreshCycle::Request& request) {
  const config::Settings& settings = attempt.runtime->settings;
  TransferJob job;
  job.zone = attempt.zone;
  job.primary = attempt.primary.endpoint;
  job.source = settings.server.transfer_source;
  job.whole_zone = request.whole_zone;
  job.limits.data = attempt.runtime->limits;
  job.limits.octets = settings.limits.transfer_size.of(settings.store.size_limit);
  job.limits.changesets.bytes = kMaxChangesetBytes;
  job.longest = settings.limits.transfer_time;
  job.progress = std::shared_ptr<TransferProgress>(attempt.share, &attempt.share->progress);
  return job;
}

/// Adds what follows from the served version.
void compare_with_served(TransferJob& job, const AttemptRunner::Parts& parts,
                         const RefreshCycle::Request& request) {
  const zone::ZoneView view = parts.committer.current().zone_at(job.zone);
  if (view)
    job.limits.changesets.records = std::clamp(2 * view.record_count(), kFewRecords, kMaxRecords);
  // An expired zone counts as absent (RFC 1034 §4.3.5), so any version of the primary is accepted.
  if (view && view.loaded() && !request.any_serial && !parts.has_expired(view))
    job.current = serial_at_primary(view);
  job.notified = request.notified && job.current && request.notified->ahead_of(*job.current);
}

/// The demand of `verify: refuse`: right signatures of the primary, or, where this server makes them,
/// a right digest (ZONEMD) of what the primary sends.
enum class Wanted : std::uint8_t { kNothing, kSignatures, kDigest };
Wanted wanted_of(const Runtime& runtime, const dns::Name& zone) {
  const auto* options = runtime.settings.zones.options_of(zone);
  if (options == nullptr || options->verify != config::SignaturePolicy::kRefuse)
    return Wanted::kNothing;
  return options->is_signed_here() ? Wanted::kDigest : Wanted::kSignatures;
}

AttemptOutcome attempt_failure(const Error& error, bool whole_may_succeed) {
  return {AttemptOutcome::End::kFailed, {}, error, whole_may_succeed};
}

}  // namespace

void AttemptRunner::run(const RefreshAttemptPtr& attempt, const RefreshCycle::Request& request,
                        bool may_compare) {
  attempt->runtime = runtime_;
  attempt->may_compare = may_compare && !request.any_serial;
  TransferJob job = make_job(*attempt, request);
  compare_with_served(job, parts_, request);
  if (attempt->may_compare)
    job.served = [parts = parts_, name = attempt->zone, alive = alive_] {
      return asio::co_spawn(parts.commit_loop, served(parts, name, alive), asio::use_awaitable);
    };
  if (attempt->primary.key) {
    job.key = attempt->runtime->keys.find(*attempt->primary.key);
    if (job.key == nullptr) {
      // Posted, because the end starts other attempts, and the caller may be that very loop.
      asio::post(parts_.commit_loop, [this, attempt, alive = alive_] {
        if (*alive)
          calls_.ended(attempt, attempt_failure(Error{Errc::kNotFound, "no such key"}, false));
      });
      return;
    }
  }
  asio::co_spawn(
      parts_.network.loop(),
      transfer_in(std::move(job), parts_.network.connections(), parts_.store,
                  parts_.network.builders()),
      [this, &loop = parts_.commit_loop, attempt, alive = alive_](
          const std::exception_ptr& thrown, Result<TransferResult, TransferFailure> result) {
        if (thrown)
          result = tl::unexpected<TransferFailure>(
              {{Errc::kIo, "transfer ended by an exception"}, false});
        auto handed = std::make_shared<Result<TransferResult, TransferFailure>>(std::move(result));
        asio::post(loop, [this, attempt, alive, handed] {
          if (*alive) transferred(attempt, std::move(*handed));
        });
      });
}

void AttemptRunner::transferred(const RefreshAttemptPtr& attempt,
                                Result<TransferResult, TransferFailure> result) {
  if (!result && result.error().silent) attempt->silence = result.error().error.text;
  if (!calls_.is_wanted(*attempt)) return calls_.ended(attempt, {});
  if (!result)
    return calls_.ended(attempt, attempt_failure(result.error().error, result.error().ixfr_asked));
  attempt->records = result->records;
  attempt->octets = result->octets;
  attempt->expire = result->expire;
  if (result->foreign_records > 0)
    log::warning("transfer_foreign_records", "zone", dns::to_text(attempt->zone), "primary",
                 to_text(attempt->primary.endpoint), "left_out", result->foreign_records);
  attempt->is_whole = result->content == TransferParser::Content::kZone;
  if (result->content == TransferParser::Content::kUpToDate)
    return calls_.ended(attempt, {AttemptOutcome::End::kUpToDate, result->serial});
  hand_in(attempt, std::move(*result));
}

/// The change of the received data, not verified yet. A zone sent whole may be a changeset here,
/// from the serial `compared`.
ZoneChange AttemptRunner::change_of(const RefreshAttemptPtr& attempt, TransferResult&& result) {
  ZoneChange change;
  change.zone = attempt->zone;
  change.source = ChangeSource::kTransfer;
  change.limits = attempt->runtime->limits;
  change.is_whole = attempt->is_whole;
  change.may_be_changeset = attempt->may_compare;
  change.check = [this, attempt, compared = result.compared,
                  alive = alive_](const zone::StoreView& version) -> Status {
    if (!*alive || !calls_.is_wanted(*attempt))
      return fail(Errc::kNotFound, "zone has other primaries now");
    if (auto may = parts_.hooks.may_change(attempt->zone); !may) return may;
    if (!compared) return {};
    const zone::ZoneView now = version.zone_at(attempt->zone);
    if (now && now.loaded() && now.serial() == *compared) return {};
    return fail(Errc::kExists, "zone changed during the transfer");
  };
  if (result.zone) {
    change.content = WholeZone{result.zone, std::move(*result.transaction)};
    return change;
  }
  for (const zone::Changeset& changes : result.changesets)
    change.records += changes.removed.size() + changes.added.size();
  change.content =
      std::make_shared<const std::vector<zone::Changeset>>(std::move(result.changesets));
  return change;
}

void AttemptRunner::hand_in(const RefreshAttemptPtr& attempt, TransferResult&& result) {
  const dns::Serial serial = result.serial;
  ZoneChange change = change_of(attempt, std::move(result));
  const Wanted wanted = wanted_of(*runtime_, attempt->zone);
  change.checks_digest = wanted == Wanted::kDigest;
  change.judges = {wanted == Wanted::kSignatures, parts_.hooks.verifier_of(attempt->zone),
                   parts_.hooks.is_verified};
  if (change.judges) {
    change.progress = std::make_shared<Progress>();
    attempt->program = change.judges.program;
    calls_.verifying(attempt, change.progress);
  }
  change.done = [this, attempt, serial, alive = alive_](const Result<ChangeOutcome>& outcome) {
    if (*alive) committed(attempt, serial, outcome);
  };
  parts_.road.submit(std::move(change));
}

/// An IXFR that does not fit, or that does not verify, may be the fault of our version: then the
/// whole zone has none. After a failure of disk or memory the IXFR is retried later: an AXFR would
/// need more memory, and would bypass the journal.
void AttemptRunner::committed(const RefreshAttemptPtr& attempt, dns::Serial serial,
                              const Result<ChangeOutcome>& outcome) {
  if (outcome) {
    if (outcome->left_out > 0)
      log::warning("transfer_signatures_left_out", "zone", dns::to_text(attempt->zone), "primary",
                   to_text(attempt->primary.endpoint), "left_out", outcome->left_out);
    return calls_.ended(attempt, {AttemptOutcome::End::kTransferred, serial});
  }
  if (!calls_.is_wanted(*attempt)) return calls_.ended(attempt, {});
  const Errc code = outcome.error().code;
  const bool is_unfit = code == Errc::kInvalid || code == Errc::kCorrupt || code == Errc::kNotFound;
  calls_.ended(attempt, attempt_failure(outcome.error(), !attempt->is_whole && is_unfit));
}

}  // namespace pando::manager

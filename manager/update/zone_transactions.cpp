#include "manager/update/zone_transactions.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/unix_time.h"
#include "dns/folded_key.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

Status check_serial(const zone::ZoneView& zone, std::optional<dns::Serial> wanted) {
  if (!wanted || zone.serial() == *wanted) return {};
  return fail(Errc::kExists, "{} has serial {}, not {}", to_text(zone.apex()), zone.serial().value,
              wanted->value);
}

Status check_served(const zone::ZoneView& zone, const dns::Name& name) {
  if (!zone) return fail(Errc::kNotFound, "no zone {}", to_text(name));
  if (!zone.loaded()) return fail(Errc::kNotFound, "{} is not loaded", to_text(name));
  return {};
}

const std::string& or_dash(const std::string& text) {
  static const std::string kDash = "-";
  return text.empty() ? kDash : text;
}

/// Each zone once: a repeated name is a slip of the command line.
Status check_names(const std::vector<dns::Name>& zones) {
  if (zones.empty()) return fail(Errc::kInvalid, "no zone is named");
  std::set<std::string> seen;
  for (const dns::Name& zone : zones)
    if (!seen.insert(dns::folded_key(zone)).second)
      return fail(Errc::kInvalid, "{} is named twice", to_text(zone));
  return {};
}

}  // namespace

/// A commit on its way. The transactions are not changed meanwhile, so a builder thread may read
/// them.
struct ZoneTransactions::Commit {
  struct Zone {
    TransactionPtr transaction;
    config::SerialPolicy policy{};
  };
  std::vector<Zone> zones;
  std::uint64_t records = 0;  ///< of all zones, approximately
  std::optional<dns::Serial> if_serial;
  std::uint64_t now = 0;
  zone::DataLimits limits;
  zone::Author author;
  Committed done;

  /// Any thread: reads the version and the transaction alone.
  Result<ComputedChange> compute(Zone& zone, const zone::StoreView& view) const {
    const Transaction& transaction = *zone.transaction;
    const zone::ZoneView present = view.zone_at(transaction.zone);
    if (auto served = check_served(present, transaction.zone); !served) return pass(served);
    for (const auto wanted : {transaction.if_serial, if_serial})
      if (auto same = check_serial(present, wanted); !same) return pass(same);
    auto changes = transaction.edits.changes(present, zone.policy, now);
    if (changes) changes->author = author;
    return ComputedChange::of(std::move(changes));
  }

  /// The change of zone `index`. The zone's role may change while the work is done, so the policy
  /// is asked again.
  static ZoneChange change(const std::shared_ptr<Commit>& commit, std::size_t index,
                           const Policy& policy) {
    const dns::Name& name = commit->zones[index].transaction->zone;
    ZoneChange change;
    change.zone = name;
    change.source = ChangeSource::kEdit;
    change.limits = commit->limits;
    change.check = [&policy, name](const zone::StoreView&) { return status_of(policy(name)); };
    change.content = [commit, index](const zone::StoreView& view) {
      return commit->compute(commit->zones[index], view);
    };
    return change;
  }
};

ZoneTransactions::ZoneTransactions(asio::io_context& io, const Committer& committer,
                                   ChangeRoad& road, Policy policy, Limits limits)
    : committer_(committer),
      road_(road),
      policy_(std::move(policy)),
      limits_(limits),
      timer_(io) {}

Result<ipc::TransactionList> ZoneTransactions::begin(const std::vector<dns::Name>& zones,
                                                     std::optional<dns::Serial> if_serial,
                                                     Session session, Session tied_to) {
  if (auto fine = check_names(zones); !fine) return pass(fine);
  const zone::StoreView current = committer_.current();
  for (const dns::Name& zone : zones) {
    if (auto policy = policy_(zone); !policy) return pass(policy);
    const zone::ZoneView present = current.zone_at(zone);
    if (auto served = check_served(present, zone); !served) return pass(served);
    if (auto same = check_serial(present, if_serial); !same) return pass(same);
    if (open_.contains(dns::folded_key(zone)))
      return fail(Errc::kExists, "{} has an open transaction: commit or abort it", to_text(zone));
  }
  if (open_.size() + zones.size() > limits_.transactions)
    return fail(Errc::kFull, "more than {} transactions would be open", limits_.transactions);
  ipc::TransactionList list;
  for (const dns::Name& zone : zones) {
    auto transaction = std::make_shared<Transaction>(zone);
    transaction->if_serial = if_serial;
    transaction->session = session;
    transaction->tied_to = tied_to;
    transaction->expires = expiry(session);
    list.transactions.push_back(row(*transaction));
    open_.emplace(dns::folded_key(zone), std::move(transaction));
  }
  expire_later();
  return list;
}

Result<ZoneTransactions::TransactionPtr> ZoneTransactions::usable(const dns::Name& zone,
                                                                  Session session) const {
  const auto found = open_.find(dns::folded_key(zone));
  if (found == open_.end())
    return fail(Errc::kNotFound, "{} has no open transaction (zone begin)", to_text(zone));
  if (session != 0 && found->second->session != session)
    return fail(Errc::kDenied, "the transaction of {} is another client's", to_text(zone));
  if (found->second->committing)
    return fail(Errc::kExists, "the transaction of {} is being committed", to_text(zone));
  return found->second;
}

/// The transaction is used now, so that its time begins anew.
Result<ZoneTransactions::TransactionPtr> ZoneTransactions::touch(const dns::Name& zone,
                                                                 Session session) {
  auto transaction = usable(zone, session);
  if (transaction) (*transaction)->expires = expiry((*transaction)->session);
  return transaction;
}

/// A program's transaction lasts for one request of its own: nobody thinks meanwhile.
ZoneTransactions::Clock::time_point ZoneTransactions::expiry(Session session) const {
  return Clock::now() + (session == 0 ? limits_.idle : limits_.idle_of_session);
}

Status ZoneTransactions::check_limits(const Transaction& transaction) const {
  if (transaction.edits.size() >= limits_.changes)
    return fail(Errc::kFull, "the transaction of {} has {} changes: commit it",
                to_text(transaction.zone), transaction.edits.size());
  if (transaction.edits.bytes() >= limits_.bytes)
    return fail(Errc::kFull, "the transaction of {} has {} bytes: commit it",
                to_text(transaction.zone), transaction.edits.bytes());
  return {};
}

ipc::TransactionRow ZoneTransactions::row(const Transaction& transaction) const {
  const zone::ZoneView zone = committer_.current().zone_at(transaction.zone);
  const std::int64_t left =
      std::chrono::ceil<std::chrono::seconds>(transaction.expires - Clock::now()).count();
  return {to_text(transaction.zone), zone && zone.loaded() ? zone.serial().value : 0,
          transaction.edits.size(),
          unix_seconds() + static_cast<std::uint64_t>(std::max(left, std::int64_t{0}))};
}

Result<ipc::TransactionRow> ZoneTransactions::set(const dns::Name& zone, dns::NameView owner,
                                                  dns::RRType type, std::optional<dns::Ttl> ttl,
                                                  ByteView rdata, Session session) {
  auto transaction = touch(zone, session);
  if (!transaction) return pass(transaction);
  if (auto fine = check_limits(**transaction); !fine) return pass(fine);
  if (auto set = (*transaction)->edits.set(owner, type, ttl, rdata); !set) return pass(set);
  return row(**transaction);
}

Result<ipc::TransactionRow> ZoneTransactions::unset(const dns::Name& zone, dns::NameView owner,
                                                    std::optional<dns::RRType> type,
                                                    std::optional<ByteView> rdata,
                                                    Session session) {
  auto transaction = touch(zone, session);
  if (!transaction) return pass(transaction);
  if (auto fine = check_limits(**transaction); !fine) return pass(fine);
  const zone::ZoneView present = committer_.current().zone_at(zone);
  if (auto unset = (*transaction)->edits.unset(present, owner, type, rdata); !unset)
    return pass(unset);
  return row(**transaction);
}

Result<zone::Changeset> ZoneTransactions::changes(const dns::Name& zone) const {
  auto transaction = usable(zone, 0);
  if (!transaction) return pass(transaction);
  auto policy = policy_(zone);
  if (!policy) return pass(policy);
  const zone::ZoneView present = committer_.current().zone_at(zone);
  if (auto served = check_served(present, zone); !served) return pass(served);
  return (*transaction)->edits.changes(present, *policy, unix_seconds());
}

Result<std::shared_ptr<ZoneTransactions::Commit>> ZoneTransactions::prepare(
    const std::vector<dns::Name>& zones, std::optional<dns::Serial> if_serial, Session session) {
  if (auto fine = check_names(zones); !fine) return pass(fine);
  auto commit = std::make_shared<Commit>();
  std::uint64_t records = 0;
  for (const dns::Name& zone : zones) {
    auto transaction = touch(zone, session);
    if (!transaction) return pass(transaction);
    auto policy = policy_(zone);
    if (!policy) return pass(policy);
    records += (*transaction)->edits.records(committer_.current().zone_at(zone));
    commit->zones.push_back({*transaction, *policy});
  }
  if (zones.size() > 1 && records > limits_.together)
    return fail(Errc::kFull, "{} records of several zones: at most {} are committed together",
                records, limits_.together);
  commit->records = records;
  commit->if_serial = if_serial;
  commit->now = unix_seconds();
  return commit;
}

void ZoneTransactions::commit(const std::vector<dns::Name>& zones,
                              std::optional<dns::Serial> if_serial, const zone::DataLimits& limits,
                              const Committed& done, Session session, const zone::Author& author) {
  auto commit = prepare(zones, if_serial, session);
  if (!commit) return done(pass(commit));
  // Records of the operator have no limits, as those of a zone file. Those of a session come from
  // a program's clients, and have the limits of updates.
  (*commit)->limits = session == 0 ? limits.of_history() : limits;
  (*commit)->done = done;
  (*commit)->author = author;
  for (const Commit::Zone& zone : (*commit)->zones) zone.transaction->committing = true;
  if (zones.size() == 1) {
    ZoneChange change = Commit::change(*commit, 0, policy_);
    change.records = (*commit)->records;
    change.done = [this, commit = *commit](const Result<ChangeOutcome>& outcome) {
      outcome ? finish(*commit, std::span(&*outcome, 1)) : finish(*commit, pass(outcome));
    };
    return road_.submit(std::move(change));
  }
  std::vector<ZoneChange> changes;
  for (std::size_t i = 0; i < zones.size(); ++i)
    changes.push_back(Commit::change(*commit, i, policy_));
  road_.submit_together(std::move(changes),
                        [this, commit = *commit](const Result<std::vector<ChangeOutcome>>& all) {
                          all ? finish(*commit, std::span(*all)) : finish(*commit, pass(all));
                        });
}

void ZoneTransactions::finish(Commit& commit,
                              const Result<std::span<const ChangeOutcome>>& outcomes) {
  for (const Commit::Zone& zone : commit.zones) {
    zone.transaction->committing = false;
    if (outcomes || zone.transaction->abandoned)
      open_.erase(dns::folded_key(zone.transaction->zone));
  }
  if (!outcomes) {
    expire_later();
    return commit.done(pass(outcomes));
  }
  ipc::ZoneCommitResult result;
  for (std::size_t i = 0; i < commit.zones.size(); ++i) {
    const zone::Applied& applied = (*outcomes)[i].applied;
    const ipc::CommittedZone zone{to_text(commit.zones[i].transaction->zone), applied.from.value,
                                  applied.to.value, applied.effective.removed.size(),
                                  applied.effective.added.size()};
    log::info("transaction_committed", "zone", zone.zone, "serial", zone.to, "removed",
              zone.removed, "added", zone.added, "by", or_dash(commit.author.name), "client",
              or_dash(commit.author.client));
    result.committed.push_back(zone);
  }
  commit.done(std::move(result));
}

Status ZoneTransactions::abort(const std::vector<dns::Name>& zones, Session session) {
  if (auto fine = check_names(zones); !fine) return fine;
  for (const dns::Name& zone : zones)
    if (auto transaction = usable(zone, session); !transaction) return pass(transaction);
  for (const dns::Name& zone : zones) open_.erase(dns::folded_key(zone));
  return {};
}

void ZoneTransactions::end_connection(Session number) {
  std::erase_if(open_, [number](const auto& entry) {
    Transaction& transaction = *entry.second;
    if (transaction.tied_to != number) return false;
    transaction.abandoned = true;
    return !transaction.committing;
  });
}

void ZoneTransactions::forget_gone_zones() {
  std::erase_if(open_, [this](const auto& entry) {
    Transaction& transaction = *entry.second;
    const auto policy = policy_(transaction.zone);
    if (policy || policy.error().code != Errc::kNotFound) return false;
    transaction.abandoned = true;
    return !transaction.committing;
  });
}

std::optional<ipc::TransactionRow> ZoneTransactions::find(const dns::Name& zone) const {
  const auto found = open_.find(dns::folded_key(zone));
  if (found == open_.end()) return std::nullopt;
  return row(*found->second);
}

void ZoneTransactions::expire_later() {
  if (waiting_ || open_.empty()) return;
  waiting_ = true;
  const auto first = std::min_element(
      open_.begin(), open_.end(),
      [](const auto& a, const auto& b) { return a.second->expires < b.second->expires; });
  // A transaction that is being committed may be due already.
  timer_.expires_at(std::max(first->second->expires, Clock::now() + std::chrono::seconds(1)));
  timer_.async_wait([this](const asio::error_code& error) {
    waiting_ = false;
    if (!error) expire();
  });
}

void ZoneTransactions::expire() {
  std::erase_if(open_, [now = Clock::now()](const auto& entry) {
    const Transaction& transaction = *entry.second;
    const bool due = !transaction.committing && transaction.expires <= now;
    if (due)
      log::warning("transaction_expired", "zone", to_text(transaction.zone), "changes",
                   transaction.edits.size());
    return due;
  });
  expire_later();
}

}  // namespace pando::manager

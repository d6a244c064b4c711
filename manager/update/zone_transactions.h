#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipc/control_results.h"
#include "manager/change/change_road.h"
#include "manager/update/record_edits.h"

namespace pando::manager {

/// Transactions on records of primary zones, by commands: at most one for each zone. They live here
/// and not in a connection: a client may use several connections, and every operator can abort the
/// transaction of a client that died. An unused transaction expires. Those of a session end with
/// its connection, and so does one whose client wants that.
///
/// Updates go on meanwhile: the edits are applied to the version that is there at the commit. Lives
/// on the commit thread.
class ZoneTransactions {
 public:
  struct Limits {
    std::size_t transactions = 64;
    std::size_t changes = 20'000;              ///< of one transaction
    std::size_t bytes = std::size_t{8} << 20;  ///< of one transaction, approximately
    /// Records changed by a commit of several zones, which is staged on the commit thread: some 10
    /// ms. A single zone is worked out beside it.
    std::uint64_t together = 4000;
    std::chrono::seconds idle{600};
    std::chrono::seconds idle_of_session{60};
  };
  /// Number of the connection that a request came from; 0: of an operator, who may use all
  /// transactions. Others use those that their connection opened.
  using Session = std::uint64_t;
  /// The policy for a zone's serial; an error for a zone whose records cannot be edited.
  using Policy = std::function<Result<config::SerialPolicy>(const dns::Name&)>;
  using Committed = std::function<void(Result<ipc::ZoneCommitResult>)>;

  /// References outlive the object.
  ZoneTransactions(asio::io_context& io, const Committer& committer, ChangeRoad& road,
                   Policy policy, Limits limits);

  /// Opens a transaction for each zone, or for none. kExists: one of them has a transaction, or
  /// another serial than `if_serial`. `tied_to`: number of the connection with which they end.
  Result<ipc::TransactionList> begin(const std::vector<dns::Name>& zones,
                                     std::optional<dns::Serial> if_serial, Session session = 0,
                                     Session tied_to = 0);
  /// See RecordEdits; kNotFound also without a transaction. kFull: the transaction's limits.
  /// kDenied, here and below: the transaction is another session's.
  Result<ipc::TransactionRow> set(const dns::Name& zone, dns::NameView owner, dns::RRType type,
                                  std::optional<dns::Ttl> ttl, ByteView rdata,
                                  Session session = 0);
  Result<ipc::TransactionRow> unset(const dns::Name& zone, dns::NameView owner,
                                    std::optional<dns::RRType> type,
                                    std::optional<ByteView> rdata, Session session = 0);
  /// The changeset that a commit would publish now.
  [[nodiscard]] Result<zone::Changeset> changes(const dns::Name& zone) const;
  /// Publishes the edits of all zones as one version, durable before `done` is called, or none of
  /// them. After an error the transactions stay open. `author`: for the journal and the history.
  void commit(const std::vector<dns::Name>& zones, std::optional<dns::Serial> if_serial,
              const zone::DataLimits& limits, const Committed& done, Session session = 0,
              const zone::Author& author = {});
  /// Forgets the transactions of all zones, or of none. kNotFound.
  Status abort(const std::vector<dns::Name>& zones, Session session = 0);
  /// Forgets the transactions that end with this connection. A commit on its way goes on.
  void end_connection(Session number);

  /// Forgets the transactions of zones that are configured no more: a zone that gets the name later
  /// is another one.
  void forget_gone_zones();

  [[nodiscard]] std::size_t size() const noexcept { return open_.size(); }
  /// The open transaction of a zone, for its status.
  [[nodiscard]] std::optional<ipc::TransactionRow> find(const dns::Name& zone) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Transaction {
    explicit Transaction(const dns::Name& name) : zone(name), edits(name) {}
    dns::Name zone;
    RecordEdits edits;
    std::optional<dns::Serial> if_serial;
    Session session = 0;
    Session tied_to = 0;
    Clock::time_point expires;
    bool committing = false;
    bool abandoned = false;  ///< its connection or its zone went during the commit
  };
  using TransactionPtr = std::shared_ptr<Transaction>;
  struct Commit;

  [[nodiscard]] Result<TransactionPtr> usable(const dns::Name& zone, Session session) const;
  Result<TransactionPtr> touch(const dns::Name& zone, Session session);
  [[nodiscard]] Clock::time_point expiry(Session session) const;
  Status check_limits(const Transaction& transaction) const;
  [[nodiscard]] ipc::TransactionRow row(const Transaction& transaction) const;
  [[nodiscard]] Result<std::shared_ptr<Commit>> prepare(const std::vector<dns::Name>& zones,
                                                        std::optional<dns::Serial> if_serial,
                                                        Session session);
  void finish(Commit& commit, const Result<std::span<const ChangeOutcome>>& outcomes);
  void expire_later();
  void expire();

  const Committer& committer_;
  ChangeRoad& road_;
  Policy policy_;
  Limits limits_;
  std::map<std::string, TransactionPtr> open_;  // by dns::folded_key()
  asio::steady_timer timer_;
  bool waiting_ = false;
};

}  // namespace pando::manager

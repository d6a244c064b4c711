#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/support/busy_zone_names.h"
#include "manager/update/zone_transactions.h"

namespace pando::manager {

/// The commands that read a zone's records and history, explain answers, tell which zones are asked
/// for most, and edit records in a transaction. Lives on the commit thread; pages are read in pool
/// threads.
class RecordControl {
 public:
  RecordControl(asio::io_context& io, asio::thread_pool& pool, ServerParts parts);

  void add_to(CommandTable& table);
  /// See ZoneTransactions.
  void end_connection(std::uint64_t number) { transactions_.end_connection(number); }
  void forget_gone_zones() { transactions_.forget_gone_zones(); }

 private:
  using Request = CommandTable::Request;
  using Reply = CommandTable::Reply;
  /// Makes one page from the zone; in a pool thread.
  using MakeResultPage = std::function<Result<nlohmann::json>(const zone::ZoneView&)>;
  void read_in_pool(const dns::Name& zone, MakeResultPage page, const Reply& reply);
  void read(const dns::Name& zone, const Request& request, const Reply& reply);
  void diff(const dns::Name& zone, const Request& request, const Reply& reply);
  void history(const dns::Name& zone, const Request& request, const Reply& reply);
  void queries(const Request&, const Reply& reply);
  void explain_answer(const Request& request, const Reply& reply);
  [[nodiscard]] Result<nlohmann::json> diff_of_transaction(const Request& request,
                                                           const dns::Name& zone) const;
  Result<nlohmann::json> begin(const Request& request);
  Result<nlohmann::json> set(const Request& request);
  Result<nlohmann::json> set_record(const Request& request);
  Result<nlohmann::json> unset(const Request& request);
  void commit(const Request& request, const Reply& reply);
  Result<nlohmann::json> abort(const Request& request);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  ServerParts parts_;
  BusyZoneNames busy_;
  ZoneTransactions transactions_;
};

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/update/zone_transactions.h"

namespace pando::manager {

/// The commands that read a zone's records and history, explain answers, and edit records in a
/// transaction. Lives on the commit thread; pages are read in pool threads.
class RecordControl {
 public:
  /// The parts that the commands use. All outlive the object.
  struct Parts {
    const CurrentConfiguration& configuration;
    OpenedData& data;
    StoreServices& services;
    const FrozenZones& frozen;
  };

  RecordControl(asio::io_context& io, asio::thread_pool& pool, Parts parts);

  void add_to(CommandTable& table);
  void end_session(std::uint64_t session) { transactions_.end_session(session); }

 private:
  using Request = ipc::ControlRequest;
  using Reply = CommandTable::Reply;
  /// Makes a result from the present version; in a pool thread.
  using Work = std::function<Result<nlohmann::json>(const zone::StoreView&)>;
  void work_in_pool(Work work, const Reply& reply);
  /// Makes one page from the zone; in a pool thread.
  using MakeResultPage = std::function<Result<nlohmann::json>(const zone::ZoneView&)>;
  void read_in_pool(const dns::Name& zone, MakeResultPage page, const Reply& reply);
  void read(const Request& request, const Reply& reply);
  void diff(const Request& request, const Reply& reply);
  void history(const Request& request, const Reply& reply);
  void explain_answer(const Request& request, const Reply& reply);
  [[nodiscard]] Result<nlohmann::json> diff_of_transaction(const Request& request,
                                                           const dns::Name& zone) const;
  Result<nlohmann::json> begin(const Request& request);
  Result<nlohmann::json> set(const Request& request);
  Result<nlohmann::json> unset(const Request& request);
  void commit(const Request& request, const Reply& reply);
  Result<nlohmann::json> abort(const Request& request);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Parts parts_;
  ZoneTransactions transactions_;
};

}  // namespace pando::manager

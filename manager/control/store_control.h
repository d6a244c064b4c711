#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"
#include "manager/start/startup.h"
#include "manager/support/background_threads.h"

namespace pando::manager {

/// The commands on the whole store and its journal: audit, checkpoint, copy, dump, hand-over and
/// printing of records.
class StoreControl {
 public:
  /// `handed_over`: the dump for the next manager is there and its reply sent; workers can be left.
  StoreControl(asio::io_context& io, asio::thread_pool& pool, ServerParts parts,
               std::function<void()> handed_over);

  void add_to(CommandTable& table);
  /// The process ends: a copy or dump under way is given up.
  void stop() { *ending_ = true; }
  /// Waits for the threads that write copies and dumps.
  void join();

 private:
  using Request = CommandTable::Request;
  using Reply = CommandTable::Reply;
  using DumpDone = std::function<void(Result<nlohmann::json>)>;
  void audit(const Request& request, const Reply& reply);
  void write_checkpoint(const Request&, const Reply& reply);
  [[nodiscard]] Status check_target(const Request& request, bool (*may_replace)(ByteView)) const;
  void copy(const Request& request, const Reply& reply);
  void dump(const Request& request, const Reply& reply);
  void write_dump(const std::string& path, std::shared_ptr<StoreFile> into, const DumpDone& done);
  void hand_over(const Request&, const Reply& reply);
  void print_records(const Request& request, const Reply& reply);
  asio::thread_pool& writers();

  asio::io_context& io_;
  asio::thread_pool& pool_;
  ServerParts parts_;
  std::function<void()> handed_over_;
  std::optional<BackgroundThreads> writers_;  // of copies and dumps, once one was asked for
  std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
  bool copying_ = false;
  bool dumping_ = false;
};

}  // namespace pando::manager

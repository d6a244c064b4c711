#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <nlohmann/json_fwd.hpp>

#include "ipc/control_results.h"
#include "manager/control/command_table.h"
#include "manager/start/server_parts.h"

namespace pando::manager {

/// The commands about zones that are signed here: what is known of their keys and stages, and what
/// an operator knows of their parents. Lives on the commit thread.
class DnssecControl {
 public:
  DnssecControl(asio::io_context& io, asio::thread_pool& pool, ServerParts parts)
      : io_(io), pool_(pool), parts_(parts) {}

  void add_to(CommandTable& table);

 private:
  using Request = CommandTable::Request;
  using Reply = CommandTable::Reply;
  [[nodiscard]] Result<nlohmann::json> list(const Request& request) const;
  void status(const dns::Name& zone, const Request& request, const Reply& reply);
  void check(const dns::Name& zone, const Request& request, const Reply& reply);
  void import_key(const dns::Name& zone, const Request& request, const Reply& reply);
  void note_ds(const dns::Name& zone, const Request& request, const Reply& reply);
  void unsign(const dns::Name& zone, const Request& request, const Reply& reply);
  void roll(const dns::Name& zone, const Request& request, const Reply& reply);
  void continue_roll(const dns::Name& zone, const Request& request, const Reply& reply);
  void hold_roll(const dns::Name& zone, const Request& request, const Reply& reply);
  void restore_key(const dns::Name& zone, const Request& request, const Reply& reply);
  void stay_signed(const dns::Name& zone, const Request& request, const Reply& reply);
  [[nodiscard]] std::string policy_of(const dns::Name& zone) const;
  [[nodiscard]] Result<const SigningFacts*> facts_of(const dns::Name& zone) const;
  void show_roll(const dns::Name& zone, ipc::DnssecStatusResult& result) const;
  [[nodiscard]] std::string stage_of(const dns::Name& zone) const;

  asio::io_context& io_;
  asio::thread_pool& pool_;
  ServerParts parts_;
};

}  // namespace pando::manager

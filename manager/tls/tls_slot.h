#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "ipc/channel.h"
#include "ipc/tls_messages.h"
#include "manager/launch/watched_process.h"
#include "manager/workers/rules/restart_pause.h"

namespace pando::manager {

/// One slot and the process of pando-tls in it, if any. Its listening sockets outlive the process.
struct TlsSlot {
  TlsSlot(asio::io_context& io, std::uint32_t slot_number) : number(slot_number), step(io) {}

  std::uint32_t number;
  std::optional<WatchedProcess> process;
  std::shared_ptr<ipc::Channel> link;  ///< after its Hello
  bool has_certificate = false;        ///< this process uses a pair
  bool listens = false;                ///< it has the sockets
  std::set<std::uint32_t> sent{};      ///< numbers of the sockets that this process has
  bool leaving = false;                ///< it was told to stop, and the slot ends with it
  RestartPause restarts;
  asio::steady_timer step;  ///< the next one of its life: restart, deadline of Hello or stop
  std::string build;
  ipc::TlsCounts counts;
};

}  // namespace pando::manager

#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "tls/control_link.h"
#include "tls/relay/client_table.h"
#include "tls/relay/listener_set.h"
#include "tls/relay/worker_links.h"
#include "tls/session/server_context.h"

namespace pando::tls {

struct TlsServiceOptions {
  std::uint32_t slot = 0;
  std::string run_directory;
  std::string build;  ///< own_build()
};

/// The whole process: one loop, the connection to the manager, and what it orders.
class TlsService {
 public:
  TlsService(asio::io_context& io, const TlsServiceOptions& options);
  void start();

 private:
  void take(ipc::TlsCertificate&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsTicketKeys&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsDemands&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsLimits&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsListen&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsUnlisten&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsWorker&& message, std::vector<Fd>&& descriptors);
  void take(ipc::Logging&& message, std::vector<Fd>&& descriptors);
  void take(ipc::TlsStop&& message, std::vector<Fd>&& descriptors);
  void tell_counts();
  void stop(std::chrono::milliseconds grace);
  void stop_step();

  asio::io_context& io_;
  TlsServiceOptions options_;
  ServerContext context_;
  WorkerLinks workers_;
  ClientTable clients_;
  ListenerSet listeners_;
  ControlLink control_;
  asio::signal_set signals_;
  asio::steady_timer counts_timer_;
  ipc::TlsCounts told_;
  Bytes demands_;  ///< as they came last
  asio::steady_timer stop_timer_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point stop_deadline_;
};

}  // namespace pando::tls

#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "worker/net/core.h"
#include "worker/tap/taps.h"
#include "worker/net/manager_link.h"
#include "worker/net/tcp_service.h"
#include "worker/net/tls_intake.h"
#include "worker/net/udp_service.h"
#include "worker/request/key_set.h"
#include "worker/xdp/xdp_service.h"

namespace pando::worker {

struct ServiceOptions {
  std::uint32_t slot = 0;
  std::string run_directory;
  std::uint64_t layout = 0;  ///< zone::layout_fingerprint()
  std::string build;         ///< own_build()
};

/// The whole worker: one loop, the connection to the manager, and the sockets it passes.
class Service {
 public:
  /// Exit code of a worker that the manager has no use for.
  static constexpr int kNotWanted = 3;

  Service(asio::io_context& io, const ServiceOptions& options);
  void start();
  /// 0 after an orderly stop; on any other code the manager starts another worker.
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  ManagerLink::Handlers link_handlers();
  [[nodiscard]] std::vector<std::pair<ipc::SocketDescription, int>> sockets() const;
  void set_up(const ipc::Setup& setup, shm::SlotLoan files, Fd image);
  void serve(ipc::Sockets&& message, std::vector<Fd>&& descriptors);
  void serve_one(const ipc::SocketDescription& description, Fd socket);
  void close(const ipc::CloseSockets& message);
  DnstapWriter::Calls dnstap_calls();
  QueryLog::Count query_log_count();
  void taps_changed();
  void drained(std::uint32_t socket);
  void await_signals();

  void stop(std::chrono::milliseconds grace);
  void stop_step();
  void leave();
  void sent_away(const ipc::SentAway& away);
  void fail(const std::string& reason);

  asio::io_context& io_;
  ServiceOptions options_;
  ManagerLink link_;
  Core core_;
  Taps taps_;
  KeyCollector keys_;
  UdpService udp_;
  TcpService tcp_;
  TlsIntake tls_;
  XdpService xdp_;
  asio::signal_set signals_;
  asio::steady_timer stop_timer_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point stop_begun_;
  std::chrono::steady_clock::time_point stop_deadline_;
  int exit_code_ = 0;
};

}  // namespace pando::worker

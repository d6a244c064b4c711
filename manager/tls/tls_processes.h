#pragma once

#include <asio/generic/seq_packet_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "ipc/tls_messages.h"
#include "manager/launch/launcher.h"
#include "manager/support/rate_limited_log.h"
#include "manager/tls/tls_slot.h"
#include "manager/workers/listeners.h"

namespace pando::manager {

/// What pando-tls needs from the configuration, but for the certificate.
struct TlsOptions {
  std::vector<Endpoint> listen;  ///< none: no process
  std::uint32_t processes = 1;
  ipc::TlsLimits limits{};
  std::vector<ipc::TlsDemand> demands{};
  ipc::Logging logging{};
};

/// Starts, watches, replaces and stops the processes of pando-tls, and connects them to the workers.
/// A process gets its listening sockets once it has a certificate that it can use. Everything runs
/// on `io`'s one thread.
class TlsProcesses {
 public:
  struct Rights {
    const Launcher* launcher = nullptr;  ///< null: this process starts them itself
    WorkerCommand command{};             ///< used without a launcher
    std::uint32_t uid = 0;               ///< of the processes
    std::optional<std::uint32_t> group{};  ///< may connect to our socket; none: everybody
  };
  struct Calls {
    /// Passes the worker of a slot its end of a connection to a process; false: there is none.
    std::function<bool(std::uint32_t worker, const ipc::TlsIntake&, Fd)> lend;
    /// The slots whose workers serve.
    std::function<std::vector<std::uint32_t>()> workers;
  };
  struct Status {
    std::uint32_t slot = 0;
    std::int32_t pid = 0;
    bool serving = false;
    std::uint32_t restarts = 0;
    std::string build{};
    ipc::TlsCounts counts{};
  };

  TlsProcesses(asio::io_context& io, std::string run_directory, Rights rights, Calls calls);
  ~TlsProcesses();
  TlsProcesses(const TlsProcesses&) = delete;
  TlsProcesses& operator=(const TlsProcesses&) = delete;

  /// Opens the socket in the run directory, and takes listening sockets of socket units at the
  /// addresses `listen`.
  pando::Status open(std::vector<systemd::InheritedDescriptor> inherited,
                     const std::vector<Endpoint>& listen);
  /// For present and future processes. Errors of listening sockets.
  std::vector<std::string> configure(TlsOptions options);
  /// A file for ipc::TlsCertificate; null: there is none, or none that could be used. The processes
  /// refuse one that is no pair: the one before stays in use.
  void set_certificate(const std::shared_ptr<const Fd>& file);
  /// From now on there are workers, so that processes may start.
  void start();
  /// The slot's worker serves from now on.
  void worker_serves(std::uint32_t slot);
  /// An interface that the addresses name may have come or gone.
  void follow_interfaces();

  /// Stops all processes; `done` when they have gone, by force after the grace.
  void stop(std::function<void()> done);
  /// Leaves them to the next manager, which lets them finish.
  void abandon();

  [[nodiscard]] std::vector<Status> status() const;
  [[nodiscard]] const Listeners& listeners() const noexcept { return listeners_; }

 private:
  using Link = std::shared_ptr<ipc::Channel>;
  using File = std::shared_ptr<const Fd>;
  struct Certificate {
    File good;     ///< in use
    File offered;  ///< not judged by a process yet
  };

  void accept_next();
  void accept_waiting();
  void take_connection(Fd socket);
  void take_first(const Link& link, pid_t pid, ipc::Packet&& packet);
  void greet(const Link& link, pid_t pid, const ipc::TlsHello& hello);
  void take(TlsSlot& slot, ipc::Packet&& packet);
  void certificate_judged(TlsSlot& slot, const std::string& fault);

  void adapt_number();
  void launch(TlsSlot& slot);
  void launch_after(TlsSlot& slot, std::chrono::milliseconds pause);
  void ended(TlsSlot& slot);
  void end(TlsSlot& slot, std::uint32_t grace_ms);
  void kill(TlsSlot& slot);
  void send_settings(TlsSlot& slot);
  void send_certificate(TlsSlot& slot, const File& file);
  void send_sockets(TlsSlot& slot);
  void send_demands(TlsSlot& slot);
  void connect(TlsSlot& slot, std::uint32_t worker);
  void tell(TlsSlot& slot, const ipc::ToTls& message, std::vector<Fd> descriptors = {});
  void renew_ticket_keys();
  template <class Step>
  void after(asio::steady_timer& timer, std::chrono::milliseconds pause, Step step);

  asio::io_context& io_;
  std::string run_directory_;
  Rights rights_;
  Calls calls_;
  Listeners listeners_;
  TlsOptions options_;
  Certificate certificate_;
  ipc::TlsTicketKeys tickets_;
  asio::steady_timer tickets_timer_;
  asio::generic::seq_packet_protocol::socket listening_;
  asio::steady_timer accept_pause_;
  std::set<Link> before_hello_;
  std::map<std::uint32_t, TlsSlot> slots_;
  bool started_ = false;
  std::function<void()> stopped_;  ///< set while all processes end
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace pando::manager

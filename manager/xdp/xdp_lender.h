#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "config/settings/settings.h"
#include "ipc/control_results.h"
#include "ipc/worker_messages.h"
#include "manager/xdp/attachment.h"

namespace pando::manager {

/// server.xdp, and the addresses whose queries go past the kernel's sockets.
struct XdpOptions {
  std::vector<config::XdpInterface> interfaces;
  std::vector<Endpoint> listen;
  bool operator==(const XdpOptions&) const = default;
};

/// A queue that a worker hands back to a manager that follows another.
struct AdoptedXdpQueue {
  ipc::XdpQueue queue;
  Fd socket;
  Fd link;
};

/// Attaches the program to the interfaces of server.xdp, and lends their receive queues to workers:
/// queue q to the q-th slot, counted round. A slot has its queue for itself once its worker has put
/// frames into the ring, and until the worker ends or the queue is taken back.
/// Before and after that, frames pass to the kernel's sockets. A failure leaves all frames to the
/// sockets, and the step is tried again.
class XdpLender {
 public:
  struct Calls {
    /// Tells the worker of a slot; false when there is none.
    std::function<bool(std::uint32_t slot, const ipc::ServeXdp&, std::vector<Fd>)> serve;
    std::function<void(std::uint32_t slot, const ipc::CloseXdp&)> close;
    /// Slots that are not about to leave, in their order, whether or not a worker is in them.
    std::function<std::vector<std::uint32_t>()> slots;
    /// Slots whose workers serve.
    std::function<std::vector<std::uint32_t>()> serving;
  };

  XdpLender(asio::io_context& io, XdpOptions options, Calls calls);
  ~XdpLender();
  XdpLender(const XdpLender&) = delete;
  XdpLender& operator=(const XdpLender&) = delete;

  /// For a reload.
  void set(XdpOptions options);
  /// A worker that has said Hello serves these queues. Call it before worker_came().
  void adopt(std::uint32_t slot, std::vector<AdoptedXdpQueue>&& queues);
  /// A worker of another layout is about to be succeeded: its links are of use, its sockets are
  /// not.
  void adopt_links(std::vector<AdoptedXdpQueue>&& queues);
  /// The slot has a worker that is served from now on.
  void worker_came(std::uint32_t slot);
  /// The slot's worker is told to stop soon: no frame reaches it any more.
  void worker_leaves(std::uint32_t slot);
  /// The slot's process has ended, and the kernel has closed its sockets.
  void worker_ended(std::uint32_t slot);
  void queue_served(std::uint32_t slot, const ipc::XdpQueue& queue);
  void queue_closed(std::uint32_t slot, const ipc::XdpQueue& queue);
  /// All workers stop: no frame reaches them any more.
  void stop();
  /// Forgets all without a word; workers go on with their queues.
  void abandon();

  [[nodiscard]] std::vector<ipc::XdpRow> status() const;

 private:
  struct Holder {
    std::uint32_t slot = 0;
    Fd socket{};           ///< until the program's map has it
    bool in_map = false;   ///< frames go there
    bool closing = false;  ///< the worker was asked to close it
    bool zero_copy = false;
  };
  struct Interface {
    config::XdpInterface what;
    bool wanted = true;  ///< it is in the configuration
    InterfaceFacts facts;
    std::optional<XdpAttachment> attachment;
    Fd link;  ///< of an earlier manager's program
    std::string problem;
    std::map<std::uint32_t, Holder> holders;  ///< by queue

    [[nodiscard]] std::uint32_t queues() const noexcept;
  };

  Interface& interface_named(const std::string& name);
  void balance();
  void balance_one(Interface& interface, const std::vector<std::uint32_t>& slots);
  void attach(Interface& interface);
  void lend(Interface& interface, std::uint32_t queue, std::uint32_t slot);
  void put_in_map(Interface& interface, std::uint32_t queue, Holder& holder);
  void take_back(Interface& interface, std::uint32_t queue, Holder& holder);
  void take_all_back(Interface& interface);
  void detach(Interface& interface);
  void drop_unwanted();
  void refresh(Interface& interface);
  void note_problem(Interface& interface, std::string problem);
  void balance_soon();
  void tick();

  Calls calls_;
  XdpOptions options_;
  bool started_ = false;  ///< a worker serves, so all workers of the last manager have come
  std::map<std::string, Interface> interfaces_;
  asio::steady_timer tick_timer_;
  asio::steady_timer soon_timer_;
  std::uint32_t soon_rounds_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace pando::manager

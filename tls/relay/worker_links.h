#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "ipc/channel.h"
#include "ipc/tls_messages.h"

namespace pando::tls {

/// The connections to the workers, which get clients by turns.
class WorkerLinks {
 public:
  explicit WorkerLinks(asio::io_context& io) : io_(io) {}
  ~WorkerLinks();
  WorkerLinks(const WorkerLinks&) = delete;
  WorkerLinks& operator=(const WorkerLinks&) = delete;

  void add(std::uint32_t slot, Fd connection);
  /// Gives the client to the next worker that takes it; our end of its stream. None: no worker takes
  /// it.
  std::optional<Fd> give(const ipc::TlsConnection& client);

 private:
  /// Some 300 clients: a worker that leaves more unread is stuck.
  static constexpr std::size_t kMaxQueuedBytes = std::size_t{32} << 10;

  void forget(std::uint32_t slot, const ipc::Channel* channel);

  asio::io_context& io_;
  std::map<std::uint32_t, std::shared_ptr<ipc::Channel>> workers_;
  std::uint32_t next_ = 0;  ///< the slot whose turn it is, or the next one after it
};

}  // namespace pando::tls

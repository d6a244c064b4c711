#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ipc/packet_socket.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_table.h"
#include "shm/slots.h"
#include "shm/store.h"

extern char** environ;

/// The surroundings of the parts of a worker pool.
namespace pando::manager::testing {

/// A directory with a store and slot files, and nothing running in it.
class PoolDirectory {
 public:
  static constexpr std::uint64_t kLayout = 7;

  PoolDirectory() {
    char pattern[] = "/dev/shm/pando-pool-XXXXXX";
    path_ = ::mkdtemp(pattern);
    shm::StoreOptions store;
    store.path = path_ + "/zones.store";
    store.size_limit = std::uint64_t{16} << 20;
    store.layout = kLayout;
    store_.emplace(shm::Store::create(store).value());
    slots_.emplace(shm::SlotTable::open(path_ + "/slots", store.path, kLayout).value());
    options_.run_directory = path_;
    options_.layout = kLayout;
    options_.stop_grace_ms = 200;
  }
  ~PoolDirectory() {
    slots_.reset();
    store_.reset();
    std::filesystem::remove_all(path_);
  }
  PoolDirectory(const PoolDirectory&) = delete;
  PoolDirectory& operator=(const PoolDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  shm::SlotTable& slots() { return *slots_; }
  WorkerPoolOptions& options() { return options_; }

 private:
  std::string path_;
  std::optional<shm::Store> store_;
  std::optional<shm::SlotTable> slots_;
  WorkerPoolOptions options_;
};

/// A stopped process that looks like the worker of a slot, and ends with this object. A SIGCONT
/// does not end it: others of the host may have been paused all together, and this one with them.
class WorkerProcess {
 public:
  WorkerProcess(const std::string& run_directory, std::uint32_t slot) {
    const std::string program = run_directory + "/pando-worker";
    std::error_code exists;
    std::filesystem::create_symlink("/bin/sh", program, exists);
    std::vector<std::string> words{program,
                                   "-c",
                                   "while :; do kill -STOP $$; done",
                                   "--slot",
                                   std::to_string(slot),
                                   "--run-directory",
                                   run_directory};
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments.data(), environ),
              0);
    EXPECT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  ~WorkerProcess() { end(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  void end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Child child() const {
    return {pid_, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)))};
  }

 private:
  pid_t pid_ = 0;
};

/// The manager's end of a connection, and the messages that have reached the worker's end.
class Connection {
 public:
  explicit Connection(asio::io_context& io, Child peer = {}) {
    auto [ours, theirs] = ipc::packet_pair().value();
    link = WorkerLink::open(io, std::move(ours), std::move(peer), {});
    worker_end_ = std::move(theirs);
  }
  /// The messages of type Message since the last call; others are dropped.
  template <class Message>
  std::vector<Message> take() {
    std::vector<Message> messages;
    ipc::Packet packet;
    for (;;) {
      const auto received = ipc::receive_packet(worker_end_.get(), packet);
      if (!received || !*received) return messages;
      auto message = ipc::decode_to_worker(packet.data);
      if (message && std::holds_alternative<Message>(*message))
        messages.push_back(std::get<Message>(std::move(*message)));
    }
  }

  std::shared_ptr<WorkerLink> link;

 private:
  Fd worker_end_;
};

/// An endpoint of the loopback address whose port is free for UDP and TCP.
inline Endpoint free_endpoint() {
  for (std::uint16_t port = 17300; port < 18300; ++port) {
    const Endpoint candidate{IpAddress::from_text("127.0.0.1").value(), port};
    sockaddr_storage storage;
    const socklen_t length = candidate.to_sockaddr(storage);
    const Fd udp(::socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Fd tcp(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(udp.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 &&
        ::bind(tcp.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0)
      return candidate;
  }
  ADD_FAILURE() << "no free port";
  return {};
}

}  // namespace pando::manager::testing

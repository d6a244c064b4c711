#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "ipc/counters.h"
#include "manager/workers/listeners.h"
#include "manager/workers/worker_pool.h"
#include "shm/slots.h"
#include "tests/support/trees.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::testing {

/// A port of the loopback address that is free for UDP and TCP.
inline Endpoint free_port() {
  for (std::uint16_t port = 16300; port < 17300; ++port) {
    const Endpoint candidate{IpAddress::from_text("127.0.0.1").value(), port};
    sockaddr_storage address;
    const socklen_t length = candidate.to_sockaddr(address);
    const Fd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Fd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(udp.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 &&
        ::bind(tcp.get(), reinterpret_cast<sockaddr*>(&address), length) == 0)
      return candidate;
  }
  ADD_FAILURE() << "no free port";
  return {};
}

/// Directories of one test, removed at the end.
class RunDirectory {
 public:
  RunDirectory() {
    char pattern[] = "/tmp/pando-workers-XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~RunDirectory() { std::filesystem::remove_all(path_); }
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The manager's side of workers and nothing else of it, in a thread of its own. Destroying it
/// without stop() is what a crash of the manager looks like to the workers.
class MiniManager {
 public:
  struct Options {
    std::string worker_binary = pando::tests::build_path("/pando-worker");
    bool external = false;
    std::uint32_t workers = 2;
    manager::WorkerPool::Hooks hooks;
    manager::WorkerKeys keys;
  };

  MiniManager(ZoneStore& store, const std::string& directory, const Endpoint& endpoint,
              Options options)
      : slots_(shm::SlotTable::open(directory, store.path(), zone::layout_fingerprint()).value()),
        listeners_({{endpoint}, {}}),
        guard_(asio::make_work_guard(io_)) {
    manager::WorkerPoolOptions pool_options;
    pool_options.run_directory = directory;
    pool_options.layout = zone::layout_fingerprint();
    pool_options.worker_binary = options.worker_binary;
    pool_options.external = options.external;
    pool_options.stop_grace_ms = 2000;
    pool_ = manager::WorkerPool::open(io_, pool_options, slots_, listeners_, nullptr,
                                      std::move(options.hooks))
                .value();
    pool_->set_keys(std::move(options.keys));
    EXPECT_TRUE(pool_->start(options.workers));
    thread_ = std::thread([this] { io_.run(); });
  }
  ~MiniManager() {
    run([this] { pool_->abandon(); });
    guard_.reset();
    io_.stop();
    thread_.join();
    pool_.reset();
  }

  /// Runs `step` in the manager's thread and gives what it gives.
  template <class Step>
  std::invoke_result_t<Step> run(Step step) {
    std::packaged_task<std::invoke_result_t<Step>()> task(std::move(step));
    auto result = task.get_future();
    asio::post(io_, [&task] { task(); });
    return result.get();
  }
  manager::WorkerPool& pool() { return *pool_; }
  manager::Listeners& listeners() { return listeners_; }

  std::vector<manager::WorkerStatus> status() {
    return run([this] { return pool_->status(); });
  }
  std::uint32_t serving() {
    std::uint32_t count = 0;
    for (const auto& worker : status())
      if (worker.state == manager::WorkerStatus::State::kServing) ++count;
    return count;
  }
  bool wait_serving(std::uint32_t count) {
    return wait([&] { return serving() == count; });
  }
  template <class Condition>
  static bool wait(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  int pid_of(std::uint32_t slot) {
    for (const auto& worker : status())
      if (worker.slot == slot) return worker.pid;
    return 0;
  }
  std::uint64_t counter(std::uint32_t slot, ipc::Counter which) {
    return run([&]() -> std::uint64_t {
      auto* page = slots_.page(slot);
      return page == nullptr ? 0 : page->counters[ipc::counter_index(which)].load();
    });
  }
  void stop() {
    std::promise<void> stopped;
    run([&] { pool_->stop([&] { stopped.set_value(); }); });
    stopped.get_future().get();
  }
  void remove(std::uint32_t slot) {
    std::promise<void> removed;
    run([&] { EXPECT_TRUE(pool_->remove(slot, [&] { removed.set_value(); })); });
    removed.get_future().get();
  }

 private:
  asio::io_context io_;
  shm::SlotTable slots_;
  manager::Listeners listeners_;
  std::unique_ptr<manager::WorkerPool> pool_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace pando::testing

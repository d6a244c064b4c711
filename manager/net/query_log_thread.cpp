#include "manager/net/query_log_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "manager/net/log_line_splitter.h"

namespace pando::manager {

namespace {

/// The manager ends without waiting for a thread that a disk holds for longer.
constexpr std::chrono::milliseconds kEndTime{2000};
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
/// Octets of one worker that are read before the others get their turn.
constexpr int kReadsPerTurn = 4;
/// Turns for the last lines of a stream: a worker that was taken over may go on for ever.
constexpr int kLastTurns = 64;

}  // namespace

/// Streams and targets that the thread has yet to take, in the order of the calls.
struct QueryLogThread::Orders {
  /// A stream of a slot, or a target.
  struct One {
    std::uint32_t slot = 0;
    Fd stream{};
    std::optional<QueryLogTarget> target{};
  };
  std::vector<One> list;
  bool end = false;
};

struct QueryLogThread::Shared {
  std::mutex lock;
  std::condition_variable changed;
  Orders orders;
  bool ended = false;
  Fd wake;  ///< eventfd
  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> unwritten{0};

  void wake_up() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(wake.get(), &one, sizeof one);
  }
};

/// The thread's own state: streams of workers, and the target. No other thread uses it.
class QueryLogThread::Loop {
 public:
  explicit Loop(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  void run() {
    for (wait(); take_orders(); wait()) {
      read_all();
      write();
      // Workers send their last lines when they are told that the log is off.
      if (ends_with_inputs_ && inputs_.empty()) sink_.reset();
    }
    // Workers may have sent their last lines just before.
    for (int turn = 0; turn < kLastTurns && read_all(); ++turn) write();
    write();
  }

 private:
  struct Input {
    Fd stream;
    LogLineSplitter splitter{};
  };

  /// False when the thread is to end.
  bool take_orders() {
    Orders orders;
    {
      // Not while something is written: the manager's thread must not wait for a disk.
      const std::lock_guard held(shared_->lock);
      orders = std::exchange(shared_->orders, {});
    }
    for (Orders::One& one : orders.list) {
      if (one.target)
        take_target(*std::move(one.target));
      else
        take_stream(one.slot, std::move(one.stream));
    }
    return !orders.end;
  }

  void take_target(QueryLogTarget target) {
    write();
    ends_with_inputs_ = target.path.empty();
    if (!ends_with_inputs_) sink_.emplace(std::move(target));
  }

  void take_stream(std::uint32_t slot, Fd stream) {
    // The worker before may have sent lines that nobody has read.
    const auto former = inputs_.find(slot);
    if (former != inputs_.end()) read_last(former->second);
    inputs_.insert_or_assign(slot, Input{std::move(stream)});
  }

  void wait() {
    polled_.clear();
    polled_.push_back({shared_->wake.get(), POLLIN, 0});
    if (sink_ && sink_->waits_for() >= 0) polled_.push_back({sink_->waits_for(), POLLOUT, 0});
    for (const auto& [slot, input] : inputs_) polled_.push_back({input.stream.get(), POLLIN, 0});
    [[maybe_unused]] const int ready = ::poll(polled_.data(), polled_.size(), -1);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(shared_->wake.get(), &count, sizeof count);
  }

  /// Reads from every worker; true when there was something.
  bool read_all() {
    bool any = false;
    for (auto input = inputs_.begin(); input != inputs_.end();) {
      const bool open = read(input->second, any);
      input = open ? std::next(input) : inputs_.erase(input);
    }
    return any;
  }

  void read_last(Input& input) {
    bool any = true;
    for (int turn = 0; turn < kLastTurns && std::exchange(any, false); ++turn) {
      if (!read(input, any)) return;
      write();
    }
  }

  /// False when the stream has ended. recv() takes no descriptors: a worker can pass none.
  bool read(Input& input, bool& any) {
    for (int turn = 0; turn < kReadsPerTurn; ++turn) {
      const ssize_t got = ::recv(input.stream.get(), space_.data(), space_.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return true;
      if (got <= 0) return false;
      any = true;
      const std::string_view octets(space_.data(), static_cast<std::size_t>(got));
      const std::size_t bad = input.splitter.take(octets, [this](std::string_view line) {
        if (sink_)
          sink_->push(line);
        else
          shared_->unwritten.fetch_add(1, std::memory_order_relaxed);
      });
      shared_->unwritten.fetch_add(bad, std::memory_order_relaxed);
    }
    return true;
  }

  void write() {
    if (!sink_) return;
    sink_->flush(QueryLogSink::Clock::now());
    const QueryLogSink::Counters counters = sink_->take_counters();
    shared_->written.fetch_add(counters.written, std::memory_order_relaxed);
    shared_->unwritten.fetch_add(counters.dropped, std::memory_order_relaxed);
  }

  std::shared_ptr<Shared> shared_;
  std::map<std::uint32_t, Input> inputs_;
  std::optional<QueryLogSink> sink_;
  bool ends_with_inputs_ = false;
  std::vector<pollfd> polled_;
  std::array<char, kReadAtOnce> space_{};
};

Result<std::unique_ptr<QueryLogThread>> QueryLogThread::start() {
  auto shared = std::make_shared<Shared>();
  shared->wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->wake) return fail_errno("eventfd");
  try {
    // Detached, since a hanging disk may keep the thread from ever ending.
    std::thread([shared] {
      std::make_unique<Loop>(shared)->run();
      const std::lock_guard held(shared->lock);
      shared->ended = true;
      shared->changed.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    return fail(Errc::kIo, "no thread for the query log: {}", error.what());
  }
  return std::unique_ptr<QueryLogThread>(new QueryLogThread(std::move(shared)));
}

QueryLogThread::~QueryLogThread() {
  std::unique_lock held(shared_->lock);
  shared_->orders.end = true;
  shared_->wake_up();
  shared_->changed.wait_for(held, kEndTime, [this] { return shared_->ended; });
}

void QueryLogThread::set_target(QueryLogTarget target) {
  const std::lock_guard held(shared_->lock);
  shared_->orders.list.push_back({.target = std::move(target)});
  shared_->wake_up();
}

void QueryLogThread::read(std::uint32_t slot, Fd stream) {
  const std::lock_guard held(shared_->lock);
  shared_->orders.list.push_back({.slot = slot, .stream = std::move(stream)});
  shared_->wake_up();
}

QueryLogThread::Counters QueryLogThread::counters() const noexcept {
  return {shared_->written.load(std::memory_order_relaxed),
          shared_->unwritten.load(std::memory_order_relaxed)};
}

}  // namespace pando::manager

#include "manager/net/query_log_lender.h"

#include <sys/socket.h>

#include <array>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

QueryLogLender::QueryLogLender(std::optional<QueryLogOptions> options, Calls calls)
    : options_(std::move(options)), calls_(std::move(calls)) {
  if (options_ && start_thread()) thread_->set_target(options_->target);
}

bool QueryLogLender::start_thread() {
  if (thread_) return true;
  auto thread = QueryLogThread::start();
  if (thread)
    thread_ = std::move(*thread);
  else
    log::error("query_log_failed", "path", options_->target.path, "error", thread.error().text);
  return thread_ != nullptr;
}

void QueryLogLender::set(std::optional<QueryLogOptions> options) {
  if (options == options_) return;
  const bool was_on = options_.has_value();
  options_ = std::move(options);
  if (options_ && start_thread()) thread_->set_target(options_->target);
  for (const std::uint32_t slot : calls_.serving()) {
    if (options_ && !was_on)
      lend(slot);
    else
      calls_.tell(slot, options_ ? options_->what : ipc::QueryLog{}, {});
  }
  if (!options_ && thread_) thread_->set_target({});
}

/// Also a worker that outlived the last manager learns what this one's configuration says.
void QueryLogLender::worker_came(std::uint32_t slot) {
  if (options_)
    lend(slot);
  else
    calls_.tell(slot, {}, {});
}

void QueryLogLender::lend(std::uint32_t slot) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
    log::error("query_log_failed", "slot", slot, "error", fail_errno("socketpair").value().text);
    return;
  }
  Fd ours(pair[0]);
  Fd workers(pair[1]);
  if (calls_.tell(slot, options_->what, std::move(workers)) && thread_)
    thread_->read(slot, std::move(ours));
}

QueryLogThread::Counters QueryLogLender::counters() const noexcept {
  return thread_ ? thread_->counters() : QueryLogThread::Counters{};
}

}  // namespace pando::manager

#include "tls/relay/worker_links.h"

#include <fcntl.h>
#include <sys/socket.h>

namespace pando::tls {

WorkerLinks::~WorkerLinks() {
  for (const auto& [slot, channel] : workers_) channel->close();
}

void WorkerLinks::add(std::uint32_t slot, Fd connection) {
  auto channel = ipc::Channel::open(io_, std::move(connection), kMaxQueuedBytes);
  ipc::Channel* const raw = channel.get();
  if (auto& known = workers_[slot]; known) known->close();
  workers_[slot] = channel;
  // A worker sends nothing: its end means that it takes no more clients.
  channel->start({[this, slot, raw](ipc::Packet&&) { forget(slot, raw); },
                  [this, slot, raw](const Error&) { forget(slot, raw); }});
}

void WorkerLinks::forget(std::uint32_t slot, const ipc::Channel* channel) {
  const auto found = workers_.find(slot);
  if (found == workers_.end() || found->second.get() != channel) return;
  const auto kept = std::move(found->second);
  workers_.erase(found);
  kept->close();
}

std::optional<Fd> WorkerLinks::give(const ipc::TlsConnection& client) {
  int ends[2] = {-1, -1};
  if (workers_.empty() ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return std::nullopt;
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const Bytes packet = ipc::encode(client);
  for (std::size_t tried = workers_.size(); tried > 0; --tried) {
    auto turn = workers_.lower_bound(next_);
    if (turn == workers_.end()) turn = workers_.begin();
    next_ = turn->first + 1;
    std::vector<Fd> descriptors;
    descriptors.emplace_back(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, 0));
    if (descriptors.back() && turn->second->send(packet, std::move(descriptors))) return ours;
  }
  return std::nullopt;
}

}  // namespace pando::tls

#include "worker/xdp/xdp_service.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "worker/tap/taps.h"

namespace pando::worker {

using ipc::Counter;

namespace {
/// Limit of batches of one socket before others, TCP and the manager get their turn; as
/// UdpService's.
constexpr int kXdpBudget = 4;
/// A frame that the program had redirected is in the ring by then.
constexpr auto kCloseLinger = std::chrono::milliseconds(20);
constexpr auto kFlushPause = std::chrono::milliseconds(1);
constexpr auto kMissedPause = std::chrono::seconds(1);
}  // namespace

struct XdpService::Queue {
  Queue(asio::io_context& io, const ipc::ServeXdp& served, std::unique_ptr<XdpSocket> opened,
        Fd interface_link)
      : what(served),
        socket(std::move(opened)),
        link(std::move(interface_link)),
        readable(io),
        timer(io) {}
  ~Queue() { readable.release(); }  // the socket's own descriptor
  ipc::ServeXdp what;
  std::unique_ptr<XdpSocket> socket;
  Fd link;
  asio::posix::stream_descriptor readable;
  asio::steady_timer timer;  ///< the next flush, or the end
  bool closing = false;
};

XdpService::XdpService(asio::io_context& io, Core& core, UdpService& udp, Calls calls)
    : io_(io),
      core_(core),
      udp_(udp),
      calls_(std::move(calls)),
      tapped_(core),
      missed_timer_(io) {}

XdpService::~XdpService() = default;

void XdpService::add(const ipc::ServeXdp& what, std::vector<Fd>&& descriptors) {
  auto socket = descriptors.size() == 3
                    ? XdpSocket::open(what, std::move(descriptors[0]), descriptors[1])
                    : Result<std::unique_ptr<XdpSocket>>(
                          fail(Errc::kInvalid, "an AF_XDP socket without memory or link"));
  if (!socket) {
    log::error("xdp_failed", "interface", what.queue.interface, "queue", what.queue.queue, "error",
               socket.error().text);
    return calls_.closed(what.queue);
  }
  auto queue = std::make_shared<Queue>(io_, what, std::move(*socket), std::move(descriptors[2]));
  asio::error_code error;
  queue->readable.assign(queue->socket->descriptor(), error);
  if (error) return calls_.closed(what.queue);
  if (queues_.empty()) count_missed();
  queues_[what.queue] = queue;
  log::info("xdp_serving", "interface", what.queue.interface, "queue", what.queue.queue);
  wait(queue);
  calls_.serving(what.queue);
}

void XdpService::close(const ipc::XdpQueue& name) {
  const auto found = queues_.find(name);
  if (found == queues_.end()) return calls_.closed(name);
  Queue& queue = *found->second;
  if (std::exchange(queue.closing, true)) return;
  empty(queue);
  queue.timer.expires_after(kCloseLinger);
  queue.timer.async_wait([this, name, alive = std::weak_ptr(found->second)](
                             const asio::error_code& error) {
    if (!error && !alive.expired()) finish_close(name);
  });
}

void XdpService::finish_close(const ipc::XdpQueue& name) {
  const auto found = queues_.find(name);
  if (found == queues_.end()) return;
  empty(*found->second);
  core_.counting().add(Counter::kXdpMissed, found->second->socket->take_missed());
  asio::error_code ignored;
  found->second->readable.cancel(ignored);
  queues_.erase(found);
  calls_.closed(name);
}

void XdpService::drain() {
  for (const auto& [name, queue] : queues_) empty(*queue);
}

/// Bounded: the manager has taken the socket out of the program's map, or does so.
void XdpService::empty(Queue& queue) {
  for (int turn = 0; turn < 1000 && !read(queue); ++turn) {
  }
}

std::vector<ManagerLink::HeldXdpQueue> XdpService::held() const {
  std::vector<ManagerLink::HeldXdpQueue> list;
  for (const auto& [name, queue] : queues_)
    if (!queue->closing) list.push_back({name, queue->socket->descriptor(), queue->link.get()});
  return list;
}

void XdpService::wait(const QueuePtr& queue) {
  queue->readable.async_wait(asio::posix::descriptor_base::wait_read,
                             [this, alive = std::weak_ptr(queue)](const asio::error_code& error) {
                               const auto same = alive.lock();
                               if (error || !same) return;
                               read(*same);
                               wait(same);
                             });
}

/// Returns true when the socket was left empty.
bool XdpService::read(Queue& queue) {
  if (!core_.attached()) return true;
  for (int batch = 0; batch < kXdpBudget; ++batch) {
    const auto frames = queue.socket->receive();
    if (frames.empty()) {
      queue.socket->done();
      return true;
    }
    core_.begin();
    const timespec received = core_.taps() != nullptr ? Taps::now() : timespec{};
    for (std::size_t at = 0; at < frames.size(); at += Responder::kTogether) {
      const std::size_t together = std::min(frames.size() - at, Responder::kTogether);
      answer_together(queue, frames.subspan(at, together), received);
    }
    core_.end();
    core_.answered(answers_);
    // Before the send: who has an answer finds it counted.
    core_.counting().add(Counter::kXdpReceived, frames.size());
    core_.counting().add(Counter::kXdpSent, std::exchange(answers_, 0));
    core_.counting().add(Counter::kAnswerOctetsUdp, std::exchange(answer_octets_, 0));
    flush(queue);
    core_.sent();
    if (core_.taps() != nullptr) tapped_.tell();
    const bool was_full = frames.size() == XdpSocket::kBatch;
    queue.socket->done();
    if (!was_full) return true;
  }
  return false;
}

void XdpService::answer_together(Queue& queue, std::span<const ByteView> frames,
                                 const timespec& received) {
  std::array<RequestFrame, Responder::kTogether> requests;
  std::array<Arrival, Responder::kTogether> arrivals;
  std::size_t count = 0;
  for (const ByteView octets : frames) {
    const auto request = read_frame(octets);
    if (!request) {
      core_.counting().add(Counter::kXdpDropped);
      continue;
    }
    requests[count] = *request;
    arrivals[count] = {request->message,
                       {request->source, request->destination, ipc::Transport::kUdp}};
    ++count;
  }
  core_.responder().read({arrivals.data(), count});
  for (std::size_t i = 0; i < count; ++i) answer(queue, requests[i], arrivals[i], i, received);
}

/// Answers request `i` of the batch.
void XdpService::answer(Queue& queue, const RequestFrame& request, const Arrival& arrival,
                        std::size_t i, const timespec& received) {
  const auto frame = queue.socket->free_frame();
  if (frame.empty()) return core_.counting().add(Counter::kXdpDropped);
  const std::size_t headers = request.header_octets();
  const std::size_t room = std::min(frame.size() - headers, message_room(request, queue.what.mtu));
  const auto space = frame.subspan(headers, room);
  const Outcome outcome = core_.answer(i, space);
  const auto& [message, client] = arrival;
  const bool taps = core_.taps() != nullptr;
  if (taps) tapped_.note(message, client, client.local.address, outcome, space, received);
  if (outcome.action == Action::kForward) {
    auto held = taps ? tapped_.held(message) : nullptr;
    if (!udp_.forward(message, client, outcome, space, std::move(held)))
      core_.counting().add(Counter::kXdpDropped);
  }
  if (outcome.action != Action::kRespond) return;
  queue.socket->queue_frame(write_headers(request, frame.data(), outcome.size, identification_++));
  ++answers_;
  answer_octets_ += outcome.size;
}

void XdpService::flush(Queue& queue) {
  if (!queue.socket->flush() && !queue.closing) flush_later(queue);
}

/// The interface's own queue was full, and no event reports room in it.
void XdpService::flush_later(Queue& queue) {
  queue.timer.expires_after(kFlushPause);
  queue.timer.async_wait([this, alive = std::weak_ptr(queues_.at(queue.what.queue))](
                             const asio::error_code& error) {
    const auto same = alive.lock();
    if (!error && same) flush(*same);
  });
}

void XdpService::count_missed() {
  if (core_.attached())
    for (const auto& [name, queue] : queues_)
      core_.counting().add(Counter::kXdpMissed, queue->socket->take_missed());
  missed_timer_.expires_after(kMissedPause);
  missed_timer_.async_wait([this](const asio::error_code& error) {
    if (!error && !queues_.empty()) count_missed();
  });
}

}  // namespace pando::worker

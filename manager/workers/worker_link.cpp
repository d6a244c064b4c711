#include "manager/workers/worker_link.h"

#include "base/secret.h"
#include "base/unix_time.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace pando::manager {

namespace {

/// Replies to 512 updates of ordinary size, or a few of 64 KiB; a worker that does not read for
/// that long is stuck.
constexpr std::size_t kMaxQueuedOctets = std::size_t{32} << 20;
/// Addresses × protocols of one slot; more in a Hello is nonsense.
constexpr std::uint32_t kMaxAdoptedSockets = 4096;
/// Of all interfaces that one worker may serve.
constexpr std::uint32_t kMaxAdoptedQueues = 1024;
/// Bytes of keys in one packet, well below the packet's bound.
constexpr std::size_t kKeysPerPacketBytes = std::size_t{64} << 10;
constexpr auto kHelloTimeout = std::chrono::seconds(5);

std::size_t bytes_of(const dns::TsigKey& key) { return key.name.size() + key.secret.size() + 16; }

/// Splits keys over as many packets as they need.
std::vector<ipc::Keys> in_packets(const WorkerKeys& keys) {
  std::vector<ipc::Keys> packets(1);
  std::size_t used = 0;
  const auto make_room = [&](std::size_t bytes) {
    if (used + bytes > kKeysPerPacketBytes) {
      packets.emplace_back();
      used = 0;
    }
    used += bytes;
  };
  for (const auto& key : keys.shared) {
    make_room(bytes_of(key));
    packets.back().shared.push_back(key);
  }
  for (const auto& key : keys.held) {
    make_room(key.name.size() + 16);
    packets.back().held.push_back(key);
  }
  for (auto& packet : packets) packet.first = packet.last = false;
  packets.front().first = true;
  packets.back().last = true;
  packets.front().cookie_secrets = keys.cookie_secrets;
  return packets;
}

}  // namespace

WorkerLink::WorkerLink(asio::io_context& io, Child peer, Handlers handlers)
    : peer_(std::move(peer)),
      handlers_(std::make_shared<const Handlers>(std::move(handlers))),
      hello_deadline_(io),
      signer_(handlers_->keyring) {}

std::shared_ptr<WorkerLink> WorkerLink::open(asio::io_context& io, Fd socket, Child peer,
                                             Handlers handlers) {
  std::shared_ptr<WorkerLink> link(new WorkerLink(io, std::move(peer), std::move(handlers)));
  link->channel_ = ipc::Channel::open(io, std::move(socket), kMaxQueuedOctets);
  std::weak_ptr<WorkerLink> weak = link;
  link->channel_->start({[weak](ipc::Packet&& packet) {
                           if (auto self = weak.lock()) self->take_packet(std::move(packet));
                         },
                         [weak](const Error& error) {
                           if (auto self = weak.lock()) self->broken(error);
                         }});
  link->hello_deadline_.expires_after(kHelloTimeout);
  link->hello_deadline_.async_wait([weak](const asio::error_code& error) {
    auto self = weak.lock();
    if (!error && self && !self->ready_)
      self->broken({Errc::kTruncated, "no complete Hello in time"});
  });
  return link;
}

void WorkerLink::take_packet(ipc::Packet&& packet) {
  const auto self = shared_from_this();
  if (!handlers_) return;
  auto message = ipc::decode_from_worker(packet.data);
  if (!message) return broken(message.error());
  if (!hello_seen_ && !std::holds_alternative<ipc::Hello>(*message))
    return broken({Errc::kInvalid, "the first message is no Hello"});
  std::visit([&](auto&& body) { take(std::move(body), packet); }, std::move(*message));
}

void WorkerLink::take(ipc::Hello&& hello, ipc::Packet&) {
  if (hello_seen_) return broken({Errc::kInvalid, "a second Hello"});
  if (hello.sockets > kMaxAdoptedSockets || hello.xdp_queues > kMaxAdoptedQueues)
    return broken({Errc::kInvalid, "too many sockets"});
  hello_seen_ = true;
  hello_ = hello;
  hello_if_complete();
}

void WorkerLink::take(ipc::Adopt&& adopt, ipc::Packet& packet) {
  if (ready_ || adopt.sockets.size() != packet.descriptors.size() ||
      adopted_.size() + adopt.sockets.size() > hello_.sockets)
    return broken({Errc::kInvalid, "sockets that were not announced"});
  for (std::size_t i = 0; i < adopt.sockets.size(); ++i)
    adopted_.push_back({adopt.sockets[i], std::move(packet.descriptors[i])});
  hello_if_complete();
}

void WorkerLink::take(ipc::AdoptXdp&& adopt, ipc::Packet& packet) {
  auto& descriptors = packet.descriptors;
  if (ready_ || descriptors.size() != 2 || adopted_queues_.size() >= hello_.xdp_queues)
    return broken({Errc::kInvalid, "a queue that was not announced"});
  adopted_queues_.push_back(
      {std::move(adopt.queue), std::move(descriptors[0]), std::move(descriptors[1])});
  hello_if_complete();
}

void WorkerLink::hello_if_complete() {
  if (adopted_.size() != hello_.sockets || adopted_queues_.size() != hello_.xdp_queues) return;
  ready_ = true;
  hello_deadline_.cancel();
  if (const auto handlers = handlers_)
    handlers->hello(hello_, std::move(adopted_), std::move(adopted_queues_));
}

void WorkerLink::take(ipc::Forward&& forward, ipc::Packet&) {
  if (!ready_) return broken({Errc::kInvalid, "a request before Hello was complete"});
  if (outstanding_ >= kMaxOutstanding)
    return broken({Errc::kFull, "more requests under way than a worker may have"});
  ++outstanding_;
  std::optional<ResponsePath> path;
  if (forward.through) path = ResponsePath{*forward.through, forward.client, forward.local.address};
  auto reply = [weak = weak_from_this(), id = forward.id, path](Bytes response) {
    if (const auto self = weak.lock()) self->reply(id, path, std::move(response));
  };
  if (const auto handlers = handlers_) handlers->forward(std::move(forward), std::move(reply));
}

void WorkerLink::reply(std::uint64_t id, const std::optional<ResponsePath>& path,
                       Bytes&& response) {
  --outstanding_;
  const auto handlers = handlers_;
  const bool direct = path && !response.empty() && handlers && handlers->respond &&
                      handlers->respond(*path, response);
  if (!direct) return send(ipc::Reply{id, std::move(response)});
  finished_.push_back(id);
  if (stopping_ || finished_.size() >= kFinishedTogether) tell_finished();
}

void WorkerLink::tell_finished() {
  if (!finished_.empty()) send(ipc::Finished{std::exchange(finished_, {})});
}

void WorkerLink::take(ipc::SignTransfer&& sign, ipc::Packet&) {
  if (!ready_) return broken({Errc::kInvalid, "a transfer before Hello was complete"});
  if (sign.aborts()) return signer_.abort(sign.stream);
  const std::uint64_t id = sign.id;
  const auto now = unix_seconds();
  send(ipc::Reply{id, signer_.sign(std::move(sign), now)});
}

void WorkerLink::take(ipc::Drained&& drained, ipc::Packet&) {
  if (const auto handlers = handlers_) handlers->drained(drained.socket);
}

void WorkerLink::take(ipc::TransferFinished&& transfer, ipc::Packet&) {
  if (const auto handlers = handlers_) handlers->transfer_finished(transfer);
}

void WorkerLink::take(ipc::Bye&&, ipc::Packet&) {
  // The end of the process is what counts, and the pidfd tells it.
}

void WorkerLink::take(ipc::DnstapLost&&, ipc::Packet&) {
  if (const auto handlers = handlers_; handlers && handlers->dnstap_lost) handlers->dnstap_lost();
}

void WorkerLink::take(ipc::XdpServing&& serving, ipc::Packet&) {
  const auto handlers = handlers_;
  if (handlers && handlers->xdp_served) handlers->xdp_served(serving.queue);
}

void WorkerLink::take(ipc::XdpClosed&& closed, ipc::Packet&) {
  const auto handlers = handlers_;
  if (handlers && handlers->xdp_closed) handlers->xdp_closed(closed.queue);
}

void WorkerLink::tell(const ipc::ToWorker& message, std::vector<Fd> descriptors) {
  const auto self = shared_from_this();  // a send that fails ends the link
  send(message, std::move(descriptors));
}

void WorkerLink::send_setup(std::uint32_t slot, shm::SlotLoan files, Fd image) {
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(files.store));
  descriptors.push_back(std::move(files.slot));
  if (image) descriptors.push_back(std::move(image));
  send(ipc::Setup{slot}, std::move(descriptors));
}

void WorkerLink::send_keys(const WorkerKeys& keys) {
  const auto self = shared_from_this();
  const WipeFreed wipe_freed;  // the messages, and their encoded forms
  for (auto& packet : in_packets(keys)) send(std::move(packet));
}

void WorkerLink::send_sockets(const std::vector<Listeners::Socket>& sockets, bool with_descriptors,
                              bool orphaned) {
  const auto self = shared_from_this();
  for (std::size_t begin = 0; begin < sockets.size(); begin += ipc::kMaxPacketDescriptors) {
    const std::size_t end = std::min(sockets.size(), begin + ipc::kMaxPacketDescriptors);
    ipc::Sockets message;
    std::vector<Fd> descriptors;
    for (std::size_t i = begin; i < end; ++i) {
      message.sockets.push_back(sockets[i].description);
      message.sockets.back().orphaned = orphaned;
      if (with_descriptors)
        descriptors.emplace_back(::fcntl(sockets[i].fd.get(), F_DUPFD_CLOEXEC, 0));
    }
    message.descriptors = static_cast<std::uint32_t>(descriptors.size());
    send(std::move(message), std::move(descriptors));
  }
}

void WorkerLink::close_sockets(std::vector<std::uint32_t> ids) {
  send(ipc::CloseSockets{std::move(ids)});
}

void WorkerLink::stop(std::uint32_t grace_ms) {
  const auto self = shared_from_this();  // a send that fails ends the link
  stopping_ = true;
  tell_finished();
  send(ipc::Stop{grace_ms});
}

void WorkerLink::close() noexcept {
  handlers_.reset();
  hello_deadline_.cancel();
  channel_->close();
}

void WorkerLink::leave() {
  const auto self = shared_from_this();
  handlers_.reset();
  tell_finished();
  close();
}

void WorkerLink::send(const ipc::ToWorker& message, std::vector<Fd> descriptors) {
  if (auto sent = channel_->send(ipc::encode(message), std::move(descriptors)); !sent)
    broken(sent.error());
}

void WorkerLink::broken(Error error) {
  const auto self = shared_from_this();
  const auto handlers = handlers_;
  close();
  if (handlers) handlers->closed(error);
}

}  // namespace pando::manager

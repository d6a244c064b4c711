#include "manager/update/update_queue.h"

#include <asio/post.hpp>
#include <utility>

namespace pando::manager {

UpdateQueue::UpdateQueue(asio::io_context& io, Take take, Refuse refuse, const Limits& limits)
    : io_(io), take_(std::move(take)), refuse_(std::move(refuse)), limits_(limits) {}

void UpdateQueue::pass(ipc::Forward&& request, ForwardReply reply) {
  if (request.kind == ipc::ForwardKind::kSignedQuery)
    return take_(std::move(request), std::move(reply));
  if (state_ == State::kShut) return refuse_(std::move(request), std::move(reply), why_);
  // Earlier requests still wait, so the new one queues behind them.
  if (state_ == State::kHolding || !waiting_.empty())
    return keep(std::move(request), std::move(reply));
  take_(std::move(request), std::move(reply));
}

void UpdateQueue::keep(ipc::Forward&& request, ForwardReply reply) {
  if (waiting_.size() >= limits_.requests || octets_ >= limits_.octets)
    return refuse_(std::move(request), std::move(reply), "too many requests wait already");
  octets_ += request.message.size();
  waiting_.push_back({std::move(request), std::move(reply), Clock::now()});
}

UpdateQueue::Waiting UpdateQueue::next() {
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  octets_ -= first.request.message.size();
  return first;
}

void UpdateQueue::hold() { state_ = State::kHolding; }

void UpdateQueue::open() {
  state_ = State::kOpen;
  take_some();
}

void UpdateQueue::take_some() {
  for (std::size_t taken = 0; taken < limits_.slice && !waiting_.empty(); ++taken) {
    if (state_ != State::kOpen) return;
    Waiting first = next();
    if (Clock::now() - first.came > limits_.patience)
      refuse_(std::move(first.request), std::move(first.reply), "it waited for too long");
    else
      take_(std::move(first.request), std::move(first.reply));
  }
  if (!waiting_.empty()) asio::post(io_, [this] { take_some(); });
}

void UpdateQueue::shut(std::string why) {
  state_ = State::kShut;
  why_ = std::move(why);
  while (!waiting_.empty()) {
    Waiting first = next();
    refuse_(std::move(first.request), std::move(first.reply), why_);
  }
}

}  // namespace pando::manager

#include "manager/update/update_queue.h"

#include <asio/post.hpp>
#include <utility>

namespace pando::manager {

UpdateQueue::UpdateQueue(asio::io_context& io, Take take, Refuse refuse, const Limits& limits)
    : io_(io), take_(std::move(take)), refuse_(std::move(refuse)), limits_(limits) {}

void UpdateQueue::submit(ipc::Forward&& request, ForwardReply reply) {
  if (request.kind == ipc::ForwardKind::kSignedQuery)
    return take_(std::move(request), std::move(reply));
  if (state_ == State::kRejecting) return refuse_(std::move(request), std::move(reply), why_);
  // Earlier requests still wait, so the new one queues after them.
  if (state_ == State::kPaused || !waiting_.empty())
    return enqueue(std::move(request), std::move(reply));
  take_(std::move(request), std::move(reply));
}

void UpdateQueue::enqueue(ipc::Forward&& request, ForwardReply reply) {
  if (waiting_.size() >= limits_.requests || bytes_ >= limits_.bytes)
    return refuse_(std::move(request), std::move(reply), "too many requests wait already");
  bytes_ += request.message.size();
  waiting_.push_back({std::move(request), std::move(reply), Clock::now()});
}

UpdateQueue::Waiting UpdateQueue::next() {
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= first.request.message.size();
  return first;
}

void UpdateQueue::pause() { state_ = State::kPaused; }

void UpdateQueue::resume() {
  state_ = State::kRunning;
  take_some();
}

void UpdateQueue::take_some() {
  for (std::size_t taken = 0; taken < limits_.slice && !waiting_.empty(); ++taken) {
    if (state_ != State::kRunning) return;
    Waiting first = next();
    if (Clock::now() - first.came > limits_.timeout)
      refuse_(std::move(first.request), std::move(first.reply), "it waited for too long");
    else
      take_(std::move(first.request), std::move(first.reply));
  }
  if (!waiting_.empty()) asio::post(io_, [this] { take_some(); });
}

void UpdateQueue::reject(std::string why) {
  state_ = State::kRejecting;
  why_ = std::move(why);
  while (!waiting_.empty()) {
    Waiting first = next();
    refuse_(std::move(first.request), std::move(first.reply), why_);
  }
}

}  // namespace pando::manager

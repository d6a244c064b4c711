#include "manager/workers/dnstap_lender.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/unix_time.h"
#include "ipc/frame_stream.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {
/// Milliseconds between two log lines about a collector that cannot be reached.
constexpr std::uint64_t kFailureLogPause = 60'000;
}  // namespace

DnstapLender::DnstapLender(WorkerTable& table, std::optional<DnstapOptions> options)
    : table_(table), options_(std::move(options)), failures_(kFailureLogPause) {}

DnstapLender::~DnstapLender() { forget_all(); }

ipc::Dnstap DnstapLender::message() const { return options_ ? options_->what : ipc::Dnstap{}; }

void DnstapLender::set(std::optional<DnstapOptions> options) {
  if (options == options_) return;
  const bool same_socket = options && options_ && options->socket == options_->socket;
  options_ = std::move(options);
  if (!same_socket) {
    forget_all();
    failures_ = RateLimitedLog(kFailureLogPause);
  }
  // Sending may break a connection, which changes its slot.
  std::vector<std::uint32_t> serving;
  for (const auto& [number, slot] : table_.slots())
    if (slot.serving()) serving.push_back(number);
  for (const std::uint32_t number : serving) {
    const WorkerSlot* slot = table_.find(number);
    if (const auto link = slot->link) link->send_dnstap(message(), {});
    if (options_ && !same_socket) open(number);
  }
}

/// Also a worker that outlived the last manager learns what this one's configuration says.
void DnstapLender::worker_came(const WorkerSlot& slot) {
  forget(slot.number);
  if (const auto link = slot.link) link->send_dnstap(message(), {});
  if (options_) open(slot.number);
}

void DnstapLender::open(std::uint32_t slot) {
  const WorkerSlot* worker = table_.find(slot);
  if (!options_ || worker == nullptr || !worker->link) return forget(slot);
  Stream& stream = streams_.try_emplace(slot, table_.io()).first->second;
  if (stream.opening || stream.lent) return;
  stream.opening = FrameStreamHandshake::start(
      table_.io(), options_->socket, ipc::kDnstapContentType, kHandshakeTime,
      [this, slot](Result<Fd> opened_stream) { opened(slot, std::move(opened_stream)); });
}

void DnstapLender::opened(std::uint32_t slot, Result<Fd> opened_stream) {
  Stream& stream = streams_.at(slot);
  stream.opening.reset();
  if (!opened_stream) {
    if (const auto attempts = failures_.one_more(unix_seconds() * 1000))
      log::warning("dnstap_unreachable", "socket", options_->socket, "error",
                   opened_stream.error().text, "attempts", *attempts);
    return open_later(slot, stream);
  }
  const WorkerSlot* worker = table_.find(slot);
  const auto link = worker != nullptr ? worker->link : nullptr;
  if (!link) return forget(slot);
  failures_ = RateLimitedLog(kFailureLogPause);
  stream.lent = std::chrono::steady_clock::now();
  log::info("dnstap_stream_opened", "socket", options_->socket, "slot", slot);
  link->send_dnstap(message(), std::move(*opened_stream));
}

void DnstapLender::stream_lost(const WorkerSlot& slot) {
  const auto found = streams_.find(slot.number);
  if (found == streams_.end() || !found->second.lent) return;
  Stream& stream = found->second;
  const auto lasted = std::chrono::steady_clock::now() - *std::exchange(stream.lent, std::nullopt);
  if (lasted >= kGoodStream) stream.next_pause = {};
  log::info("dnstap_stream_lost", "slot", slot.number);
  open_later(slot.number, stream);
}

void DnstapLender::open_later(std::uint32_t slot, Stream& stream) {
  stream.next_pause = std::clamp(2 * stream.next_pause, kFirstPause, kLongestPause);
  stream.pause.expires_after(stream.next_pause);
  stream.pause.async_wait(table_.guarded([this, slot] { open(slot); }));
}

void DnstapLender::forget(std::uint32_t slot) {
  const auto found = streams_.find(slot);
  if (found == streams_.end()) return;
  if (found->second.opening) found->second.opening->cancel();
  streams_.erase(found);
}

void DnstapLender::forget_all() {
  while (!streams_.empty()) forget(streams_.begin()->first);
}

}  // namespace pando::manager

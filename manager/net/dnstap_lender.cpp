#include "manager/net/dnstap_lender.h"

#include <algorithm>
#include <utility>

#include "base/steady_time.h"
#include "ipc/frame_stream.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {
/// Milliseconds between two log lines about a collector that cannot be reached.
constexpr std::uint64_t kFailureLogPause = 60'000;
}  // namespace

DnstapLender::DnstapLender(asio::io_context& io, std::optional<DnstapOptions> options, Calls calls)
    : io_(io),
      options_(std::move(options)),
      calls_(std::move(calls)),
      failures_(kFailureLogPause) {}

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
  for (const std::uint32_t slot : calls_.serving())
    if (calls_.tell(slot, message(), {}) && options_ && !same_socket) open(slot);
}

/// Also a worker that outlived the last manager learns what this one's configuration says.
void DnstapLender::worker_came(std::uint32_t slot) {
  forget(slot);
  if (calls_.tell(slot, message(), {}) && options_) open(slot);
}

void DnstapLender::open(std::uint32_t slot) {
  if (!options_) return;
  Stream& stream = streams_.try_emplace(slot, io_).first->second;
  if (stream.opening || stream.lent) return;
  stream.opening = FrameStreamHandshake::start(
      io_, options_->socket, ipc::kDnstapContentType, kHandshakeTime,
      [this, slot](Result<Fd> opened_stream) { opened(slot, std::move(opened_stream)); });
}

/// A slot without a worker is forgotten when its stream is there: the next worker begins anew.
void DnstapLender::opened(std::uint32_t slot, Result<Fd> opened_stream) {
  Stream& stream = streams_.at(slot);
  stream.opening.reset();
  if (!opened_stream) {
    if (const auto attempts = failures_.one_more(steady_milliseconds()))
      log::warning("dnstap_unreachable", "socket", options_->socket, "error",
                   opened_stream.error().text, "attempts", *attempts);
    return open_later(slot, stream);
  }
  if (!calls_.tell(slot, message(), std::move(*opened_stream))) return forget(slot);
  failures_ = RateLimitedLog(kFailureLogPause);
  stream.lent = std::chrono::steady_clock::now();
  log::info("dnstap_stream_opened", "socket", options_->socket, "slot", slot);
}

void DnstapLender::stream_lost(std::uint32_t slot) {
  const auto found = streams_.find(slot);
  if (found == streams_.end() || !found->second.lent) return;
  Stream& stream = found->second;
  const auto lasted = std::chrono::steady_clock::now() - *std::exchange(stream.lent, std::nullopt);
  if (lasted >= kGoodStream) stream.next_pause = {};
  log::info("dnstap_stream_lost", "slot", slot);
  open_later(slot, stream);
}

void DnstapLender::open_later(std::uint32_t slot, Stream& stream) {
  stream.next_pause = std::clamp(2 * stream.next_pause, kFirstPause, kLongestPause);
  stream.pause.expires_after(stream.next_pause);
  stream.pause.async_wait(
      [this, alive = std::weak_ptr<int>(alive_), slot](const asio::error_code& error) {
        if (!error && !alive.expired() && streams_.contains(slot)) open(slot);
      });
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

#include "manager/update/update_forwarder.h"

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include "base/random.h"
#include "base/steady_time.h"
#include "dns/message/message.h"
#include "manager/net/message_stream.h"

namespace pando::manager {

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds left_until(Clock::time_point deadline) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
}

Status check_answer(ByteView answer, std::uint16_t id) {
  auto header = dns::read_header(answer);
  if (!header) return pass(header);
  if (!header->qr || header->id != id || header->opcode != dns::Opcode::kUpdate)
    return fail(Errc::kInvalid, "no answer to the update");
  return {};
}

/// Sends the update and receives the answer. On a new TCP connection the first message must be the
/// answer.
asio::awaitable<Result<Bytes>> ask_primary(MessageStream& stream, const Bytes& message) {
  if (auto sent = co_await stream.send(message); !sent) co_return pass(sent);
  auto answer = co_await stream.receive();
  if (!answer) co_return pass(answer);
  if (auto ok = check_answer(*answer, load_be16(message.data())); !ok) co_return pass(ok);
  co_return Bytes(answer->begin(), answer->end());
}

asio::awaitable<Result<Bytes>> forward_update(ForwardedUpdate update,
                                              UpdateForwarder::Options options) {
  const auto deadline = Clock::now() + options.timeout;
  const std::uint16_t clients_id = load_be16(update.message.data());
  store_be16(update.message.data(), random_number<std::uint16_t>());
  Error last{Errc::kIo, "no time"};
  for (const Endpoint& primary : update.primaries) {
    const auto left = left_until(deadline);
    if (left.count() <= 0) break;
    MessageStream stream(co_await asio::this_coro::executor, primary, update.source,
                         std::min(left, options.connect_timeout));
    if (auto connected = co_await stream.connect(); !connected) {
      last = {Errc::kIo, fmt::format("{}: {}", to_text(primary), connected.error().text)};
      continue;
    }
    stream.set_timeout(left_until(deadline));
    auto answer = co_await ask_primary(stream, update.message);
    if (!answer) co_return fail(Errc::kIo, "{}: {}", to_text(primary), answer.error().text);
    store_be16(answer->data(), clients_id);
    co_return std::move(*answer);
  }
  co_return pass(last);
}

}  // namespace

Status UpdateForwarder::check_room(const Endpoint& primary) const {
  if (!running_.has_room(primary)) return fail(Errc::kFull, "too many updates are being passed on");
  if (silent_.contains(primary) &&
      (running_.running_at(primary) >= options_.max_per_silent_primary ||
       running_at_silent() >= options_.max_silent))
    return fail(Errc::kFull, "{} does not answer", to_text(primary));
  return {};
}

std::uint32_t UpdateForwarder::running_at_silent() const {
  std::uint32_t running = 0;
  for (const Endpoint& primary : silent_) running += running_.running_at(primary);
  return running;
}

void UpdateForwarder::forward(ForwardedUpdate update, Done done) {
  const Endpoint primary = update.primaries.front();
  if (auto room = check_room(primary); !room) {
    ++counters_.failed;
    return done(pass(room));
  }
  if (!update.proven && !unproven_pace_.take(steady_milliseconds())) {
    ++counters_.failed;
    return done(fail(Errc::kFull, "too many updates that only the primary can verify"));
  }
  running_.begin(primary);
  asio::co_spawn(network_.loop(), forward_update(std::move(update), options_),
                 [this, &loop = commit_loop_, primary, done = std::move(done), alive = alive_](
                     const std::exception_ptr& thrown, Result<Bytes> answer) {
                   if (thrown) answer = fail(Errc::kIo, "ended by an exception");
                   // The network's thread may come here after the forwarder's end.
                   asio::post(loop, [this, primary, done, alive, answer]() mutable {
                     if (*alive) finished(primary, std::move(answer), done);
                   });
                 });
}

void UpdateForwarder::finished(const Endpoint& primary, Result<Bytes> answer, const Done& done) {
  running_.end(primary);
  if (answer || answer.error().code != Errc::kIo)
    silent_.erase(primary);
  else
    silent_.insert(primary);
  ++(answer ? counters_.forwarded : counters_.failed);
  done(std::move(answer));
}

}  // namespace pando::manager

#include "worker/service.h"

#include <unistd.h>

#include <csignal>

#include "ipc/log.h"

namespace pando::worker {

namespace {
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Connections whose handshake began before traffic was steered elsewhere still arrive here.
constexpr milliseconds kAcceptLinger{200};
/// A client that was quiet for this time has received its answers.
constexpr milliseconds kQuiet{100};
constexpr milliseconds kStopTick{20};
constexpr milliseconds kSignalGrace{2000};
}  // namespace

Service::Service(asio::io_context& io, const ServiceOptions& options)
    : io_(io),
      options_(options),
      link_(io,
            {options.slot, options.layout, options.run_directory + "/" + ipc::kWorkerSocketName,
             options.build},
            link_handlers()),
      core_(link_),
      taps_(io, dnstap_calls(), query_log_count()),
      udp_(io, core_, [this](std::uint32_t id) { drained(id); }),
      tcp_(io, core_, [this](std::uint32_t id) { drained(id); }),
      tls_(io, core_),
      xdp_(io, core_, udp_,
           {[this](const ipc::XdpQueue& queue) { link_.tell(ipc::XdpServing{queue}); },
            [this](const ipc::XdpQueue& queue) { link_.tell(ipc::XdpClosed{queue}); }}),
      signals_(io, SIGTERM),
      stop_timer_(io) {}

void Service::start() {
  log::info("worker_running", "slot", options_.slot, "pid", ::getpid());
  await_signals();
  link_.start();
}

ManagerLink::Handlers Service::link_handlers() {
  ManagerLink::Handlers handlers;
  handlers.sockets = [this] { return sockets(); };
  handlers.setup = [this](ipc::Setup&& setup, shm::SlotLoan files, Fd image) {
    set_up(setup, std::move(files), std::move(image));
  };
  handlers.keys = [this](ipc::Keys&& keys) {
    if (auto set = keys_.take(std::move(keys))) core_.set_keys(std::move(set));
  };
  handlers.serve = [this](ipc::Sockets&& message, std::vector<Fd>&& descriptors) {
    serve(std::move(message), std::move(descriptors));
  };
  handlers.close = [this](const ipc::CloseSockets& message) { close(message); };
  handlers.xdp_queues = [this] { return xdp_.held(); };
  handlers.serve_xdp = [this](const ipc::ServeXdp& what, std::vector<Fd>&& descriptors) {
    if (!core_.attached()) return fail("the manager sent an interface's queue before a store");
    xdp_.add(what, std::move(descriptors));
  };
  handlers.close_xdp = [this](const ipc::CloseXdp& message) { xdp_.close(message.queue); };
  handlers.stop = [this](const ipc::Stop& message) {
    stop(milliseconds(message.grace_ms));
  };
  handlers.sent_away = [this](const ipc::SentAway& message) { sent_away(message); };
  handlers.logging = [](const ipc::Logging& logging) {
    log::start({logging.level, logging.format, "worker"});
  };
  handlers.dnstap = [this](ipc::Dnstap&& settings, Fd stream) {
    taps_.set(std::move(settings), std::move(stream));
    taps_changed();
  };
  handlers.query_log = [this](const ipc::QueryLog& settings, Fd stream) {
    taps_.set(settings, std::move(stream));
    taps_changed();
  };
  handlers.tls_intake = [this](const ipc::TlsIntake& intake, Fd connection) {
    if (!core_.attached()) return fail("the manager sent a connection to pando-tls before a store");
    if (!stopping_) tls_.add(intake.slot, std::move(connection));
  };
  return handlers;
}

DnstapWriter::Calls Service::dnstap_calls() {
  DnstapWriter::Calls calls;
  calls.count = [this](std::uint64_t frames, std::uint64_t dropped) {
    if (!core_.attached()) return;
    core_.counting().add(ipc::Counter::kDnstapFrames, frames);
    core_.counting().add(ipc::Counter::kDnstapDropped, dropped);
  };
  calls.lost = [this] { link_.tell(ipc::DnstapLost{}); };
  return calls;
}

QueryLog::Count Service::query_log_count() {
  return [this](std::uint64_t lines, std::uint64_t dropped) {
    if (!core_.attached()) return;
    core_.counting().add(ipc::Counter::kQueryLogLines, lines);
    core_.counting().add(ipc::Counter::kQueryLogDropped, dropped);
  };
}

void Service::taps_changed() { core_.set_taps(taps_.on() ? &taps_ : nullptr); }

std::vector<std::pair<ipc::SocketDescription, int>> Service::sockets() const {
  auto list = udp_.sockets();
  const auto more = tcp_.sockets();
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

void Service::set_up(const ipc::Setup& setup, shm::SlotLoan files, Fd image) {
  if (setup.slot != options_.slot) return fail("the manager means another slot");
  if (core_.is_attached_to(files)) return core_.reader().settle();
  // A new store: no connection may continue reading the old one.
  tcp_.clients().close_all();
  tls_.clients().close_all();
  const auto attached =
      core_.attach(std::move(files), options_.layout, options_.slot, std::move(image));
  if (!attached) return fail(attached.error().text);
  udp_.keep_batches(core_.reader().scratch());
  log::info("store_attached", "slot", options_.slot);
}

void Service::serve(ipc::Sockets&& message, std::vector<Fd>&& descriptors) {
  if (!core_.attached()) return fail("sockets before a store");
  for (std::size_t i = 0; i < message.sockets.size(); ++i) {
    const auto& description = message.sockets[i];
    if (i < descriptors.size())
      serve_one(description, std::move(descriptors[i]));
    else if (!udp_.update(description) && !tcp_.update(description))
      log::warning("socket_unknown", "address", to_text(description.local));
  }
}

void Service::serve_one(const ipc::SocketDescription& description, Fd socket) {
  switch (description.transport) {
    case ipc::Transport::kUdp:
      return udp_.add(description, std::move(socket));
    case ipc::Transport::kTcp:
      return tcp_.add(description, std::move(socket));
    case ipc::Transport::kTls:  // pando-tls listens there
      return log::warning("tls_not_served", "address", to_text(description.local));
  }
}

void Service::close(const ipc::CloseSockets& message) {
  for (const auto id : message.sockets)
    if (!udp_.close(id)) tcp_.close(id);
}

void Service::drained(std::uint32_t socket) { link_.tell(ipc::Drained{socket}); }

void Service::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int) {
    if (!error) stop(kSignalGrace);
  });
}

/// Stops in an orderly way: queued requests are read, and connections may finish.
void Service::stop(milliseconds grace) {
  if (stopping_) return;
  stopping_ = true;
  log::info("worker_stopping", "slot", options_.slot);
  if (core_.attached()) core_.reader().leave();
  tls_.stop_accepting();
  stop_begun_ = Clock::now();
  stop_deadline_ = stop_begun_ + grace;
  stop_step();
}

void Service::stop_step() {
  const auto now = Clock::now();
  udp_.drain();
  xdp_.drain();
  if (now - stop_begun_ >= kAcceptLinger || now >= stop_deadline_) tcp_.stop_accepting();
  const std::size_t connections =
      tcp_.clients().close_idle(kQuiet) + tls_.clients().close_idle(kQuiet);
  const bool lingering = now - stop_begun_ < kAcceptLinger;
  const bool finished = !lingering && connections == 0 && link_.pending() == 0;
  if (finished || now >= stop_deadline_) return leave();
  stop_timer_.expires_after(kStopTick);
  stop_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) stop_step();
  });
}

void Service::leave() {
  tcp_.clients().close_all();
  tls_.clients().close_all();
  udp_.drain();
  xdp_.drain();
  taps_.end();
  link_.tell(ipc::Bye{});
  log::info("worker_stopped", "slot", options_.slot, "pid", ::getpid(), "log_lines_dropped",
            log::dropped());
  io_.stop();
}

/// Exits with kNotWanted, for which a service manager does not start this worker again.
void Service::sent_away(const ipc::SentAway& away) {
  log::warning("worker_sent_away", "slot", options_.slot, "reason",
               away.slot_taken
                   ? "another process has the slot"
                   : "the manager starts its workers itself: server.workers is not external");
  exit_code_ = kNotWanted;
}

void Service::fail(const std::string& reason) {
  log::error("worker_failed", "slot", options_.slot, "error", reason);
  exit_code_ = 1;
  io_.stop();
}

}  // namespace pando::worker

#include "tls/tls_service.h"

#include <unistd.h>

#include <csignal>

#include "ipc/log.h"

namespace pando::tls {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kCountsPause{1000};
constexpr milliseconds kStopTick{20};
constexpr milliseconds kSignalGrace{2000};

}  // namespace

TlsService::TlsService(asio::io_context& io, const TlsServiceOptions& options)
    : io_(io),
      options_(options),
      workers_(io),
      clients_(io, context_, workers_),
      listeners_(io, [this](Fd socket) { clients_.take(std::move(socket)); }),
      control_(io, options.run_directory + "/" + ipc::kTlsSocketName,
               {options.slot, options.build},
               {[this](ipc::ToTls&& message, std::vector<Fd>&& descriptors) {
                 std::visit([&](auto&& body) { take(std::move(body), std::move(descriptors)); },
                            std::move(message));
               }}),
      signals_(io, SIGTERM),
      counts_timer_(io),
      stop_timer_(io) {}

void TlsService::start() {
  log::info("tls_running", "slot", options_.slot, "pid", ::getpid());
  signals_.async_wait([this](const asio::error_code& error, int) {
    if (!error) stop(kSignalGrace);
  });
  control_.start();
  tell_counts();
}

void TlsService::take(ipc::TlsCertificate&&, std::vector<Fd>&& descriptors) {
  auto pem = descriptors.size() == 1
                 ? ipc::read_tls_file(descriptors.front().get())
                 : Result<Bytes>(fail(Errc::kInvalid, "a certificate without its file"));
  const Status used = pem ? context_.set_certificate(std::move(*pem)) : Status(pass(pem));
  control_.tell(ipc::TlsCertificateResult{used ? "" : used.error().text});
}

void TlsService::take(ipc::TlsTicketKeys&& message, std::vector<Fd>&&) {
  context_.set_ticket_keys(std::move(message.keys));
}

/// Demands that cannot be read are no reason to trust the last ones: nobody is identified then.
void TlsService::take(ipc::TlsDemands&&, std::vector<Fd>&& descriptors) {
  auto octets = descriptors.size() == 1
                    ? ipc::read_tls_file(descriptors.front().get())
                    : Result<Bytes>(fail(Errc::kInvalid, "demands without their file"));
  if (octets && *octets == demands_) return;
  auto demands = octets ? ipc::decode_tls_demands(*octets)
                        : Result<std::vector<ipc::TlsDemand>>(pass(octets));
  auto identities = demands ? ClientIdentities::of(*demands)
                            : Result<ClientIdentities>(pass(demands));
  if (!identities) log::error("tls_demands_refused", "error", identities.error().text);
  demands_ = octets ? std::move(*octets) : Bytes();
  context_.set_identities(identities ? std::move(*identities) : ClientIdentities());
  clients_.end_identified();
}

void TlsService::take(ipc::TlsLimits&& message, std::vector<Fd>&&) {
  clients_.set_limits(std::move(message));
}

void TlsService::take(ipc::TlsListen&& message, std::vector<Fd>&& descriptors) {
  if (stopping_) return;
  for (std::size_t i = 0; i < message.sockets.size() && i < descriptors.size(); ++i)
    listeners_.add(message.sockets[i], std::move(descriptors[i]));
}

void TlsService::take(ipc::TlsUnlisten&& message, std::vector<Fd>&&) {
  for (const std::uint32_t id : message.sockets) listeners_.close(id);
}

void TlsService::take(ipc::TlsWorker&& message, std::vector<Fd>&& descriptors) {
  if (descriptors.size() == 1) workers_.add(message.slot, std::move(descriptors.front()));
}

void TlsService::take(ipc::Logging&& message, std::vector<Fd>&&) {
  log::start({message.level, message.format, "tls"});
}

void TlsService::take(ipc::TlsStop&& message, std::vector<Fd>&&) {
  stop(milliseconds(message.grace_ms));
}

void TlsService::tell_counts() {
  if (const ipc::TlsCounts counts = clients_.counts(); counts != told_) {
    control_.tell(counts);
    told_ = counts;
  }
  counts_timer_.expires_after(kCountsPause);
  counts_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) tell_counts();
  });
}

void TlsService::stop(milliseconds grace) {
  if (!std::exchange(stopping_, true)) {
    log::info("tls_stopping", "slot", options_.slot, "pid", ::getpid(), "clients",
              clients_.size());
    stop_deadline_ = Clock::now() + grace;
    control_.leave();
    listeners_.stop();
  }
  stop_deadline_ = std::min(stop_deadline_, Clock::now() + grace);
  stop_step();
}

void TlsService::stop_step() {
  if (clients_.size() > 0 && Clock::now() < stop_deadline_) {
    stop_timer_.expires_after(kStopTick);
    return stop_timer_.async_wait([this](const asio::error_code& error) {
      if (!error) stop_step();
    });
  }
  clients_.close_all();
  log::info("tls_stopped", "slot", options_.slot, "pid", ::getpid());
  io_.stop();
}

}  // namespace pando::tls

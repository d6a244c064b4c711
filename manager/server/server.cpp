#include "manager/server/server.h"

#include <asio/post.hpp>
#include <csignal>
#include <utility>

#include "base/unix_time.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {
constexpr std::chrono::milliseconds kTick{1000};
/// How long the last checkpoint may take, while the workers still answer.
constexpr std::chrono::seconds kLastCheckpoint{30};
}  // namespace

Server::~Server() = default;

int Server::run() {
  await_signals();
  watchdog();
  workers_.start->begin();
  tick_later();  // the upkeep, huge pages most of all, is no part of a start
  io_.run();
  // Other threads may still post results; nobody runs them any more.
  zones_.loader->join();
  background_.pool().join();
  control_.commands->join();
  journal_thread_.join();
  log::info("manager_stopped");
  return exit_code_;
}

void Server::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int number) {
    if (error) return;
    if (number == SIGHUP)
      control_.reloader->reload_or_put_off();
    else
      stop();
    await_signals();
  });
}

/// Runs on the commit thread, so that the service manager learns when this thread hangs. Commits,
/// control and supervision are this one thread's. Other threads may wait for a disk, which no
/// restart mends, so nothing is asked of them.
void Server::watchdog() {
  const auto interval = systemd::watchdog_interval();
  if (!interval) return;
  systemd::alive();
  watchdog_timer_.expires_after(*interval / 2);
  watchdog_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) watchdog();
  });
}

void Server::tick() {
  readiness_.check();
  services_.committer->secure_journal();
  if (services_.journal_upkeep) services_.journal_upkeep->check(reads_journal());
  if (services_.checkpointer) services_.checkpointer->check(!reads_journal());
  // The store grows while an image is copied, so huge pages are checked when all of it is there.
  if (!services_.copying_image) services_.huge_pages->check();
  check_pinned();
  zones_.signatures->check_pin(configuration_.runtime->settings.limits.pinned_bytes);
  zones_.removed->drop_old(std::chrono::steady_clock::now(), unix_seconds(),
                           configuration_.runtime->settings.limits.removed_zones);
  zones_.loads->retry_waiting(std::chrono::steady_clock::now(),
                              [this] { return make_history(*data_->journal); });
  zones_.signing->check(std::chrono::steady_clock::now());
  zones_.loader->log_progress(std::chrono::steady_clock::now());
  control_.reloader->free_retired();
  workers_.tls->follow_interfaces();
  if (zones_.loader->idle()) services_.heap_upkeep->check(std::chrono::steady_clock::now());
  tick_later();
}

void Server::tick_later() {
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) tick();
  });
}

void Server::check_pinned() {
  workers_.pinned->check(configuration_.runtime->settings.limits.pinned_bytes);
}

/// False: the process is ending already.
bool Server::begin_stop() {
  if (std::exchange(stopping_, true)) return false;
  workers_.listeners->leave();
  workers_.previous_store->stop();
  lists_->stop();
  control_.reloader->stop();
  return true;
}

void Server::stop() {
  if (!begin_stop()) return;
  log::info("manager_stopping");
  readiness_.stops();
  zones_.loader->stop();  // immediately, as the process waits for the loader's threads
  // Workers first, so that no request comes in any more; then accepted work is finished.
  write_last_checkpoint([this] {
    end_parts();
    // Workers end the connections of pando-tls, which has nothing to do then.
    workers_.pool->stop([this] {
      workers_.tls->stop([this] { leave(std::chrono::steady_clock::now() + kLastWork); });
    });
  });
}

/// Updates that come during the checkpoint are in the journal, as ever.
void Server::write_last_checkpoint(std::function<void()> done) {
  // Until the image is copied, image and journal have everything.
  if (!services_.checkpointer || !zones_.loads->settled() || services_.copying_image) return done();
  services_.checkpointer->hurry();
  checkpoint_timer_.expires_after(kLastCheckpoint);
  checkpoint_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) services_.checkpointer->abort();
  });
  services_.checkpointer->write_now([this, done = std::move(done)](const Status&) {
    checkpoint_timer_.cancel();
    done();
  });
}

/// Workers go on alone, until another manager comes. Clients that wait for an update get SERVFAIL
/// from the workers, as after any other end of a manager.
void Server::leave_workers() {
  if (!begin_stop()) return;
  log::info("manager_handing_over");
  readiness_.stops();
  workers_.pool->abandon();
  workers_.tls->abandon();
  end_parts();
  leave(std::chrono::steady_clock::now() + kLastWork);
}

void Server::end_parts() {
  control_.commands->stop();
  control_.catalogs->stop();
  control_.run_time_zones->stop();
  zones_.loader->stop();
  zones_.signatures->stop();
  zones_.signing->stop();
  lists_->give_up();
  control_.reloader->give_up();
  services_.upkeep->stop();
  zones_.exports->stop();
  zones_.secondaries->stop();
  zones_.refresher->stop();
  zones_.notifier->stop();
  zones_.forwarder->stop();
  services_.road->stop();
  network_->stop();
  zones_.verifiers->stop();
  workers_.certificates->stop();
  if (control_.socket) control_.socket->close();
}

void Server::leave(std::chrono::steady_clock::time_point deadline) {
  // Handlers that the network's thread posted may own coroutines of its loop, which ends no later
  // than io_, so these handlers run first.
  if (!services_.committer->busy() || std::chrono::steady_clock::now() > deadline)
    return asio::post(io_, [this] { io_.stop(); });
  tick_timer_.expires_after(std::chrono::milliseconds(5));
  tick_timer_.async_wait([this, deadline](const asio::error_code&) { leave(deadline); });
}

}  // namespace pando::manager

#include "manager/server/server.h"

#include <algorithm>
#include <asio/post.hpp>
#include <csignal>
#include <filesystem>
#include <utility>

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/server/systemd.h"

namespace pando::manager {

namespace {
constexpr std::chrono::milliseconds kTick{1000};
/// How long accepted work may take before the process leaves anyway.
constexpr std::chrono::seconds kLastWork{10};
/// And the last checkpoint, while the workers still answer.
constexpr std::chrono::seconds kLastCheckpoint{30};
}  // namespace

Server::~Server() = default;

int Server::run() {
  await_signals();
  watchdog();
  begin_serving();
  tick_later();  // what it looks after, huge pages most of all, is no part of a start
  io_.run();
  // Pool threads may still post results; nobody runs them any more.
  pool_.join();
  if (file_writers_) file_writers_->pool().join();
  journal_thread_.join();
  log::info("manager_stopped");
  return exit_code_;
}

void Server::await_signals() {
  signals_.async_wait([this](const asio::error_code& error, int number) {
    if (error) return;
    if (number == SIGHUP)
      reload_or_put_off();
    else
      stop();
    await_signals();
  });
}

/// From the commit thread: when it hangs, the service manager learns of it.
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
  committer_->secure_journal();
  if (journal_upkeep_) journal_upkeep_->check(loads_->under_way());
  if (checkpointer_) checkpointer_->check(!loads_->under_way());
  // What grows while an image is copied has to be looked at when it is there.
  if (!copying_image_) huge_pages_->check();
  check_pinned();
  loader_->tell_progress(std::chrono::steady_clock::now());
  if (loader_->idle()) heap_upkeep_->check(std::chrono::steady_clock::now());
  tick_later();
}

void Server::tick_later() {
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) tick();
  });
}

/// Memory that is held back for readers of old versions has a bound: whoever holds the oldest one
/// is asked for it, and ended when that does not help; at once when there is twice as much. Looked
/// at with each version, as nothing else adds to it, and each second for the sake of who was asked.
void Server::check_pinned() {
  // Nobody holds what waits now: it has to wait for the image.
  if (copying_image_) return;
  const std::uint64_t limit = runtime_->settings.limits.pinned_bytes;
  const auto held = [this] {
    std::uint64_t waiting = store_->stats().waiting_chunks;
    // What checkpoints, dumps and the like hold is not the workers' fault.
    for (const std::uint64_t version : slots_->own_epochs())
      waiting -= std::min<std::uint64_t>(waiting, store_->chunks_held_by(version));
    return waiting * shm::kChunkBytes;
  };
  if (store_->stats().waiting_chunks * shm::kChunkBytes <= limit || held() <= limit) return;
  upkeep_->reclaim();
  const std::uint64_t bytes = held();
  if (bytes <= limit) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - pinned_told_ >= kTick) {
    pinned_told_ = now;
    log::warning("memory_pinned", "bytes", bytes, "limit", limit);
  }
  // Who reads the present version holds nothing, however long it has been the present one.
  workers_->release_oldest(store_->current().number, bytes / 2 > limit);
}

void Server::stop() {
  if (std::exchange(stopping_, true)) return;
  log::info("manager_stopping");
  systemd::stopping();
  loader_->stop();  // at once: the process ends no earlier than its threads
  write_last_checkpoint([this] { stop_parts(); });
}

/// Updates that come meanwhile are in the journal, as ever.
void Server::write_last_checkpoint(std::function<void()> done) {
  // Before the image is copied, it and the journal have everything.
  if (!checkpointer_ || !loads_->settled() || copying_image_) return done();
  checkpointer_->hurry();
  checkpoint_timer_.expires_after(kLastCheckpoint);
  checkpoint_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) checkpointer_->abort();
  });
  checkpointer_->write_now([this, done = std::move(done)](const Status&) {
    checkpoint_timer_.cancel();
    done();
  });
}

/// Workers go on alone, until another manager comes. Whoever waits for an update gets SERVFAIL from
/// them, as after any other end of a manager.
void Server::leave_workers() {
  if (std::exchange(stopping_, true)) return;
  log::info("manager_handing_over");
  systemd::stopping();
  workers_->abandon();
  end_parts();
  leave(std::chrono::steady_clock::now() + kLastWork);
}

/// A damaged image is found when workers have served from it. The store goes, and so does the
/// image, and the process ends: the next one, which whoever has started this one starts, makes the
/// store anew from zone files and journal, as it would have done had it known. Until then workers
/// answer from what they have.
void Server::leave_damaged_image(const Error& reason) {
  log::error("image_damaged", "reason", reason.text);
  const LentImage& lent = copying_image_->lent();
  Status left = QuarantinedImage::leave(native_files(), lent.index_path, reason);
  crash_point("image-damaged");
  // A store that has not got all its chunks is not attached to in any case. With it the next start
  // would know that the image, which is still there, has to be read before it is served.
  if (left) left = native_files().remove(lent.store_path);
  if (!left) log::error("image_not_removed", "reason", left.error().text);
  exit_code_ = 1;
  if (std::exchange(stopping_, true)) return;
  systemd::stopping();
  workers_->abandon();
  end_parts();
  leave(std::chrono::steady_clock::now() + kLastWork);
}

/// Workers first, so that no request comes in any more; then what was accepted is finished.
void Server::stop_parts() {
  end_parts();
  workers_->stop([this] { leave(std::chrono::steady_clock::now() + kLastWork); });
}

void Server::end_parts() {
  *ending_ = true;
  loader_->stop();
  give_up_waiting();
  upkeep_->stop();
  exports_->stop();
  secondaries_->stop();
  visits_->stop();
  notifier_->stop();
  forwarder_->stop();
  changes_->stop();
  network_->stop();
  if (control_) control_->close();
}

void Server::leave(std::chrono::steady_clock::time_point deadline) {
  // What the network's thread posted before it ended may own coroutines of its loop, which is there
  // no longer than io_: it runs first.
  if (!committer_->busy() || std::chrono::steady_clock::now() > deadline)
    return asio::post(io_, [this] { io_.stop(); });
  tick_timer_.expires_after(std::chrono::milliseconds(5));
  tick_timer_.async_wait([this, deadline](const asio::error_code&) { leave(deadline); });
}

}  // namespace pando::manager

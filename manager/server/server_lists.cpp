#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/pause_point.h"
#include "ipc/log.h"
#include "manager/server/server.h"
#include "manager/server/systemd.h"

namespace pando::manager {

// A live store has everything that workers need, so it is served before the zone lists are read,
// which takes 10 µs for each zone. What needs to know the zones of the configuration waits: updates
// and NOTIFYs at the gate, commands below.

namespace {

/// Commands that wait: half of the connections that there may be, so that others get through.
constexpr std::size_t kMaxWaitingCommands = 32;

/// A worker starts and serves in a tenth of this.
constexpr std::chrono::milliseconds kWorkersFirst{100};

/// Nothing that these say or do depends on which zones are configured.
constexpr std::array kAtOnce{ipc::verb::kStatus,    ipc::verb::kStop,
                             ipc::verb::kReload,    ipc::verb::kWorkerList,
                             ipc::verb::kWorkerAdd, ipc::verb::kWorkerRemove};

/// These change zones, or need all of them to have been looked at.
constexpr std::array kNeedsZones{ipc::verb::kZoneExport, ipc::verb::kZoneRollback,
                                 ipc::verb::kZoneSnapshot, ipc::verb::kStoreDump,
                                 ipc::verb::kHandOver};

template <class List>
bool is_in(const List& verbs, std::string_view verb) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

/// `known` and the zones of the lists. In any thread.
Result<RuntimePtr> with_lists(const RuntimePtr& known, std::shared_ptr<config::UnreadLists> lists) {
  config::LoadResult loaded;
  loaded.settings = known->settings;
  loaded.lists = std::move(lists);
  config::read_lists(loaded);
  if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
  return make_runtime(std::move(loaded.settings));
}

}  // namespace

/// A store without the list of zones is nothing to serve from: then all is known before it is.
Status Server::read_lists_first() {
  if (!lists_) return {};
  auto complete = with_lists(runtime_, std::exchange(lists_, nullptr));
  lists_are_wrong_ = !complete;
  if (!complete) return pass(complete);
  runtime_ = std::move(*complete);
  return {};
}

/// When the first worker serves, which needs the processor more; or soon, as none may come.
void Server::read_lists_later() {
  list_state_ = ListState::kReading;
  gate_->hold();
  lists_timer_.expires_after(kWorkersFirst);
  lists_timer_.async_wait([this](const asio::error_code&) {
    if (!stopping_) read_lists_now();
  });
}

void Server::read_lists_now() {
  if (!lists_) return;  // it is being read
  asio::post(pool_, [this, known = runtime_, lists = std::exchange(lists_, nullptr)] {
    pause_point("zone-lists");
    auto complete = std::make_shared<Result<RuntimePtr>>(with_lists(known, lists));
    asio::post(io_, [this, complete] { lists_read(*complete); });
  });
}

void Server::lists_read(const Result<RuntimePtr>& complete) {
  if (stopping_) return;
  if (!complete) return lists_failed(complete.error());
  runtime_ = *complete;
  configured_ = static_cast<std::uint64_t>(std::time(nullptr));
  service_->set_runtime(runtime_);
  lists_in_use();
  bring_in_line();
}

/// As after a reload that fails: what was served goes on being served, and a reload tries again.
/// The store's list of zones stays as it is, for nobody knows which of them are to go.
void Server::lists_failed(const Error& error) {
  list_state_ = ListState::kFailed;
  list_problem_ = error.text;
  log::error("zone_lists_not_read", "reason", error.text, "effect",
             "the zones of the store are served as they were, and not updated, until a reload");
  if (!waiting_reload_) systemd::ready(kListsNotRead);
  gate_->shut("the zone lists could not be read");
  count_loaded();
  if (workers_later_) start_workers();
  in_line_ = true;
  for (const auto& command : std::exchange(waiting_commands_, {})) command();
  if (waiting_reload_) start_reload(std::exchange(waiting_reload_, nullptr));
}

/// Nobody compares the store's zones with the configuration, which would tell how many have data.
void Server::count_loaded() {
  const zone::StoreView now = committer_->current();
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots_->pin_own(now.version()));
  asio::post(pool_, [this, now, pin = std::move(pin)]() mutable {
    std::uint64_t count = 0;
    zone::ZoneWalk walk(now);
    while (const zone::ZoneView zone = walk.next()) count += zone.loaded() ? 1 : 0;
    pin.reset();
    asio::post(io_, [this, count] {
      if (list_state_ == ListState::kFailed) loads_->recounted(count);
    });
  });
}

/// The configuration has all its zones, from here on or for long.
void Server::lists_in_use() {
  if (list_state_ == ListState::kRead) return;
  list_state_ = ListState::kRead;
  list_problem_.clear();
  gate_->open();
  for (const auto& command : std::exchange(waiting_commands_, {})) command();
}

/// The process ends: nobody is left without an answer.
void Server::give_up_waiting() {
  if (list_state_ == ListState::kReading) gate_->shut("the server is being stopped");
  for (const auto& command : std::exchange(waiting_commands_, {})) command();
  if (const auto reload = std::exchange(waiting_reload_, nullptr))
    reload_end(reload, fail(Errc::kExists, "the process ends"));
}

/// True: the command waits, or was answered with the reason why it cannot be carried out.
bool Server::put_off(const ipc::ControlRequest& request, const ControlServer::Reply& reply) {
  const auto refuse = [&](const Error& why) {
    reply(tl::unexpected<Error>(why));
    return true;
  };
  if (list_state_ == ListState::kRead || is_in(kAtOnce, request.verb)) return false;
  if (list_state_ == ListState::kFailed)
    return is_in(kNeedsZones, request.verb) &&
           refuse({Errc::kExists,
                   "the zone lists could not be read, reload when they can: " + list_problem_});
  if (stopping_) return refuse({Errc::kExists, "the zone lists are being read"});
  if (waiting_commands_.size() >= kMaxWaitingCommands)
    return refuse({Errc::kFull, "too many commands wait for the zone lists"});
  waiting_commands_.emplace_back([this, request, reply] { control(request, reply); });
  return true;
}

}  // namespace pando::manager

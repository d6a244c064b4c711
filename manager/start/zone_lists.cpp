#include "manager/start/zone_lists.h"

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/pause_point.h"
#include "ipc/log.h"
#include "manager/signing/keys/signed_zone_list.h"

namespace pando::manager {

namespace {

/// Commands that do not depend on the zones of the configuration.
constexpr std::array kAtOnce{
    ipc::verb::kStatus,     ipc::verb::kStop,        ipc::verb::kReload,
    ipc::verb::kWorkerList, ipc::verb::kWorkerAdd,   ipc::verb::kWorkerRemove,
    ipc::verb::kLogLevel,   ipc::verb::kZoneQueries, ipc::verb::kHttpSettings};

/// Commands that change zones, or need the files of all zones to have been checked.
constexpr std::array kNeedsZones{ipc::verb::kZoneExport,   ipc::verb::kZoneRollback,
                                 ipc::verb::kZoneSnapshot, ipc::verb::kZonePurge,
                                 ipc::verb::kZoneBegin,    ipc::verb::kZoneCommit,
                                 ipc::verb::kZoneAdd,      ipc::verb::kZoneRemove,
                                 ipc::verb::kZoneReload,   ipc::verb::kZoneConfigure,
                                 ipc::verb::kZoneFreeze,   ipc::verb::kZoneThaw,
                                 ipc::verb::kStoreDump,    ipc::verb::kHandOver};

template <class List>
bool is_in(const List& verbs, std::string_view verb) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

}  // namespace

Result<RuntimePtr> with_lists(const RuntimePtr& known, UnreadLists lists) {
  config::LoadResult loaded;
  loaded.settings = known->settings;
  loaded.lists = std::move(lists);
  config::read_lists(loaded);
  if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
  if (const auto stays = check_signed_zones(native_files(), loaded.settings); !stays)
    return pass(stays);
  return make_runtime(std::move(loaded.settings));
}

ZoneLists::ZoneLists(asio::io_context& io, asio::thread_pool& pool, UpdateQueue& queue,
                     UnreadLists lists, Hooks hooks)
    : io_(io),
      pool_(pool),
      queue_(queue),
      lists_(std::move(lists)),
      hooks_(std::move(hooks)),
      timer_(io) {}

std::string_view ZoneLists::state_text() const noexcept {
  if (state_ == State::kRead) return "read";
  return state_ == State::kReading ? "reading" : "failed";
}

void ZoneLists::read_later(RuntimePtr known) {
  known_ = std::move(known);
  state_ = State::kReading;
  queue_.pause();
  timer_.expires_after(kWorkersFirst);
  timer_.async_wait([this](const asio::error_code&) {
    if (!stopping_) read_now();
  });
}

void ZoneLists::read_now() {
  if (!lists_) return;  // a thread reads them
  asio::post(pool_, [this, known = std::exchange(known_, nullptr),
                     lists = std::exchange(lists_, nullptr)] {
    pause_point("zone-lists");
    auto complete = std::make_shared<Result<RuntimePtr>>(with_lists(known, lists));
    asio::post(io_, [this, complete] { end_read(*complete); });
  });
}

/// A failure has the effect of a failed reload: the store is served as it was, and a reload tries
/// again. The store's list of zones stays, as nobody knows which of its zones are to go.
void ZoneLists::end_read(const Result<RuntimePtr>& complete) {
  if (stopping_) return;
  if (complete) return hooks_.read(*complete);
  state_ = State::kFailed;
  problem_ = complete.error().text;
  log::error("zone_lists_not_read", "reason", problem_, "effect",
             "the zones of the store are served as they were, and not updated, until a reload");
  hooks_.failed();
}

void ZoneLists::accept() {
  if (state_ == State::kRead) return;
  state_ = State::kRead;
  problem_.clear();
  queue_.resume();
  run_waiting();
}

void ZoneLists::refuse_updates() { queue_.reject("the zone lists could not be read"); }

void ZoneLists::run_waiting() {
  for (const auto& command : std::exchange(waiting_, {})) command();
}

void ZoneLists::give_up() {
  if (state_ == State::kReading) queue_.reject("the server is being stopped");
  run_waiting();
}

bool ZoneLists::put_off(std::string_view verb, std::function<void()> again, const Reply& reply) {
  const auto refuse = [&](const Error& why) {
    reply(pass(why));
    return true;
  };
  if (state_ == State::kRead || is_in(kAtOnce, verb)) return false;
  if (state_ == State::kFailed)
    return is_in(kNeedsZones, verb) &&
           refuse({Errc::kExists,
                   "the zone lists could not be read, reload when they can: " + problem_});
  if (stopping_) return refuse({Errc::kExists, "the zone lists are being read"});
  if (waiting_.size() >= kMaxWaitingCommands)
    return refuse({Errc::kFull, "too many commands wait for the zone lists"});
  waiting_.push_back(std::move(again));
  return true;
}

}  // namespace pando::manager

#include "manager/catalog/catalog_consumer.h"

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>

#include "dns/folded_key.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr std::chrono::seconds kInterval{1};
/// Pause after an error that may pass, such as a full store.
constexpr std::uint64_t kRetryAfter = 10;  // seconds
/// Commands add zones one by one, and a large catalog must not be compared after each.
constexpr std::uint64_t kAfterCommands = 10;  // seconds
constexpr std::size_t kMaxRefusalLines = 10;  // of the log, about refused members of one round

/// The template of the first group that the configuration knows.
std::string template_of(const config::Catalog& catalog, const CatalogMember& member) {
  for (const config::CatalogGroup& group : catalog.groups)
    if (std::ranges::find(member.groups, group.name) != member.groups.end())
      return group.template_name;
  return catalog.template_name;
}

std::uint64_t grace_of(const config::Catalog& catalog) {
  return static_cast<std::uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(catalog.removal_grace).count());
}

/// The refused members that the log names.
std::span<const CatalogUpdate::Refused> first_of(const std::vector<CatalogUpdate::Refused>& all) {
  return std::span(all).first(std::min(kMaxRefusalLines, all.size()));
}

void add_problem(std::string& problem, const std::vector<CatalogUpdate::Refused>& members,
                 std::string_view fate) {
  if (members.empty()) return;
  problem += fmt::format("{}{} of its members {}: {}: {}", problem.empty() ? "" : "; ",
                         members.size(), fate, to_text(members[0].zone), members[0].reason);
}

/// Zones that a catalog yields to others, by the catalog that may take them over. All are
/// dns::folded_key().
using Yields = std::map<std::string, std::set<std::string>>;

}  // namespace

struct CatalogConsumer::State {
  std::uint64_t data_version = 0;   // of the catalog, when last checked
  std::uint64_t configured_at = 0;  // the configuration of then
  std::uint64_t zone_commands = 0;  // Calls::zone_commands of then
  std::uint64_t begun_at = 0;       // time of the last check
  config::Catalog settings{};       // and its section
  std::uint64_t retry_at = 0;       // 0: only after a change
  std::uint64_t many_left_at = 0;   // since when members wait for their removal; 0: none do
  bool failed = false;              // the members could not be configured
  bool has_refused = false;         // some members are not taken
  std::map<std::string, CatalogMember> members{};  // by dns::folded_key() of the zone
  Yields yields{};
  std::string problem{};
};

/// One check of one catalog.
struct CatalogConsumer::Task {
  config::Catalog catalog;
  zone::ZoneView zone;
  dns::Serial serial;
  bool alone = false;  // applied without others, since its last try failed
  Status read{};       // an error: the catalog is broken
  std::map<std::string, CatalogMember> members{};
  Yields yields{};
  std::shared_ptr<CatalogUpdate> update = std::make_shared<CatalogUpdate>();

  [[nodiscard]] std::string key() const { return dns::folded_key(catalog.zone); }
  /// In a pool thread: a catalog may have a million members.
  void read_members();
};

void CatalogConsumer::Task::read_members() {
  auto found = read_catalog(zone);
  if (!found) {
    read = pass(found);
    return;
  }
  update->catalog = catalog.zone;
  update->primaries = catalog.primaries;
  update->members_below = catalog.members_below;
  for (CatalogMember& member : *found) {
    std::string name = dns::folded_key(member.zone);
    update->members.push_back({member.zone, template_of(catalog, member)});
    if (member.new_catalog) yields[dns::folded_key(*member.new_catalog)].insert(name);
    members.emplace(std::move(name), std::move(member));
  }
}

/// One comparison of all catalogs that have changed.
struct CatalogConsumer::Round {
  shm::SlotTable::OwnPin pin;  // of the version with the zones of the tasks
  std::vector<TaskPtr> tasks{};
  std::vector<TaskPtr> waiting{};  // to be applied one after the other, the last one first
  std::size_t under_way = 0;
};

CatalogConsumer::CatalogConsumer(asio::io_context& io, asio::thread_pool& pool, const Parts& parts,
                                 Calls calls)
    : io_(io), pool_(pool), parts_(parts), calls_(std::move(calls)), timer_(io) {}

CatalogConsumer::~CatalogConsumer() = default;

void CatalogConsumer::start() { look_later(); }

void CatalogConsumer::stop() {
  stopped_ = true;
  timer_.cancel();
}

void CatalogConsumer::look_later() {
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error || stopped_) return;
    look();
    look_later();
  });
}

bool CatalogConsumer::is_due(const config::Catalog& catalog, const zone::ZoneView& zone,
                             const State& state) const {
  const std::uint64_t now = calls_.now();
  return state.data_version != zone.data_version() || state.settings != catalog ||
         state.configured_at != parts_.configuration.reads ||
         (state.retry_at != 0 && now >= state.retry_at) ||
         (state.zone_commands != calls_.zone_commands() && now >= state.begun_at + kAfterCommands);
}

void CatalogConsumer::look() {
  if (round_ || stopped_) return;
  const auto& catalogs = parts_.configuration.runtime->settings.catalogs;
  std::erase_if(states_, [&](const auto& state) {
    return std::ranges::find(catalogs, dns::name_of_key(state.first), [](const auto& catalog) {
             return catalog.zone.view();
           }) == catalogs.end();
  });
  auto round = std::make_shared<Round>();
  round->pin = parts_.slots.pin_own(parts_.store.current().number);
  for (const config::Catalog& catalog : catalogs) {
    if (catalog.role != config::Catalog::Role::kConsumer) continue;
    const zone::ZoneView zone = parts_.committer.current().zone_at(catalog.zone);
    if (!zone || !zone.loaded()) continue;
    State& state = states_[dns::folded_key(catalog.zone)];
    if (is_due(catalog, zone, state)) round->tasks.push_back(begin(catalog, zone, state));
  }
  if (round->tasks.empty()) return;
  round_ = std::move(round);
  read_all();
}

CatalogConsumer::TaskPtr CatalogConsumer::begin(const config::Catalog& catalog,
                                                const zone::ZoneView& zone, State& state) const {
  state.data_version = zone.data_version();
  state.configured_at = parts_.configuration.reads;
  state.zone_commands = calls_.zone_commands();
  state.begun_at = calls_.now();
  state.settings = catalog;
  auto task = std::make_shared<Task>();
  task->catalog = catalog;
  task->zone = zone;
  task->serial = zone.serial();
  task->alone = std::exchange(state.failed, false);
  state.retry_at = 0;
  return task;
}

void CatalogConsumer::read_all() {
  asio::post(pool_, [this, round = round_] {
    for (const TaskPtr& task : round->tasks) task->read_members();
    asio::post(io_, [this] { all_read(); });
  });
}

/// The members of all catalogs are known before the first one is applied: a catalog may yield
/// members to another one. A catalog whose last try failed is applied alone: the reason, such as a
/// full store, must not block the members of others.
void CatalogConsumer::all_read() {
  round_->pin = {};
  if (stopped_) return round_.reset();
  std::vector<TaskPtr> together;
  for (const TaskPtr& task : round_->tasks) {
    if (task->read)
      (task->alone ? round_->waiting : together).push_back(task);
    else
      refuse(*task, states_[task->key()], task->read.error());
  }
  round_->under_way = together.size();
  for (const TaskPtr& task : together) apply(task);
  if (together.empty()) apply_next();
}

void CatalogConsumer::apply_next() {
  if (stopped_ || round_->waiting.empty()) return round_.reset();
  const TaskPtr task = std::move(round_->waiting.back());
  round_->waiting.pop_back();
  round_->under_way = 1;
  apply(task);
}

void CatalogConsumer::apply(const TaskPtr& task) {
  const State& state = states_[task->key()];
  const std::uint64_t grace = grace_of(task->catalog);
  task->update->yielded = yielded_to(task->key());
  task->update->may_remove_many =
      grace == 0 || (state.many_left_at != 0 && calls_.now() >= state.many_left_at + grace);
  calls_.update(task->update, [this, task](const Status& status) {
    applied(task, status);
    if (--round_->under_way == 0) apply_next();
  });
}

/// A member moves if the catalog that has it says so (RFC 9432 §4.4.1). Catalogs that are applied
/// together know of each other's members already.
std::set<std::string> CatalogConsumer::yielded_to(const std::string& catalog) const {
  std::map<std::string, const Yields*> all;
  for (const auto& [key, state] : states_) all[key] = &state.yields;
  for (const TaskPtr& task : round_->tasks)
    if (task->read) all[task->key()] = &task->yields;
  std::set<std::string> zones;
  for (const auto& [key, yields] : all)
    if (const auto found = yields->find(catalog); found != yields->end())
      zones.insert(found->second.begin(), found->second.end());
  return zones;
}

void CatalogConsumer::refuse(const Task& task, State& state, const Error& error) {
  state.problem = fmt::format("catalog not used: {}", error.text);
  log::warning("catalog_not_used", "catalog", to_text(task.catalog.zone), "serial",
               task.serial.value, "reason", error.text);
}

void CatalogConsumer::applied(const TaskPtr& task, const Status& status) {
  if (stopped_) return;
  State& state = states_[task->key()];
  if (!status) {
    state.failed = true;
    state.retry_at = calls_.now() + kRetryAfter;
    return refuse(*task, state, status.error());
  }
  const CatalogUpdate& update = *task->update;
  if (update.waiting == 0) state.many_left_at = 0;
  if (update.waiting != 0) {
    if (state.many_left_at == 0) state.many_left_at = calls_.now();
    state.retry_at = state.many_left_at + grace_of(task->catalog);
  }
  reset_changed(*task, state);
  state.members = std::move(task->members);
  state.has_refused = !update.refused.empty();
  // Another catalog may get now what it was refused before.
  if (state.yields != task->yields || update.removed + update.taken_over != 0)
    for (auto& [key, other] : states_)
      if (key != task->key() && other.has_refused) other.data_version = 0;
  state.yields = task->yields;
  tell(*task, state);
}

void CatalogConsumer::reset_changed(const Task& task, const State& state) {
  for (const auto& [key, member] : task.members) {
    const auto before = state.members.find(key);
    if (before == state.members.end() || before->second.id == member.id) continue;
    calls_.reset(member.zone);
    log::info("catalog_member_reset", "catalog", to_text(task.catalog.zone), "zone",
              to_text(member.zone));
  }
}

void CatalogConsumer::tell(const Task& task, State& state) {
  const CatalogUpdate& update = *task.update;
  const std::string catalog = to_text(task.catalog.zone);
  state.problem.clear();
  if (update.added + update.removed + update.changed + update.taken_over != 0)
    log::info("catalog_applied", "catalog", catalog, "serial", task.serial.value, "members",
              state.members.size(), "added", update.added, "removed", update.removed, "changed",
              update.changed, "taken_over", update.taken_over);
  if (update.waiting != 0) {
    const std::uint64_t left = state.retry_at - calls_.now();
    state.problem =
        fmt::format("{} left at once, and {} served until {:%FT%TZ} (removal-grace)",
                    update.waiting == 1 ? "1 member" : fmt::format("{} members", update.waiting),
                    update.waiting == 1 ? "is" : "are",
                    fmt::gmtime(static_cast<std::time_t>(calls_.host_time() + left)));
    log::warning("catalog_removals_wait", "catalog", catalog, "serial", task.serial.value, "zones",
                 update.waiting, "s", left);
  }
  add_problem(state.problem, update.refused, "not taken");
  add_problem(state.problem, update.retained, "retained");
  for (const auto& member : first_of(update.refused))
    log::warning("catalog_member_not_taken", "catalog", catalog, "zone", to_text(member.zone),
                 "reason", member.reason);
  for (const auto& member : first_of(update.retained))
    log::warning("catalog_member_retained", "catalog", catalog, "zone", to_text(member.zone),
                 "reason", member.reason);
}

std::string CatalogConsumer::problem(dns::NameView zone) const {
  if (states_.empty()) return {};
  const auto found = states_.find(dns::folded_key(zone));
  return found == states_.end() ? std::string() : found->second.problem;
}

}  // namespace pando::manager

#include "manager/catalog/catalog_consumer.h"

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>

#include "dns/folded_key.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

constexpr std::chrono::seconds kInterval{1};
/// Pause after an error that may pass, such as a full store.
constexpr std::uint64_t kRetryAfter = 10;  // seconds
constexpr std::size_t kMostLines = 10;     // of the log, about refused members of one look

/// The template of the first group that the configuration knows.
std::string template_of(const config::Catalog& catalog, const CatalogMember& member) {
  for (const config::CatalogGroup& group : catalog.groups)
    if (std::ranges::find(member.groups, group.name) != member.groups.end())
      return group.template_name;
  return catalog.template_name;
}

}  // namespace

struct CatalogConsumer::State {
  std::uint64_t data_version = 0;   // of the catalog, as it was looked at last
  std::uint64_t configured_at = 0;  // the configuration of then
  config::Catalog settings{};       // and its section
  std::uint64_t retry_at = 0;       // 0: only after a change
  std::uint64_t many_left_at = 0;   // since when members wait for their removal; 0: none do
  std::map<std::string, CatalogMember> members{};  // by dns::folded_key() of the zone
  std::string problem{};
};

/// One look at one catalog.
struct CatalogConsumer::Task {
  config::Catalog catalog;
  zone::ZoneView zone;
  shm::SlotTable::OwnPin pin;
  dns::Serial serial;
  std::map<std::string, CatalogMember> members{};
  std::shared_ptr<CatalogUpdate> update{};
  std::uint64_t reset = 0;

  [[nodiscard]] std::string key() const { return dns::folded_key(catalog.zone); }
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
  return state.data_version != zone.data_version() || state.settings != catalog ||
         state.configured_at != parts_.configuration.read_at ||
         (state.retry_at != 0 && calls_.now() >= state.retry_at);
}

void CatalogConsumer::look() {
  if (busy_) return;
  const auto& catalogs = parts_.configuration.runtime->settings.catalogs;
  std::erase_if(states_, [&](const auto& state) {
    return std::ranges::find(catalogs, dns::name_of_key(state.first), [](const auto& catalog) {
             return catalog.zone.view();
           }) == catalogs.end();
  });
  for (const config::Catalog& catalog : catalogs) {
    if (busy_ || stopped_) return;
    if (catalog.role != config::Catalog::Role::kConsumer) continue;
    const zone::ZoneView zone = parts_.committer.current().zone_at(catalog.zone);
    if (!zone || !zone.loaded()) continue;
    State& state = states_[dns::folded_key(catalog.zone)];
    if (is_due(catalog, zone, state)) begin(catalog, zone, state);
  }
}

void CatalogConsumer::begin(const config::Catalog& catalog, const zone::ZoneView& zone,
                            State& state) {
  busy_ = true;
  state.data_version = zone.data_version();
  state.configured_at = parts_.configuration.read_at;
  state.settings = catalog;
  state.retry_at = 0;
  auto task = std::make_shared<Task>();
  task->catalog = catalog;
  task->pin = parts_.slots.pin_own(parts_.store.current().number);
  task->zone = zone;
  task->serial = zone.serial();
  asio::post(pool_, [this, task] {
    auto members = read_catalog(task->zone);
    asio::post(io_, [this, task, members = std::move(members)]() mutable {
      taken(task, std::move(members));
    });
  });
}

void CatalogConsumer::taken(const TaskPtr& task, Result<std::vector<CatalogMember>> members) {
  task->pin = {};
  if (stopped_) return;
  State& state = states_[task->key()];
  if (!members) {
    busy_ = false;
    return refuse(*task, state, members.error());
  }
  auto update = std::make_shared<CatalogUpdate>();
  update->catalog = task->catalog.zone;
  update->primaries = task->catalog.primaries;
  for (CatalogMember& member : *members) {
    update->members.push_back({member.zone, template_of(task->catalog, member)});
    task->members.emplace(dns::folded_key(member.zone), std::move(member));
  }
  find_yielded(*update);
  const auto grace = static_cast<std::uint64_t>(
      std::chrono::ceil<std::chrono::seconds>(task->catalog.removal_grace).count());
  update->may_remove_many =
      grace == 0 || (state.many_left_at != 0 && calls_.now() >= state.many_left_at + grace);
  task->update = update;
  calls_.update(update, [this, task](const Status& status) { applied(task, status); });
}

/// A member moves if the catalog that has it says so (RFC 9432 §4.4.1).
void CatalogConsumer::find_yielded(CatalogUpdate& update) const {
  for (const auto& [key, other] : states_)
    for (const auto& [zone, member] : other.members)
      if (member.new_catalog && *member.new_catalog == update.catalog.view())
        update.yielded.insert(zone);
}

void CatalogConsumer::refuse(const Task& task, State& state, const Error& error) {
  state.problem = fmt::format("catalog not used: {}", error.text);
  log::warning("catalog_not_used", "catalog", to_text(task.catalog.zone), "serial",
               task.serial.value, "reason", error.text);
}

void CatalogConsumer::applied(const TaskPtr& task, const Status& status) {
  busy_ = false;
  if (stopped_) return;
  State& state = states_[task->key()];
  if (!status) {
    state.retry_at = calls_.now() + kRetryAfter;
    return refuse(*task, state, status.error());
  }
  const CatalogUpdate& update = *task->update;
  if (update.waiting == 0) state.many_left_at = 0;
  if (update.waiting != 0) {
    if (state.many_left_at == 0) state.many_left_at = calls_.now();
    state.retry_at = state.many_left_at +
                     static_cast<std::uint64_t>(
                         std::chrono::ceil<std::chrono::seconds>(task->catalog.removal_grace).count());
  }
  reset_changed(*task, state);
  const bool yields = std::ranges::any_of(task->members, [](const auto& member) {
    return member.second.new_catalog.has_value();
  });
  state.members = std::move(task->members);
  // Another catalog may get now what it was refused before.
  if (yields)
    for (auto& [key, other] : states_)
      if (key != task->key() && !other.problem.empty()) other.data_version = 0;
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
    state.problem = fmt::format(
        "{} left at once, and {} served until {:%FT%TZ} (removal-grace)",
        update.waiting == 1 ? "1 member" : fmt::format("{} members", update.waiting),
        update.waiting == 1 ? "is" : "are", fmt::gmtime(static_cast<std::time_t>(state.retry_at)));
    log::warning("catalog_removals_wait", "catalog", catalog, "serial", task.serial.value, "zones",
                 update.waiting, "s", state.retry_at - calls_.now());
  }
  if (update.refused.empty()) return;
  const CatalogUpdate::Refused& first = update.refused.front();
  state.problem += fmt::format("{}{} of its members not taken: {}: {}",
                               state.problem.empty() ? "" : "; ", update.refused.size(),
                               to_text(first.zone), first.reason);
  for (std::size_t i = 0; i < std::min(kMostLines, update.refused.size()); ++i)
    log::warning("catalog_member_not_taken", "catalog", catalog, "zone",
                 to_text(update.refused[i].zone), "reason", update.refused[i].reason);
}

std::string CatalogConsumer::problem(dns::NameView zone) const {
  if (states_.empty()) return {};
  const auto found = states_.find(dns::folded_key(zone));
  return found == states_.end() ? std::string() : found->second.problem;
}

}  // namespace pando::manager

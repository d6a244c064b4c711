#include "http/observe/collector.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/steady_time.h"
#include "http/observe/kernel_sockets.h"
#include "http/observe/manager_client.h"
#include "http/observe/process_facts.h"
#include "http/observe/zone_activity.h"
#include "http/observe/zone_facts.h"

namespace pando::http {

namespace {

void add_process(Observed& observed, std::string name, std::uint32_t pid) {
  if (auto facts = read_process(std::move(name), pid))
    observed.processes.push_back(std::move(*facts));
}

}  // namespace

std::shared_ptr<const Observed> Collector::observe() {
  const std::scoped_lock lock(looking_);
  const auto now = std::chrono::steady_clock::now();
  if (last_ == nullptr || now - last_at_ >= kFresh) {
    last_ = std::make_shared<const Observed>(look());
    last_at_ = std::chrono::steady_clock::now();
  }
  return last_;
}

Observed Collector::look() {
  Observed observed;
  observed.monotonic = coarse_seconds();
  observed.milliseconds = steady_milliseconds();
  const auto note = [&observed](const Error& error) { observed.problems.push_back(error.text); };
  if (const auto store = find_store(); !store) {
    note(store.error());
  } else {
    auto facts = read_store(**store, options_.zones, observed.zones);
    if (facts)
      observed.store = *facts;
    else
      note(facts.error());
    // A slot lives by its lock on the store.
    const std::string pages = options_.run_directory + "/slots";
    auto slots = shm::copy_slots(pages, (*store)->fd(), options_.layout);
    if (slots)
      observed.slots = std::move(*slots);
    else
      note(slots.error());
    observed.uncounted = add_activity(observed.zones, observed.slots, pages);
  }
  observed.udp = read_udp(options_.listen);
  read_manager(observed);
  for (const shm::SlotCopy& slot : observed.slots)
    if (slot.alive) add_process(observed, fmt::format("worker-{}", slot.number), slot.pid);
  add_process(observed, "http", static_cast<std::uint32_t>(::getpid()));
  return observed;
}

/// Opens the store, or the new store at its path. Requests under way continue with the old store.
Result<std::shared_ptr<const shm::Observer>> Collector::find_store() {
  const std::scoped_lock lock(finding_);
  if (store_ != nullptr && store_->is_at(options_.store_path)) return store_;
  store_.reset();
  auto opened = shm::Observer::open(options_.store_path, options_.layout);
  if (!opened) return pass(opened);
  store_ = std::make_shared<const shm::Observer>(std::move(*opened));
  return store_;
}

Result<ZoneContent> Collector::read_zone(const dns::Name& apex, std::size_t most_bytes) {
  const auto store = find_store();
  if (!store) return tl::unexpected<Error>(store.error());
  return http::read_zone(**store, apex, most_bytes);
}

Result<ContentPart> Collector::read_zone_part(const dns::Name& apex, const ContentPlace& place) {
  const auto store = find_store();
  if (!store) return tl::unexpected<Error>(store.error());
  return http::read_zone_part(**store, apex, place);
}

Result<ZonePage> Collector::read_zone_page(const ZonePageRequest& request) {
  const auto store = find_store();
  if (!store) return tl::unexpected<Error>(store.error());
  return http::read_zone_page(**store, request);
}

Result<ZoneFacts> Collector::read_facts(const dns::Name& zone) {
  ZonePageRequest request;
  request.ranges = {{zone, false}};
  request.most_found = request.most_looked = 1;
  auto page = read_zone_page(request);
  if (!page) return pass(page);
  if (page->zones.empty()) return fail(Errc::kNotFound, "no zone {}", to_text(zone));
  return std::move(page->zones.front());
}

Result<ZonePast> Collector::read_zone_past(const dns::Name& apex, std::size_t most) {
  const auto store = find_store();
  if (!store) return tl::unexpected<Error>(store.error());
  return http::read_zone_past(**store, apex, most);
}

Result<std::vector<ipc::ZoneRow>> Collector::ask_zones(const std::vector<std::string>& names) {
  return http::ask_zones(options_.run_directory, names, options_.manager_timeout);
}

Result<ipc::ZoneListResult> Collector::ask_zone_list(const std::string& after) {
  return http::ask_zone_list(options_.run_directory, after, options_.manager_timeout);
}

void Collector::read_manager(Observed& observed) {
  auto status = ask_status(options_.run_directory, options_.manager_timeout);
  if (!status) return observed.problems.push_back(status.error().text);
  observed.manager = std::move(*status);
  add_process(observed, "manager", observed.manager->pid);
}

}  // namespace pando::http

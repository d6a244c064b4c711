#include "ctl/view/status_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "ctl/view/host_addresses.h"
#include "ctl/view/output.h"

namespace pando::ctl {

namespace {

/// Lines about damage without --all.
constexpr std::size_t kMaxDamage = 3;

/// Counters that are bytes; all others are plain numbers.
bool counts_bytes(std::string_view name) {
  return name == "memory" || name == "live" || name.ends_with("limit") || name.ends_with("bytes");
}

std::string bytes_of(const ipc::Counters& counters, const char* name) {
  return bytes_text(count_of(counters, name));
}

/// "3 word, 1 other word": counters of 0 are left out.
class Counts {
 public:
  explicit Counts(const ipc::Counters& counters) : counters_(counters) {}
  Counts& add(const char* name, std::string_view word) {
    const std::uint64_t value = count_of(counters_, name);
    if (value != 0) text_ += fmt::format("{}{} {}", text_.empty() ? "" : ", ", value, word);
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_.empty() ? "none" : text_; }

 private:
  const ipc::Counters& counters_;
  std::string text_;
};

void add_addresses(Facts& facts, const ipc::StatusResult& status) {
  std::string open;
  for (const auto& [address, reason] : status.addresses)
    if (reason.empty()) open += (open.empty() ? "" : ", ") + address;
  facts.add("addresses", open);
  for (const auto& [address, reason] : status.addresses)
    if (!reason.empty()) facts.add_problem("NOT OPEN", reason);
}

/// "native, 2 of 2 queues (0: worker 0, 1: worker 1)".
void add_xdp(Facts& facts, const ipc::StatusResult& status) {
  for (const ipc::XdpRow& row : status.xdp) {
    std::string served;
    for (const ipc::XdpQueueRow& queue : row.served)
      served += fmt::format("{}{}: worker {}{}", served.empty() ? "" : ", ", queue.queue,
                            queue.slot, queue.zero_copy ? " without copies" : "");
    const std::string mode = row.mode.empty() ? "not attached" : row.mode;
    const std::string queues =
        fmt::format("{}: {}, {} of {} queues{}", row.interface, mode, row.served.size(), row.queues,
                    served.empty() ? "" : fmt::format(" ({})", served));
    if (row.problem.empty())
      facts.add("XDP", queues);
    else
      facts.add_problem("XDP", fmt::format("{}: {}", queues, row.problem));
  }
}

void add_problems(Facts& facts, const ipc::StatusResult& status) {
  if (status.zone_lists == "reading") facts.add("zone lists", "being read");
  if (status.zone_lists == "failed") facts.add_problem("zone lists", "not read: " + status.problem);
  if (status.zone_lists != "failed") facts.add_problem("problem", status.problem);
  facts.add_problem("wait for restart", joined(status.restart_needed));
  if (status.worker_isolation == "none")
    facts.add_problem("WARNING", "workers run as the manager's user: a hijacked one can read its keys");
  if (count_of(status.journal, "in_memory") != 0)
    facts.add_problem("WARNING", "the journal is in memory: a host restart loses all updates");
  facts.add_problem("image not used", status.image_not_used);
  if (!status.image_quarantined.empty())
    facts.add_problem("image quarantined", status.image_quarantined +
                                               " (remove that file when nobody needs it: its " +
                                               "chunks go with a later start)");
}

/// The damage is mended by now, unless a problem tells otherwise. The screen has room for few.
void add_damage(Facts& facts, const ipc::StatusResult& status, bool all) {
  const std::size_t most = all ? status.damage_found.size() : kMaxDamage;
  for (const ipc::FoundDamageRow& row : status.damage_found | std::views::take(most))
    facts.add_problem("damage found", fmt::format("{}: {}", time_text(row.found_at), row.text));
  if (status.damage_found.size() > most)
    facts.add("more damage", fmt::format("{} more (--all)", status.damage_found.size() - most));
}

void add_data(Facts& facts, const ipc::StatusResult& status) {
  for (const ipc::CatalogRow& catalog : status.catalogs) {
    const std::string name = fmt::format("{} ({})", catalog.zone, catalog.role);
    if (catalog.problem.empty())
      facts.add("catalog", name);
    else
      facts.add_problem("catalog", fmt::format("{}: {}", name, catalog.problem));
  }
  const std::uint64_t removed = count_of(status.counters, "zones_removed");
  facts.add("zones", fmt::format("{} of {} loaded{}", status.zones_loaded, status.zones,
                                 removed == 0 ? "" : fmt::format(", {} removed", removed)));
  facts.add("store",
            fmt::format("version {}: {} in use, {} of memory, limit {}", status.store_version,
                        bytes_of(status.store, "live"), bytes_of(status.store, "memory"),
                        bytes_of(status.store, "effective_limit")));
  facts.add("change history", bytes_of(status.store, "history"));
  facts.add("journal", fmt::format("position {}, {}", count_of(status.journal, "position"),
                                   bytes_of(status.journal, "bytes")));
  if (status.image.empty()) return facts.add("image", "none is configured (store.image)");
  facts.add("image", fmt::format("version {}, written {}", count_of(status.image, "version"),
                                 time_text(count_of(status.image, "written_at"))));
  if (const std::uint64_t left = count_of(status.image, "bytes_to_copy"); left != 0)
    facts.add("copied from it", fmt::format("{} are left", bytes_text(left)));
  if (const std::uint64_t failed = count_of(status.image, "checkpoints_failed"); failed != 0)
    facts.add("checkpoints", fmt::format("{} failed", failed));
}

void add_work(Facts& facts, const ipc::StatusResult& status) {
  facts.add("updates", Counts(status.counters)
                           .add("updates", "received")
                           .add("updates_accepted", "accepted")
                           .add("updates_failed", "failed")
                           .add("updates_repeated", "repeated")
                           .add("updates_forwarded", "forwarded")
                           .add("updates_not_forwarded", "not forwarded")
                           .text());
  facts.add("transfers in", Counts(status.counters)
                                .add("transfers_in", "done")
                                .add("transfers_in_ixfr", "of them by IXFR")
                                .add("transfers_in_failed", "failed")
                                .text());
  facts.add("NOTIFY", Counts(status.counters)
                          .add("notifies", "received")
                          .add("notifies_sent", "sent")
                          .add("notifies_answered", "answered")
                          .add("notifies_failed", "failed")
                          .text());
  facts.add("zone files", Counts(status.counters)
                              .add("exports", "written")
                              .add("exports_failed", "failed")
                              .text());
  if (const std::uint64_t bad = count_of(status.counters, "bad_signatures"); bad != 0)
    facts.add("bad signatures", number(bad));
  if (const std::uint64_t lines = count_of(status.counters, "query_log_unwritten"); lines != 0)
    facts.add("query log lines lost", number(lines));
  if (const std::uint64_t lines = count_of(status.counters, "log_lines_dropped"); lines != 0)
    facts.add("log lines dropped", number(lines));
}

void add_counters(Facts& facts, const std::string& prefix, const ipc::Counters& counters) {
  for (const auto& [name, value] : counters)
    facts.add(prefix + name, counts_bytes(name) ? bytes_text(value) : number(value));
}

}  // namespace

void print_status(const ipc::StatusResult& status, bool all, std::ostream& out, bool colour) {
  Facts facts;
  facts.add("version", fmt::format("{}, pid {}, started {}", status.version, status.pid,
                                   time_text(status.started)));
  facts.add("configuration",
            fmt::format("{} (loaded {})", status.configuration, time_text(status.configured)));
  add_addresses(facts, status);
  add_xdp(facts, status);
  const std::string workers = fmt::format("{} of {} running ({})", status.workers_running,
                                          status.workers_wanted, status.worker_mode);
  if (status.workers_running < status.workers_wanted)
    facts.add_problem("workers", workers);
  else
    facts.add("workers", workers);
  add_problems(facts, status);
  add_damage(facts, status, all);
  add_data(facts, status);
  add_work(facts, status);
  if (all) {
    add_counters(facts, "store ", status.store);
    add_counters(facts, "journal ", status.journal);
    add_counters(facts, "image ", status.image);
    add_counters(facts, "", status.counters);
  }
  facts.print(out, colour);
}

bool has_no_zone(const ipc::StatusResult& status) {
  return status.zone_lists == "read" && status.zones == 0;
}

std::string why_not_ready(const ipc::StatusResult& status, bool all_zones) {
  const auto is_open = [](const auto& address) { return address.second.empty(); };
  if (status.workers_running == 0) return "no worker serves";
  if (!status.addresses.empty() && std::ranges::none_of(status.addresses, is_open))
    return "no address is open: " + status.addresses.begin()->second;
  if (!all_zones) return {};
  if (status.zone_lists != "read")
    return status.zone_lists == "reading" ? "the zone lists are being read"
                                          : "the zone lists are not read: " + status.problem;
  if (status.zones_loaded < status.zones)
    return fmt::format("{} of {} zones loaded", status.zones_loaded, status.zones);
  if (has_no_zone(status)) return "no zone is configured: every query is refused";
  return {};
}

std::string why_not_answered(const ipc::StatusResult& status, const IpAddress& address,
                             const std::set<std::string>& own) {
  std::string reason = "is no address of server.listen";
  for (const auto& [listening, why_closed] : status.addresses) {
    const auto endpoint = Endpoint::from_text(listening);
    if (!endpoint) continue;
    const bool covers = endpoint->address == address ||
                        (is_any(endpoint->address) && endpoint->address.is_v4() == address.is_v4());
    if (!covers) continue;
    reason = why_closed;
    if (reason.empty()) break;
  }
  if (reason.empty() && !own.contains(to_text(address.resolved())))
    reason = "is no address of this host";
  return reason.empty() ? reason : fmt::format("{}: {}", to_text(address), reason);
}

}  // namespace pando::ctl

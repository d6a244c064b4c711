#include "ctl/commands/manager_commands.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files/guarded_path.h"
#include "base/whole_number.h"
#include "base/words.h"
#include "ctl/commands/store_commands.h"
#include "ctl/view/host_addresses.h"
#include "ctl/view/json_text.h"
#include "ctl/view/status_view.h"
#include "dns/name.h"
#include "zone/dump/dump_format.h"

namespace pando::ctl {

using ipc::ControlRequest;
using nlohmann::json;

namespace {

ControlRequest request_for(std::string_view verb) {
  ControlRequest request;
  request.verb = verb;
  return request;
}

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// Progress of a load: without a percentage when the total is not known, as with $INCLUDE.
std::string progress_text(const ipc::ZoneRow& zone) {
  const auto amount = [&](std::uint64_t count) {
    return zone.load_phase == "reading" ? bytes_text(count) : number(count);
  };
  if (zone.load_total != 0) {
    const double share = static_cast<double>(std::min(zone.load_done, zone.load_total)) /
                         static_cast<double>(zone.load_total);
    return fmt::format("{}, {}% of {}", zone.load_phase, static_cast<unsigned>(share * 100.0),
                       amount(zone.load_total));
  }
  return zone.load_done == 0 ? zone.load_phase
                             : fmt::format("{}, {}", zone.load_phase, amount(zone.load_done));
}

std::string judgement_text(const ipc::ZoneRow& zone) {
  if (zone.judged_since == 0) return zone.judged_by + ", not begun";
  return fmt::format("{} since {}, at most until {}", zone.judged_by, time_text(zone.judged_since),
                     time_text(zone.judged_until));
}

void print(const ipc::ZoneRow& zone, std::ostream& out) {
  const bool secondary = zone.kind == "secondary";
  Facts facts;
  facts.add("zone", zone.name);
  facts.add("kind", zone.kind);
  facts.add("state", zone.frozen ? zone.state + ", frozen" : zone.state);
  if (!zone.load_phase.empty()) facts.add("loading", progress_text(zone));
  if (!zone.judged_by.empty()) facts.add("judged by", judgement_text(zone));
  if (!zone.change_from.empty())
    facts.add("change", fmt::format("{}, {} since {}", zone.change_from, zone.change_step,
                                    time_text(zone.change_since)));
  facts.add("serial", number(zone.serial));
  if (zone.state == "removed") {
    facts.add("removed", time_text(zone.removed_at));
    facts.add("updates kept", zone.updates_kept);
    facts.add("kept until", zone.kept_until == 0 ? "'zone purge'" : time_text(zone.kept_until));
    return facts.print(out);
  }
  facts.add("records", number(zone.records));
  facts.add("names", number(zone.names));
  facts.add("history", number(zone.history) + " bytes");
  facts.add("added by", zone.added ? "pandoctl zone add" : "");
  if (!zone.catalog_role.empty())
    facts.add("catalog",
              fmt::format("{}, {}", zone.catalog_role, counted(zone.catalog_members, "member")));
  facts.add("member of", zone.catalog);
  facts.add("file", zone.file);
  facts.add("primaries", joined(zone.primaries));
  facts.add("primary's serial", zone.primary_serial == 0 ? "" : std::to_string(zone.primary_serial));
  facts.add("last checked", secondary ? time_text(zone.last_ok) : "");
  facts.add("next check", secondary ? time_text(zone.refresh_at) : "");
  facts.add("expires", secondary ? time_text(zone.expires_at) : "");
  facts.add("signed here", zone.dnssec);
  for (const std::string& ds : zone.ds) facts.add("ds", ds);
  facts.add("signatures end", zone.signatures_end == 0 ? "" : time_text(zone.signatures_end));
  if (zone.signature_faults != 0) facts.add("signature faults", number(zone.signature_faults));
  for (const auto& [remote, outcome] : zone.notified)
    facts.add("notified", fmt::format("{}: {}", remote, outcome));
  facts.add("problem", zone.problem);
  facts.print(out);
}

/// Queries by every transport.
std::uint64_t queries_of(const ipc::WorkerRow& worker) {
  std::uint64_t sum = 0;
  for (const char* name : {"queries_udp", "queries_tcp", "queries_tls"})
    if (const auto found = worker.counters.find(name); found != worker.counters.end())
      sum += found->second;
  return sum;
}

void print(const ipc::WorkerListResult& list, std::ostream& out) {
  Table table({{"SLOT", true},
               {"PID", true},
               {"STATE"},
               {"STARTED"},
               {"RESTARTS", true},
               {"TRANSFERS", true},
               {"PAGE TABLES", true},
               {"QUERIES", true}});
  for (const ipc::WorkerRow& worker : list.workers) {
    table.add({number(worker.slot), worker.pid == 0 ? "-" : number(worker.pid), worker.state,
               worker.started == 0 ? "-" : time_text(worker.started), number(worker.restarts),
               number(worker.leases), bytes_text(worker.page_tables), number(queries_of(worker))});
  }
  table.flush(out);
}

void print(const ipc::ReloadResult& reload, std::ostream& out) {
  out << fmt::format("reloaded: {} added, {} removed, {} changed\n",
                     counted(reload.zones_added, "zone"), reload.zones_removed,
                     reload.zones_changed);
  if (reload.zones_kept > 0)
    out << fmt::format("{} removed with updates, which are kept: see pandoctl zone list\n",
                       counted(reload.zones_kept, "zone"));
  for (const std::string& problem : reload.problems) out << "error: " << problem << '\n';
  if (reload.zones_failed > reload.problems.size())
    out << fmt::format("error: {} in all could not be loaded\n",
                       counted(reload.zones_failed, "zone"));
  if (reload.zones_being_judged > 0) out << judged_text(reload.zones_being_judged);
  for (const std::string& key : reload.restart_needed)
    out << key << " was changed and waits for a restart of the manager\n";
  for (const std::string& warning : reload.warnings) out << "warning: " << warning << '\n';
}

void print(const ipc::ExportResult& done, std::ostream& out) {
  out << fmt::format("{}: serial {} with {} {} {}\n", done.zone, done.serial,
                     counted(done.records, "record"), done.written ? "written to" : "was in",
                     done.file);
}

void print(const ipc::SnapshotResult& taken, std::ostream& out) {
  out << fmt::format("{}: serial {} is '{}'\n", taken.zone, taken.serial, taken.label);
  if (!taken.in_image)
    out << "no image is written (store.image): a restart of the host loses the snapshot\n";
}

void print(const ipc::SnapshotListResult& list, std::ostream& out) {
  Table table({{"SERIAL", true}, {"RECORDS", true}, {"TAKEN"}, {"STATE"}, {"SNAPSHOT"}, {"ZONE"}});
  for (const ipc::SnapshotRow& row : list.snapshots)
    table.add({number(row.serial), number(row.records), time_text(row.taken),
               row.lost.empty() ? "held" : "lost: " + row.lost, row.label, row.zone});
  table.flush(out);
}

/// Prints a result to `out`.
auto shown_on(std::ostream& out) {
  return [&out](const auto& result) { print(result, out); };
}

/// The columns that every list of zones begins with.
std::vector<Table::Column> zone_columns() {
  return {{"SERIAL", true, 10},
          {"RECORDS", true, 10},
          {"KIND", false, 9},
          {"STATE", false, 10},
          {"ZONE"}};
}

std::vector<std::string> zone_words(const ipc::ZoneRow& row) {
  return {number(row.serial), number(row.records), row.kind, row.state, row.name};
}

/// The zone is served as it is configured, and nothing about it failed.
bool is_ok(const ipc::ZoneRow& zone) { return zone.state == "ok" && zone.problem.empty(); }

/// Counts zones while they are listed.
struct ZoneCounts {
  std::uint64_t all = 0;
  std::uint64_t ok = 0;
  std::uint64_t loading = 0;  // of the others: loading, and no problem is known
  std::uint64_t removed = 0;  // not counted above

  /// Returns true when the zone needs no line.
  bool add(const ipc::ZoneRow& row) {
    if (row.state == "removed") {
      ++removed;
      return true;
    }
    ++all;
    if (is_ok(row)) ++ok;
    if (row.state == "loading" && row.problem.empty()) ++loading;
    return is_ok(row);
  }
  [[nodiscard]] std::string text() const {
    std::string line = fmt::format("{} of {} ok", ok, counted(all, "zone"));
    if (const std::uint64_t bad = all - ok - loading; bad > 0)
      line += fmt::format(", {} with problems", bad);
    if (loading > 0) line += fmt::format(", {} loading", loading);
    if (removed > 0) line += fmt::format("; {} removed, with updates that are kept", removed);
    return line;
  }
};

}  // namespace

Result<ControlRequest> request_for_zone(std::string_view verb, const std::string& zone) {
  auto name = dns::Name::from_text(zone);
  if (!name) return pass(name);
  ControlRequest request = request_for(verb);
  request.name = dns::to_text(*name);
  return request;
}

int Session::fail(const Error& error) const {
  return refuse(output_, error, connected_ ? kFailed : kUnreachable);
}

Result<json> Session::exchange_file(ControlRequest request, HandedFile& file) {
  request.descriptor = file.descriptor();
  bool under_way = false;
  std::uint64_t bytes = 0;
  auto reply = ipc::exchange(fd_.get(), request, timeout_, &under_way);
  while (!reply && under_way && file.size() > bytes) {
    bytes = file.size();
    reply = ipc::await_reply(fd_.get(), timeout_, under_way);
  }
  connected_ = reply || under_way;
  if (!reply && under_way)
    return pando::fail(Errc::kIo, "no answer in {} s, and the file does not grow (--timeout)",
                       std::chrono::duration<double>(timeout_).count());
  if (!reply) return pass(reply);
  auto result = ipc::take_result(std::move(*reply));
  if (!result) return result;
  if (auto placed = file.place(); !placed) return pass(placed);
  return result;
}

int Session::show_json(const json& result) const {
  output_.out << json_text(result) << '\n';
  return kDone;
}

Result<json> Session::exchange(const ControlRequest& request) {
  connected_ = false;  // until the reply has arrived
  auto reply = ipc::exchange(fd_.get(), request, timeout_, &connected_);
  if (!reply && reply.error().code == Errc::kFull) {
    connected_ = true;  // nothing was sent
    return pass(reply);
  }
  if (!reply && connected_)
    return pando::fail(Errc::kIo,
                       "no answer in {} s: what was asked for is still under way (--timeout)",
                       std::chrono::duration<double>(timeout_).count());
  if (!reply) return pass(reply);
  connected_ = true;
  return ipc::take_result(std::move(*reply));
}

Result<json> Session::exchange_and_show(const ControlRequest& request) {
  auto reply = exchange(request);
  if (reply && output_.json) output_.out << json_text(*reply) << '\n';
  return reply;
}

int Session::order(const ControlRequest& request) {
  const auto reply = exchange_and_show(request);
  return reply ? kDone : fail(reply.error());
}

int Session::status(bool all) {
  return ask<ipc::StatusResult>(request_for(ipc::verb::kStatus),
                                [&](const ipc::StatusResult& status) {
                                  print_status(status, all, output_.out, output_.colour);
                                });
}

Result<ServerCounts> Session::server_counts() {
  auto workers = get<ipc::WorkerListResult>(request_for(ipc::verb::kWorkerList));
  if (!workers) return pass(workers);
  auto status = get<ipc::StatusResult>(request_for(ipc::verb::kStatus));
  if (!status) return pass(status);
  // A manager of an earlier version does not know the verb.
  auto zones = get<ipc::ZoneQueriesResult>(request_for(ipc::verb::kZoneQueries));
  return ServerCounts{std::move(*workers), std::move(*status),
                      std::move(zones).value_or(ipc::ZoneQueriesResult())};
}

int Session::top(std::chrono::milliseconds interval, std::uint32_t times, bool on_screen) {
  using Clock = std::chrono::steady_clock;
  auto before = server_counts();
  if (!before) return fail(before.error());
  auto looked = Clock::now();
  for (std::uint32_t shown = 0; times == 0 || shown < times; ++shown) {
    std::this_thread::sleep_until(looked + interval);
    auto now = server_counts();
    if (!now) return fail(now.error());
    const auto time = Clock::now();
    const auto rates =
        make_rates(*before, *now, std::chrono::duration<double>(time - looked).count());
    if (output_.json)
      output_.out << rates_json(rates) << std::endl;
    else
      output_.out << (on_screen ? "\x1b[H\x1b[2J" : "") << rates_text(rates) << std::flush;
    if (!output_.out) return kFailed;  // the reader has gone
    before = std::move(now);
    looked = time;
  }
  return kDone;
}

int Session::ready(bool all_zones, const std::vector<std::string>& addresses) {
  const auto status = get<ipc::StatusResult>(request_for(ipc::verb::kStatus));
  if (!status) return fail(status.error());
  std::string reason = why_not_ready(*status, all_zones);
  for (const std::string& text : addresses) {
    const auto address = IpAddress::from_text(text);
    if (!address) return fail(address.error());
    if (reason.empty()) reason = why_not_answered(*status, *address, own_addresses());
  }
  if (output_.json)
    output_.out << json_text(json{{"ready", reason.empty()}, {"reason", reason}}) << '\n';
  else
    output_.out << (reason.empty() ? "ready" : "not ready: " + reason) << '\n';
  if (reason.empty()) return kDone;
  const bool all_but_zones = all_zones && why_not_ready(*status, false).empty();
  return all_but_zones && has_no_zone(*status) ? kNoZone : kFailed;
}

int Session::print_zones(Table table, const Words& words) {
  std::uint64_t shown = 0;
  const auto visit = [&](const ipc::ZoneRow& row) {
    auto line = words(row);
    if (line.empty()) return;
    ++shown;
    if (output_.json)  // one array, written row by row
      output_.out << (shown == 1 ? "" : ",\n") << json_text(json(row));
    else
      table.add(std::move(line));
  };
  if (output_.json) output_.out << '[';
  const Status done = for_each_page<ipc::ZoneListResult>(
      request_for(ipc::verb::kZoneList), [&](const ipc::ZoneListResult& page) -> Status {
        for (const ipc::ZoneRow& row : page.zones) visit(row);
        if (!output_.json && shown != 0) table.flush(output_.out);
        return {};
      });
  if (output_.json) output_.out << "]\n";
  return done ? kDone : fail(done.error());
}

int Session::zone_list() { return print_zones(Table(zone_columns()), zone_words); }

int Session::zone_problems() {
  std::vector<Table::Column> columns = zone_columns();
  columns.push_back({"PROBLEM"});
  ZoneCounts counts;
  const auto words = [&](const ipc::ZoneRow& row) {
    if (counts.add(row)) return std::vector<std::string>();
    std::vector<std::string> line = zone_words(row);
    line.push_back(row.problem);
    return line;
  };
  const int code = print_zones(Table(std::move(columns)), words);
  if (code != kDone) return code;
  if (!output_.json) output_.out << counts.text() << '\n';
  return counts.ok == counts.all ? kDone : kFailed;
}

int Session::zone_status(const std::string& name) {
  auto request = request_for_zone(ipc::verb::kZoneStatus, name);
  if (!request) return fail(request.error());
  auto reply = exchange_and_show(*request);
  if (!reply) return fail(reply.error());
  const auto zone = ipc::read_json<ipc::ZoneRow>(*reply);
  if (!zone) return fail(zone.error());
  if (!output_.json) print(*zone, output_.out);
  return is_ok(*zone) ? kDone : kFailed;
}

int Session::zone_export(const std::string& name, const std::string& to) {
  auto request = request_for_zone(ipc::verb::kZoneExport, name);
  if (!request) return fail(request.error());
  if (to.empty()) return ask<ipc::ExportResult>(*request, shown_on(output_.out));
  HandedFile::Wanted wanted{absolute_path(to), 0666, {}, "an export of " + request->name, true};
  // The first line is $ORIGIN; a mistyped name must not destroy other data.
  wanted.may_replace = [comment =
                            fmt::format("; zone {} at serial ", request->name)](ByteView head) {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const auto end = text.find('\n');
    return end != std::string_view::npos &&
           equal_but_for_case(text.substr(end + 1, comment.size()), comment);
  };
  return ask_for_file<ipc::ExportResult>(*request, wanted, shown_on(output_.out));
}

int Session::zone_order(std::string_view verb, const std::string& name) {
  auto request = request_for_zone(verb, name);
  return request ? order(*request) : fail(request.error());
}

int Session::zone_rollback(const std::string& name, const std::string& target) {
  auto request = request_for_zone(ipc::verb::kZoneRollback, name);
  if (!request) return fail(request.error());
  const auto serial = whole_number<std::uint32_t>(target);
  request->serial = serial.value_or(0);
  if (!serial) request->label = target;
  return ask<json>(*request, [&](const json& result) {
    output_.out << fmt::format("{}: serial {}\n", request->name, result.value("serial", 0U));
  });
}

int Session::zone_snapshot(const std::string& name, const std::string& label) {
  auto request = request_for_zone(ipc::verb::kZoneSnapshot, name);
  if (!request) return fail(request.error());
  request->label = label;
  return ask<ipc::SnapshotResult>(*request, shown_on(output_.out));
}

int Session::zone_snapshot_delete(const std::string& name, const std::string& label) {
  auto request = request_for_zone(ipc::verb::kZoneSnapshotDelete, name);
  if (!request) return fail(request.error());
  request->label = label;
  return order(*request);
}

int Session::zone_snapshots(const std::string& name) {
  auto request = name.empty() ? request_for(ipc::verb::kZoneSnapshots)
                              : request_for_zone(ipc::verb::kZoneSnapshots, name);
  if (!request) return fail(request.error());
  ipc::SnapshotListResult all;
  const Status read = for_each_page<ipc::SnapshotListResult>(
      *request, [&all](const ipc::SnapshotListResult& page) -> Status {
        all.snapshots.insert(all.snapshots.end(), page.snapshots.begin(), page.snapshots.end());
        return {};
      });
  if (!read) return fail(read.error());
  if (output_.json)
    output_.out << json_text(json(all)) << '\n';
  else
    print(all, output_.out);
  return kDone;
}

Result<ipc::StoreAudit> Session::audit(const std::string& zone) {
  auto request = zone.empty() ? request_for(ipc::verb::kStoreAudit)
                              : request_for_zone(ipc::verb::kStoreAudit, zone);
  if (!request) return pass(request);
  auto reply = exchange_and_show(*request);
  if (!reply) return pass(reply);
  return ipc::read_json<ipc::StoreAudit>(*reply);
}

int Session::store_stats(const std::string& zone) {
  const auto found = audit(zone);
  if (!found) return fail(found.error());
  if (!output_.json) print_usage(*found, output_.out);
  if (found->faults_found == 0) return kDone;
  print_error(output_, fmt::format("the store has {} faults: pandoctl store check tells them",
                                   found->faults_found));
  return kFailed;
}

int Session::store_check() {
  const auto found = audit("");
  return found ? print_verdict(*found, "store", output_) : fail(found.error());
}

int Session::store_checkpoint() { return order(request_for(ipc::verb::kStoreCheckpoint)); }

int Session::store_copy(const std::string& to) {
  ControlRequest request = request_for(ipc::verb::kStoreCopy);
  request.to = absolute_path(to);
  // The manager makes several files there, so it has to see the folder itself.
  const auto parent = std::filesystem::path(request.to).parent_path();
  auto folder = open_folder(parent.string());
  if (!folder) return fail(folder.error());
  request.descriptor = std::make_shared<const Fd>(std::move(*folder));
  return order(request);
}

int Session::store_dump(const std::string& to) {
  const HandedFile::Wanted wanted{absolute_path(to), 0600, zone::looks_like_dump, "a dump", false};
  const auto request = request_for(ipc::verb::kStoreDump);
  return ask_for_file<ipc::DumpResult>(request, wanted, [&](const ipc::DumpResult& written) {
    output_.out << fmt::format("{}: {} with {} and {} of history, {} bytes\n", wanted.path,
                               counted(written.zones, "zone"), counted(written.records, "record"),
                               counted(written.changesets, "changeset"), number(written.bytes));
  });
}

Status Session::write_dump(const std::string& path) {
  ControlRequest request = request_for(ipc::verb::kStoreDump);
  request.to = path;
  auto written = exchange(request);
  return written ? Status() : Status(pass(written));
}

int Session::worker_list() {
  return ask<ipc::WorkerListResult>(request_for(ipc::verb::kWorkerList), shown_on(output_.out));
}

int Session::change_workers(std::string_view verb, std::uint32_t count) {
  ControlRequest request = request_for(verb);
  request.count = count;
  return ask<ipc::WorkerListResult>(request, shown_on(output_.out));
}

int Session::worker_restart() {
  return ask<ipc::WorkerListResult>(request_for(ipc::verb::kWorkerRestart), shown_on(output_.out));
}

int Session::reload() {
  const auto reply = exchange_and_show(request_for(ipc::verb::kReload));
  if (!reply) return fail(reply.error());
  const auto reload = ipc::read_json<ipc::ReloadResult>(*reply);
  if (!reload) return fail(reload.error());
  if (!output_.json) print(*reload, output_.out);
  return reload->zones_failed > 0 ? kFailed : kDone;
}

int Session::stop() { return end_manager(ipc::verb::kStop, "stopped"); }

int Session::hand_over() {
  return end_manager(ipc::verb::kHandOver, "the manager has left; its workers go on");
}

int Session::end_manager(std::string_view verb, std::string_view done) {
  if (const int code = order(request_for(verb)); code != kDone) return code;
  if (auto gone = ipc::await_end(fd_.get(), timeout_); !gone) return fail(gone.error());
  if (!output_.json) output_.out << done << '\n';
  return kDone;
}

}  // namespace pando::ctl

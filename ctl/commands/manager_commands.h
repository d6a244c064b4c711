#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "ctl/backup/handed_file.h"
#include "ctl/view/output.h"
#include "ctl/view/top_view.h"
#include "ipc/control.h"
#include "ipc/control_json.h"

/// Commands that ask the running manager. Each prints its answer and returns an ExitCode.
namespace pando::ctl {

/// A request about one zone, whose name may come without its final dot.
Result<ipc::ControlRequest> request_for_zone(std::string_view verb, const std::string& zone);

/// A connection to the manager and where its answers go.
class Session {
 public:
  Session(Fd fd, Output output, std::chrono::milliseconds timeout)
      : fd_(std::move(fd)), output_(output), timeout_(timeout) {}

  /// `all`: with every counter.
  int status(bool all = false);
  /// Prints rates every `interval`, `times` times (0: until the process is ended). `on_screen`: each
  /// print replaces the one before on the terminal.
  int top(std::chrono::milliseconds interval, std::uint32_t times, bool on_screen);
  /// Exit code for health checks: kDone if queries are answered. `all_zones`: of all zones, and
  /// kNoZone if there is none; `addresses`: at each of these.
  int ready(bool all_zones, const std::vector<std::string>& addresses);
  int zone_list();
  /// kFailed also if the zone is not ok: zone_problems() would list it, or it was removed.
  int zone_status(const std::string& name);
  /// `to`: another file than the zone's own, which this process opens; relative to its folder.
  int zone_export(const std::string& name, const std::string& to);
  /// Sends a verb that has a zone's name as its argument and no result.
  int zone_order(std::string_view verb, const std::string& name);
  /// `target`: a serial, or the label of a snapshot.
  int zone_rollback(const std::string& name, const std::string& target);
  int zone_snapshot(const std::string& name, const std::string& label);
  int zone_snapshot_delete(const std::string& name, const std::string& label);
  /// Lists the snapshots of all zones when `name` is empty.
  int zone_snapshots(const std::string& name);
  /// Lists only zones with a problem: not served as configured, or the last load, transfer or
  /// export failed.
  int zone_problems();
  /// Shows the bytes of the store, or of one zone, by their use.
  int store_stats(const std::string& zone);
  int store_check();
  /// Returns when the present version is on disk, or the timeout has passed.
  int store_checkpoint();
  /// `to`: relative to this process's folder.
  int store_copy(const std::string& to);
  /// Has a dump written to a file that this process opens.
  int store_dump(const std::string& to);
  /// Has the manager write a dump to this absolute path, and prints nothing.
  Status write_dump(const std::string& path);
  int worker_list();
  /// Sends a verb that changes the number of workers.
  int change_workers(std::string_view verb, std::uint32_t count);
  int worker_restart();
  int reload();
  /// stop() and hand_over() return when the manager has gone, or the timeout has passed.
  int stop();
  int hand_over();

  /// Sends a request whose result the manager writes into `file`, and places the file. The timeout
  /// begins anew whenever the file has grown.
  Result<nlohmann::json> exchange_file(ipc::ControlRequest request, HandedFile& file);
  /// Sends one request; returns the result in its reply.
  Result<nlohmann::json> exchange(const ipc::ControlRequest& request);
  /// The same as a value of its type.
  template <class T>
  Result<T> get(const ipc::ControlRequest& request) {
    auto reply = exchange(request);
    if (!reply) return pass(reply);
    return ipc::read_json<T>(*reply);
  }
  /// Sends a request whose result is for programs alone, and prints it for them.
  int order(const ipc::ControlRequest& request);
  /// Sends the request, then prints the result as JSON text or by `print(result)`.
  template <class T, class Print>
  int ask(const ipc::ControlRequest& request, Print print) {
    auto reply = exchange_and_show(request);
    if (!reply) return fail(reply.error());
    if (output_.json) return kDone;
    auto result = ipc::read_json<T>(*reply);
    if (!result) return fail(result.error());
    print(*result);
    return kDone;
  }
  /// Calls `visit(page)` for each page of a list; an error of `visit` ends it.
  template <class Page, class Visit>
  Status for_each_page(ipc::ControlRequest request, Visit visit) {
    while (true) {
      auto page = get<Page>(request);
      if (!page) return pass(page);
      if (Status seen = visit(*page); !seen) return seen;
      // A page that does not advance would be requested for ever.
      if (page->next.empty() || page->next == request.after) return {};
      request.after = page->next;
    }
  }
  int fail(const Error& error) const;
  [[nodiscard]] const Output& output() const noexcept { return output_; }

 private:
  Result<ServerCounts> server_counts();
  /// Has the request's result written to the wanted file, and shows it by `print(result)`.
  template <class T, class Print>
  int ask_for_file(ipc::ControlRequest request, const HandedFile::Wanted& wanted, Print print) {
    auto file = HandedFile::open(wanted);
    if (!file) return fail(file.error());
    request.to = wanted.path;
    auto reply = exchange_file(std::move(request), *file);
    if (!reply) return fail(reply.error());
    if (output_.json) return show_json(*reply);
    auto result = ipc::read_json<T>(*reply);
    if (!result) return fail(result.error());
    print(*result);
    return kDone;
  }
  int show_json(const nlohmann::json& result) const;
  Result<ipc::StoreAudit> audit(const std::string& zone);
  int end_manager(std::string_view verb, std::string_view done);
  /// Sends the request; prints its result if JSON text is wanted.
  Result<nlohmann::json> exchange_and_show(const ipc::ControlRequest& request);
  /// Prints a row for each zone from the columns that `words` makes; no columns = the zone is left
  /// out.
  using Words = std::function<std::vector<std::string>(const ipc::ZoneRow&)>;
  int print_zones(Table table, const Words& words);

  Fd fd_;
  bool connected_ = true;
  Output output_;
  std::chrono::milliseconds timeout_;
};

}  // namespace pando::ctl

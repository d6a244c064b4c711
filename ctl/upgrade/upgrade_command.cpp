#include "ctl/upgrade/upgrade_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files/guarded_path.h"
#include "base/program_build.h"
#include "config/load.h"
#include "ctl/upgrade/processes.h"
#include "ctl/view/json_text.h"
#include "ipc/control.h"
#include "ipc/control_json.h"
#include "ipc/packet_socket.h"
#include "ipc/privileges.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAgain{50};
constexpr const char* kHttpUnit = "pando-http.service";
constexpr const char* kSystemctl = "systemctl";
constexpr const char* kManagerProgram = "pando-manager";
/// Settings of the manager's unit for the hand-over. The old manager's workers go on until the new
/// manager has taken them over. systemd itself starts the new manager, because a stop of the unit
/// would let the kept sockets go.
constexpr const char* kWhileUpgraded =
    "[Service]\n"
    "KillMode=process\n"
    "Restart=always\n"
    "RestartSec=0\n"
    "RestartPreventExitStatus=\n"
    "RestartPreventExitStatus=78\n";
/// Of a build ID, in a table: git shows as much.
constexpr std::size_t kShownDigits = 12;

/// Manager and workers at one moment.
struct Processes {
  ipc::StatusResult manager;
  ipc::WorkerListResult workers;

  [[nodiscard]] const ipc::WorkerRow* worker(std::uint32_t slot) const {
    const auto found = std::ranges::find(workers.workers, slot, &ipc::WorkerRow::slot);
    return found == workers.workers.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has_worker_process(std::uint32_t pid) const {
    return std::ranges::find(workers.workers, pid, &ipc::WorkerRow::pid) != workers.workers.end();
  }
  [[nodiscard]] bool all_serve() const {
    return std::ranges::all_of(workers.workers,
                               [](const auto& row) { return row.state == "serving"; });
  }
};

bool is_external(const Processes& processes) { return processes.workers.mode == "external"; }

class Upgrade {
 public:
  Upgrade(const UpgradeRequest& request, const Output& output)
      : request_(request), output_(output) {}

  /// Whether a manager answered at the beginning.
  [[nodiscard]] bool reached() const noexcept { return reached_; }
  [[nodiscard]] const Processes& after() const noexcept { return after_; }

  Status run() {
    auto found = find_manager();
    if (!found) return pass(found);
    before_ = std::move(*found);
    if (auto ready = check_before(); !ready) return ready;
    if (auto replaced = unit_.empty() ? start_manager() : start_unit(); !replaced) return replaced;
    if (auto replaced = is_external(before_) ? restart_units() : restart_workers(); !replaced)
      return replaced;
    if (auto replaced = restart_http(); !replaced) return replaced;
    return check_after();
  }

 private:
  void tell(const std::string& line) const {
    if (!output_.json) output_.out << line << std::endl;
  }

  template <class T>
  static Result<T> ask_over(const Fd& connection, std::string_view verb,
                            std::chrono::milliseconds timeout) {
    ipc::ControlRequest request;
    request.verb = verb;
    auto result = ipc::call(connection.get(), request, timeout);
    if (!result) return pass(result);
    return ipc::read_json<T>(*result);
  }

  template <class T>
  Result<T> ask(std::string_view verb, std::chrono::milliseconds timeout) const {
    auto connection = ipc::connect_control(request_.run_directory);
    if (!connection) return pass(connection);
    return ask_over<T>(*connection, verb, timeout);
  }

  Result<Processes> look() const {
    auto connection = ipc::connect_control(request_.run_directory);
    if (!connection) return pass(connection);
    return look_over(*connection);
  }

  Result<Processes> look_over(const Fd& connection) const {
    auto manager = ask_over<ipc::StatusResult>(connection, ipc::verb::kStatus, request_.timeout);
    if (!manager) return pass(manager);
    auto workers =
        ask_over<ipc::WorkerListResult>(connection, ipc::verb::kWorkerList, request_.timeout);
    if (!workers) return pass(workers);
    return Processes{std::move(*manager), std::move(*workers)};
  }

  /// The kernel identifies the process at the other end of the control socket. Its own statements
  /// are not trusted, because any process of the manager's user can listen there.
  Result<Processes> find_manager() {
    auto connection = ipc::connect_control(request_.run_directory);
    if (!connection) return pass(connection);
    auto process = ipc::peer_process(connection->get());
    if (!process) return pass(process);
    auto peer = ipc::peer_credentials(connection->get());
    if (!peer) return pass(peer);
    process_ = std::move(*process);
    manager_user_ = peer->uid;
    auto found = look_over(*connection);
    reached_ = found.has_value();
    if (found && found->manager.pid != static_cast<std::uint32_t>(peer->pid))
      return fail(Errc::kDenied,
                  "process {} has the control socket, and the answer is that of process {}",
                  peer->pid, found->manager.pid);
    return found;
  }

  /// Looks until `is_so` is true of what a manager tells, or the time is over.
  Status wait_until(const std::string& what, const std::function<bool(const Processes&)>& is_so,
                    const std::function<Status()>& still_possible = [] { return Status(); }) {
    const auto deadline = Clock::now() + request_.timeout;
    while (true) {
      const auto seen = look();
      if (seen && is_so(*seen)) return {};
      if (auto possible = still_possible(); !possible) return possible;
      if (Clock::now() >= deadline)
        return fail(Errc::kIo, "not within {} s: {}", request_.timeout.count(), what);
      std::this_thread::sleep_for(kLookAgain);
    }
  }

  // Before ----------------------------------------------------------------------------------------

  /// Everything that would keep the new programs from their start: nothing has been touched yet.
  Status check_before() {
    const auto pid = static_cast<pid_t>(before_.manager.pid);
    if (auto chosen = choose_configuration(); !chosen) return chosen;
    const config::LoadResult loaded = config::load(configuration_);
    if (!loaded.ok()) return fail(Errc::kInvalid, "{}", loaded.error_text());
    if (auto allowed = check_users(pid, loaded.settings); !allowed) return allowed;
    if (auto found = find_program(pid, loaded.settings); !found) return found;
    auto unit = unit_of(pid);
    if (!unit) return pass(unit);
    unit_ = std::move(*unit);
    if (auto allowed = check_rights(pid); !allowed) return allowed;
    if (unit_.empty()) return open_log();
    return {};
  }

  /// The caller's own word counts for root: the manager's user could name any file.
  Status choose_configuration() {
    const std::string own = fs::absolute(request_.config).lexically_normal().string();
    const std::string told = fs::path(before_.manager.configuration).lexically_normal().string();
    const bool is_whole = fs::path(told).is_absolute();
    configuration_ = is_whole && !is_root_ ? told : own;
    if (!is_root_ || !is_whole || told == own) return {};
    return fail(Errc::kInvalid, "the manager runs with the configuration {}: --config names it",
                told);
  }

  /// Root continues with no process but the manager of this configuration.
  Status check_users(pid_t pid, const config::Settings& settings) {
    auto user = user_of(pid);
    if (!user) return pass(user);
    if (*user != manager_user_)
      return fail(Errc::kDenied, "the manager's process {} has ended", pid);
    if (!is_root_) {
      if (*user == ::geteuid()) return {};
      return fail(Errc::kDenied, "the manager runs as user {}: run this command as that user",
                  *user);
    }
    const auto wanted = ipc::user_id(settings.server.user);
    if (*user != 0 && (!wanted || *wanted != *user))
      return fail(Errc::kDenied,
                  "the manager runs as user {}, and 'server.user' is '{}': run this command as "
                  "that user",
                  *user, settings.server.user);
    const auto worker = ipc::user_id(settings.server.worker_user);
    worker_user_ = worker ? *worker : *user;
    return {};
  }

  /// The running program's path, where the package has put the new one. The program is not
  /// run to examine it, because this process may have more rights than the program should get.
  Status find_program(pid_t pid, const config::Settings& settings) {
    auto program = is_root_ ? program_of(pid) : Result<std::string>(before_.manager.program);
    if (!program) return pass(program);
    program_ = std::move(*program);
    if (program_.empty())
      return fail(Errc::kUnsupported, "the running manager does not tell its program's path");
    Result<Fd> file = is_root_ ? open_roots_program(settings) : open_to_read(program_);
    Status fine = file ? check_program(*file) : Status(pass(file));
    if (fine) return fine;
    return fail(fine.error().code, "cannot run {}: {}", program_, fine.error().text);
  }

  /// The manager's user can run any program, and have it answer here.
  Result<Fd> open_roots_program(const config::Settings& settings) const {
    if (fs::path(program_).filename() != kManagerProgram)
      return fail(Errc::kDenied, "it is no {}", kManagerProgram);
    std::vector<gid_t> groups;
    for (const std::string& user : {settings.server.user, settings.server.worker_user})
      if (const auto some = ipc::groups_of(user))
        groups.insert(groups.end(), some->begin(), some->end());
    std::erase(groups, 0);
    return open_unchangeable(program_, groups);
  }

  Status check_program(const Fd& file) const {
    struct stat status{};
    std::array<char, 2> start{};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
      return fail(Errc::kDenied, "not an executable file");
    if (::pread(file.get(), start.data(), start.size(), 0) == 2 && start[0] == '#' &&
        start[1] == '!')
      return {};
    const auto build = program_build(program_);
    return build ? Status() : Status(pass(build));
  }

  Status check_rights(pid_t pid) const {
    if (!unit_.empty())
      return is_root_ ? Status()
                      : Status(fail(Errc::kDenied, "{} can be restarted by root only", unit_));
    if (pid == 1)
      return fail(Errc::kUnsupported,
                  "the manager is the first process of a container, which ends with it: start a "
                  "container with the new programs instead");
    return {};
  }

  /// A file is continued; nobody but root may find out what the old manager writes to.
  Status open_log() {
    auto log = request_.log.empty() ? descriptor_of(process_, STDERR_FILENO)
                                    : open_to_append(request_.log);
    if (log) log_ = std::move(*log);
    if (log_ || !request_.log.empty()) return status_of(log);
    return fail(Errc::kInvalid,
                "the running manager's log cannot be continued: --log FILE names one for the new "
                "manager");
  }

  // The manager -----------------------------------------------------------------------------------

  /// The new manager itself asks the old one to hand over, once it has read the configuration.
  Status start_manager() {
    auto started =
        StartedProgram::start({program_, "--config", configuration_, "--take-over"}, log_);
    if (!started) return pass(started);
    tell(fmt::format("process {} hands over to process {}", before_.manager.pid, started->pid()));
    return wait_until(
        "an answer of the new manager",
        [&](const Processes& seen) {
          return seen.manager.pid == static_cast<std::uint32_t>(started->pid());
        },
        [&]() -> Status {
          const auto code = started->exit_code();
          if (!code) return {};
          return fail(Errc::kIo, "the new manager ended with exit code {}; {}", *code,
                      who_is_left());
        });
  }

  Status start_unit() {
    if (auto set = set_until_next_reading(unit_, kWhileUpgraded); !set) return set;
    tell(fmt::format("process {} hands over to {}", before_.manager.pid, unit_));
    auto connection = ipc::connect_control(request_.run_directory);
    if (!connection) return pass(connection);
    ipc::ControlRequest request;
    request.verb = ipc::verb::kHandOver;
    if (auto handed = ipc::call(connection->get(), request, request_.timeout); !handed) {
      (void)run_program({kSystemctl, "daemon-reload"});
      return pass(handed);
    }
    if (auto gone = ipc::await_end(connection->get(), request_.timeout); !gone) return gone;
    if (auto reaped = await_reaped(static_cast<pid_t>(before_.manager.pid)); !reaped)
      return reaped;
    // systemctl would warn of the settings' file, which is no longer there.
    if (auto started = run_silently({kSystemctl, "start", unit_}); !started)
      return fail(Errc::kIo, "{}; {}", started.error().text, who_is_left());
    const auto is_new = [&](const Processes& seen) {
      return seen.manager.pid != before_.manager.pid;
    };
    if (auto answered = wait_until("an answer of the new manager", is_new); !answered)
      return answered;
    return run_program({kSystemctl, "daemon-reload"});
  }

  /// systemd has seen the end of a unit's process by then. Before that a start would do nothing.
  Status await_reaped(pid_t pid) const {
    const auto deadline = Clock::now() + request_.timeout;
    while (user_of(pid)) {
      if (Clock::now() >= deadline) return fail(Errc::kIo, "process {} does not end", pid);
      std::this_thread::sleep_for(kLookAgain);
    }
    return {};
  }

  std::string who_is_left() const {
    const auto seen = look();
    if (!seen) return "the workers go on; start the manager again";
    return fmt::format("process {} goes on as the manager", seen->manager.pid);
  }

  // Workers ---------------------------------------------------------------------------------------

  /// Workers of another layout have been replaced by the manager already, or are about to be.
  Status restart_workers() {
    const auto all_serve = [](const Processes& seen) { return seen.all_serve(); };
    if (auto serving = wait_until("all workers serve", all_serve); !serving) return serving;
    auto seen = look();
    if (!seen) return pass(seen);
    const bool any_left = std::ranges::any_of(seen->workers.workers, [&](const auto& row) {
      return before_.has_worker_process(row.pid);
    });
    if (!any_left) return {};
    const auto turns = static_cast<int>(seen->workers.workers.size()) + 1;
    auto restarted =
        ask<ipc::WorkerListResult>(ipc::verb::kWorkerRestart, request_.timeout * turns);
    if (!restarted) return pass(restarted);
    return wait_until("all workers serve", all_serve);
  }

  /// Replaces the workers one after the other: each waits until the successor of the one before
  /// serves.
  Status restart_units() {
    for (const ipc::WorkerRow& old : before_.workers.workers) {
      if (old.pid == 0) continue;
      if (auto fine = check_worker(old); !fine) return fine;
      auto unit = unit_of(static_cast<pid_t>(old.pid));
      if (!unit) return pass(unit);
      if (unit->empty()) continue;  // it ends by itself, or somebody else has to restart it
      if (auto restarted = run_program({kSystemctl, "restart", *unit}); !restarted)
        return restarted;
      const auto serves = [&](const Processes& seen) {
        const ipc::WorkerRow* row = seen.worker(old.slot);
        return row != nullptr && row->pid != old.pid && row->state == "serving";
      };
      if (auto serving = wait_until(*unit + " serves", serves); !serving) return serving;
    }
    // Workers of another layout end, and their units start the next ones. check_after() tells which
    // worker does not serve.
    static_cast<void>(wait_until("all workers serve",
                                 [](const Processes& seen) { return seen.all_serve(); }));
    return {};
  }

  /// The manager names the processes, and could name that of any unit.
  Status check_worker(const ipc::WorkerRow& row) const {
    if (!is_root_) return {};
    const auto user = user_of(static_cast<pid_t>(row.pid));
    if (!user || *user == worker_user_ || *user == manager_user_) return {};
    return fail(Errc::kDenied, "process {}, of user {}, is no worker", row.pid, *user);
  }

  Status restart_http() const {
    if (unit_.empty() || !run_program({kSystemctl, "--quiet", "is-active", kHttpUnit})) return {};
    return run_program({kSystemctl, "restart", kHttpUnit});
  }

  // After -----------------------------------------------------------------------------------------

  Status check_after() {
    auto seen = look();
    if (!seen) return pass(seen);
    after_ = std::move(*seen);
    const std::string worker = (fs::path(program_).parent_path() / "pando-worker").string();
    const std::string manager_build = program_build(program_).value_or("");
    const std::string worker_build = program_build(worker).value_or("");
    if (!manager_build.empty() && after_.manager.build != manager_build)
      return fail(Errc::kIo, "the manager is not the program {}", program_);
    for (const ipc::WorkerRow& row : after_.workers.workers) {
      if (row.state != "serving")
        return fail(Errc::kIo, "the worker of slot {} does not serve: it is {}", row.slot,
                    row.state);
      if (before_.has_worker_process(row.pid))
        return fail(Errc::kIo, "the worker of slot {}, process {}, is no unit's: restart it",
                    row.slot, row.pid);
      if (!worker_build.empty() && row.build != worker_build)
        return fail(Errc::kIo, "the worker of slot {} is not the program {}", row.slot, worker);
    }
    return {};
  }

  const UpgradeRequest& request_;
  const Output& output_;
  Processes before_;
  Processes after_;
  bool reached_ = false;
  const bool is_root_ = ::geteuid() == 0;
  Fd process_;                  ///< pidfd of the manager
  uid_t manager_user_ = 0;
  uid_t worker_user_ = 0;       ///< for root
  std::string program_;        ///< path of the manager's
  std::string configuration_;  ///< absolute path
  std::string unit_;           ///< the manager's; empty: it has none
  Fd log_;                     ///< of a manager that this process starts
};

void print(const Processes& processes, const Output& output) {
  const ipc::StatusResult& manager = processes.manager;
  if (output.json) {
    nlohmann::json workers = nlohmann::json::array();
    for (const ipc::WorkerRow& row : processes.workers.workers)
      workers.push_back({{"slot", row.slot}, {"pid", row.pid}, {"build", row.build}});
    output.out << json_text({{"version", manager.version},
                             {"pid", manager.pid},
                             {"build", manager.build},
                             {"workers", std::move(workers)}})
               << '\n';
    return;
  }
  Table table({{"PROGRAM"}, {"SLOT", true}, {"PID", true}, {"BUILD"}});
  table.add({"pando-manager " + manager.version, "-", number(manager.pid),
             manager.build.substr(0, kShownDigits)});
  for (const ipc::WorkerRow& row : processes.workers.workers)
    table.add({"pando-worker", number(row.slot), number(row.pid),
               row.build.substr(0, kShownDigits)});
  table.flush(output.out);
}

}  // namespace

int upgrade(const UpgradeRequest& request, Output output) {
  Upgrade upgrading(request, output);
  if (auto done = upgrading.run(); !done)
    return refuse(output, done.error(), upgrading.reached() ? kFailed : kUnreachable);
  print(upgrading.after(), output);
  return kDone;
}

}  // namespace pando::ctl

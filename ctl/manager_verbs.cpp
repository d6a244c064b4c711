#include "ctl/verbs.h"

#include <unistd.h>

#include "ctl/commands/explain_command.h"
#include "ctl/commands/manager_commands.h"
#include "ctl/connecting.h"
#include "ctl/upgrade/upgrade_command.h"

namespace pando::ctl {

namespace {

int run_upgrade(const Arguments& given) {
  const auto folder = run_directory(given);
  if (!folder) return refuse(output_for(given), folder.error());
  return upgrade({given.config, *folder, given.file, std::chrono::seconds(given.timeout_seconds)},
                 output_for(given));
}

}  // namespace

void add_manager_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  line.add_session(root, "status", [&given](auto& s) { return s.status(given.all); })
      ->add_flag("--all", given.all, "with every counter");
  CLI::App* ready = line.add(root, "ready", "whether queries are answered, as exit code", [&given] {
    return with_session_within(given, std::chrono::seconds(given.wait),
                               [&given](Session& s) { return s.ready(given.all, given.words); });
  });
  ready->add_option("--wait", given.wait, "seconds until it has to be so; without: now")
      ->check(CLI::Range(0, 86400))
      ->type_name("SECONDS");
  ready->add_flag("--zones", given.all, "only if all zones are loaded");
  ready->add_option("--address", given.words, "only if this address is open and the host's")
      ->type_name("ADDRESS");
  CLI::App* top = line.add_session(
      root, "top", "rates of queries and updates, every second", [&given](auto& s) {
        const bool on_screen = !given.json && ::isatty(STDOUT_FILENO);
        return s.top(std::chrono::seconds(given.interval), given.times, on_screen);
      });
  top->add_option("--interval", given.interval, "seconds between two prints")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  top->add_option("--times", given.times, "prints; without: until Ctrl-C");
  line.add_session(root, "reload", [](auto& s) { return s.reload(); });
  line.add_session(root, "stop", [](auto& s) { return s.stop(); });
  line.add_session(root, "hand-over", [](auto& s) { return s.hand_over(); });
  line.add(root, "upgrade", "have the installed programs take over from the running ones",
           [&given] { return run_upgrade(given); })
      ->add_option("--log", given.file, "log file of a manager that no unit starts");
}

void add_explain_verb(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  CLI::App* explain =
      line.add_session(root, "explain", [&given](auto& s) { return ctl::explain(s, given.query); });
  QueryWords& query = given.query;
  explain->add_option("name", query.name, "name that is asked for")->required();
  explain->add_option("type", query.type, "type that is asked for; A by default");
  explain->add_option("--from", query.from, "address of the client that asks");
  explain->add_option("--key", query.key, "name of the TSIG key that signs the query");
  explain->add_flag("--do", query.dnssec_ok, "ask for signatures and proofs (DO bit)");
}

void add_worker_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* worker = line.group("worker", "worker processes");
  line.add_session(worker, "list", [](auto& s) { return s.worker_list(); });
  const auto with_count = [&given](CLI::App* command) {
    command->add_option("count", given.count, "how many")->check(CLI::Range(1, 1024));
  };
  with_count(line.add_session(worker, "add", [&given](auto& s) {
    return s.change_workers(ipc::verb::kWorkerAdd, given.count);
  }));
  with_count(line.add_session(worker, "remove", [&given](auto& s) {
    return s.change_workers(ipc::verb::kWorkerRemove, given.count);
  }));
  line.add_session(worker, "restart", [](auto& s) { return s.worker_restart(); });
}

}  // namespace pando::ctl

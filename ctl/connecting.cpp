#include "ctl/connecting.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/secret.h"
#include "config/files.h"
#include "config/load.h"
#include "config/settings/section_text.h"
#include "ipc/control.h"

namespace pando::ctl {

namespace {

/// The folder, if the section that has it can be found without parsing the zones: a command must
/// not take seconds and hundreds of MiB for them.
std::optional<std::string> run_directory_of_large(const std::string& path) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  const WipeFreed wipe_freed;  // the text may have secrets
  const auto text = config::read_regular_file(path);
  if (!text || text->size() < kLarge) return std::nullopt;
  const std::string section = config::section_text(*text, "server");
  // An included file may have the rest of the section.
  if (section.empty() || text->find(config::kInclude) != std::string::npos) return std::nullopt;
  const auto loaded = config::load_text(section, path, {.read_zone_lists = false});
  if (!loaded.ok()) return std::nullopt;
  return loaded.settings.server.run_directory;
}

int connect_and_run(const Arguments& arguments, const std::string& folder, const Output& output,
                    const std::function<int(Session&)>& command) {
  auto fd = ipc::connect_control(folder);
  if (!fd) return refuse(output, fd.error(), kUnreachable);
  Session session(std::move(*fd), output, std::chrono::seconds(arguments.timeout_seconds));
  return command(session);
}

}  // namespace

Output output_for(const Arguments& arguments) {
  // https://no-color.org
  const char* plain = std::getenv("NO_COLOR");
  const bool colour = ::isatty(STDOUT_FILENO) != 0 && (plain == nullptr || *plain == '\0');
  return {std::cout, std::cerr, arguments.json, colour};
}

Result<std::string> run_directory(const Arguments& arguments) {
  if (!arguments.run_directory.empty()) return arguments.run_directory;
  if (::access(arguments.config.c_str(), R_OK) != 0)
    return fail_errno("cannot read " + arguments.config);
  if (auto folder = run_directory_of_large(arguments.config)) return *folder;
  const auto loaded = config::load(arguments.config, {.read_zone_lists = false});
  if (!loaded.ok() && !arguments.json)
    std::cerr << "pandoctl: the configuration has errors; see 'pandoctl config check'\n";
  return loaded.settings.server.run_directory;
}

int with_session(const Arguments& arguments, const std::function<int(Session&)>& command) {
  const auto folder = run_directory(arguments);
  if (!folder) return refuse(output_for(arguments), folder.error());
  return connect_and_run(arguments, *folder, output_for(arguments), command);
}

int with_session_within(const Arguments& arguments, std::chrono::seconds wait,
                        const std::function<int(Session&)>& command) {
  constexpr std::chrono::milliseconds kPause{50};
  const auto end = std::chrono::steady_clock::now() + wait;
  const auto folder = run_directory(arguments);
  if (!folder) return refuse(output_for(arguments), folder.error());
  for (;; std::this_thread::sleep_for(kPause)) {
    std::ostringstream out, err;
    const int code =
        connect_and_run(arguments, *folder, {out, err, arguments.json, false}, command);
    if (code != kDone && std::chrono::steady_clock::now() < end) continue;
    std::cout << out.str();
    std::cerr << err.str();
    return code;
  }
}

}  // namespace pando::ctl

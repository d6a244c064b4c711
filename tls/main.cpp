#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <asio/io_context.hpp>
#include <csignal>
#include <ctime>
#include <string>

#include "base/program_build.h"
#include "ipc/log.h"
#include "ipc/privileges.h"
#include "sandbox/hardening.h"
#include "tls/tls_cage.h"
#include "tls/tls_service.h"

namespace {

struct Arguments {
  pando::tls::TlsServiceOptions service;
  std::string user;
  std::string log_level = "info";
  std::string log_format = "text";
};

/// Gives up every right that the process does not need later.
pando::Status give_up_rights(const Arguments& arguments) {
  if (!arguments.user.empty()) {
    auto became = pando::ipc::become_user(arguments.user, pando::ipc::Keep::kNothing);
    if (!became) return became;
  }
  if (auto dropped = pando::ipc::drop_capabilities(pando::ipc::Keep::kNothing); !dropped)
    return dropped;
  // A handshake takes as long as 150 queries: answers over UDP go first.
  constexpr int kNice = 5;
  ::setpriority(PRIO_PROCESS, 0, kNice);
  pando::sandbox::raise_descriptor_limit();
  return pando::sandbox::forbid_inspection();
}

/// OpenSSL's own files and its memory for secrets, before no file can be opened any more.
void prepare_openssl() {
  ::OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS | OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
  // Private keys live there: locked in memory, in no core dump, wiped when freed.
  constexpr std::size_t kSecretBytes = std::size_t{64} << 10;
  constexpr std::size_t kSmallestPiece = 32;
  if (::CRYPTO_secure_malloc_init(kSecretBytes, kSmallestPiece) != 1)
    pando::log::warning("tls_memory_not_locked", "bytes", kSecretBytes);
}

int run(const Arguments& arguments) {
  asio::io_context io(1);
  pando::tls::TlsService service(io, arguments.service);
  prepare_openssl();
  ::tzset();  // the log's times need a file that cannot be opened later
  if (auto confined = pando::tls::confine(); !confined) {
    pando::log::error("tls_failed", "error", confined.error().text);
    return 1;
  }
  service.start();
  io.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  pando::log::protect_process();
  Arguments arguments;
  CLI::App app("Pando TLS: ends the TLS of clients, and passes their plain octets to workers");
  app.set_version_flag("--version", PANDO_VERSION);
  app.add_option("--slot", arguments.service.slot, "slot number")->required();
  app.add_option("--run-directory", arguments.service.run_directory, "where the manager listens")
      ->required();
  app.add_option("--user", arguments.user, "user to become, by name or number");
  app.add_option("--log-level", arguments.log_level, "debug, info, warning, error or off")
      ->envname("PANDO_LOG_LEVEL");
  app.add_option("--log-format", arguments.log_format, "text or json")
      ->envname("PANDO_LOG_FORMAT");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto rights = give_up_rights(arguments);
  pando::log::start({arguments.log_level, arguments.log_format, "tls"});
  if (!rights) {
    pando::log::error("tls_failed", "slot", arguments.service.slot, "error", rights.error().text);
    return 1;
  }
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C on the manager's terminal: the manager decides
  std::signal(SIGHUP, SIG_IGN);
  arguments.service.build = pando::own_build();
  return run(arguments);
}
